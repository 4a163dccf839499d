"""Sentences of documents, docstrings and experiments are plain in form: a budget of exceptions that may only fall.

It measures form and cannot see sense: CONTRIBUTING.md has the rules.
"""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LONG = 25
"""The most words of a sentence."""
OPENINGS = "What|Who|Whoever|Where|Which|Whether|Whose|Of|Those|The same|So many|Behind|None"
PHRASES = "so many|anew|nobody|whoever|none is|none are|in the place of|of which|of whom|less far|do both"
RULES = {
    "start": lambda text: bool(re.match(rf"(?:{OPENINGS})\b", text)),
    "long": lambda text: len(text.split()) > LONG,
    "joints": lambda text: len(re.findall("[:;]", text)) > 1,
    "words": lambda text: bool(re.search(rf"\b(?:{PHRASES})\b", text, re.IGNORECASE)),
}
BUDGET = {
    "docs": {"start": 12, "long": 40, "joints": 8, "words": 4},
    "experiments": {"start": 2, "long": 8, "joints": 0, "words": 0},
    "posenc": {"start": 8, "long": 57, "joints": 17, "words": 15},
}
"""Exceptions by kind of text. Lower a number when you remove some; a new sentence has none."""


def plain(text):
    """Return a text without its code, links and comments."""
    text = re.sub(r"<!--.*?-->", "", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.DOTALL)
    return re.sub(r"\$[^$]*\$|`[^`]*`|!?\[([^\]]*)\]\([^)]*\)", lambda match: match[1] or "X", text)


def sentences(text):
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", plain(text)):
        if re.match(r"\s*([|#>@]|    )", paragraph):
            continue
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z*\[`(])", " ".join(paragraph.split())):
            words = sentence.strip(" -*_")
            if len(words.split()) > 2:
                yield words


def docstrings(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield re.split(r"@\w+\{", node.value.value)[0]


def texts(kind):
    if kind == "docs":
        paths = ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "experiments").glob("*.md")
        return {path: [path.read_text(encoding="utf-8")] for path in paths}
    paths = (ROOT / kind).glob("*.py") if kind == "experiments" else (ROOT / kind).rglob("*.py")
    return {path: [*docstrings(path)] for path in paths}


@pytest.mark.parametrize("kind", BUDGET)
def test_exceptions_only_become_fewer(kind):
    found = [
        (rule, path.relative_to(ROOT), sentence)
        for path, of in sorted(texts(kind).items())
        for text in of
        for sentence in sentences(text)
        for rule, breaks in RULES.items()
        if breaks(sentence)
    ]
    counts = Counter(rule for rule, *_ in found)
    over = [rule for rule, most in BUDGET[kind].items() if counts[rule] > most]
    shown = "\n".join(f"{rule} {path}: {sentence}" for rule, path, sentence in found if rule in over)
    assert not over, (
        f"{dict(counts)} of {kind} are more than {BUDGET[kind]}; write these sentences by CONTRIBUTING.md:\n{shown}"
    )


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("What figures call tasks.", "start"),
        ("word " * 26, "long"),
        ("It is: one thing; another: a third.", "joints"),
        ("The tasks of which it has many.", "words"),
    ],
)
def test_a_planted_fault_is_seen(text, rule):
    assert [name for name, breaks in RULES.items() if any(map(breaks, sentences(text)))] == [rule]
    assert not [*sentences("| What | is | this |\n\n    What is code stays.\n\n## Whose heading")]
