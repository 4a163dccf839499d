"""Equations of docstrings, which are plain text, as TeX."""

from __future__ import annotations

import re
from collections.abc import Iterator

FUNCTIONS = {"exp", "log", "cos", "sin", "min", "max"}
NAMED = {"softmax", "softplus", "clip", "bucket", "conv", "gelu", "silu", "norm", "row", "sign", "mod"}
SYMBOLS = {"Σ": r"\sum", "Π": r"\prod", "·": r"\cdot ", "…": r"\dots ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "`": ""}
SYMBOLS |= {"≤": r"\le ", "≥": r"\ge ", "∈": r"\in ", "×": r"\times ", "∘": r"\circ ", "‖": r"\Vert ", "⊕": r"\oplus "}
SYMBOLS |= {"{": r"\{", "}": r"\}", "²": "^2", "ᵀ": r"^{\top}", "₈": "_8", "<": r"\lt ", ">": r"\gt "}
OPERATORS = "=+-/·×∈≤≥<>"
"""Signs that bring their own space."""
_CALLED = "|".join(sorted(FUNCTIONS | NAMED, key=len, reverse=True))
TOKEN = re.compile(
    r"(?P<raised>[_^])(?:(?P<open>[({])|(?P<index>[A-Za-z0-9α-ω]+(?:,[a-z])?))"
    r"|(?P<root>√)(?:(?P<under>\()|(?P<one>[A-Za-z0-9]+))"
    r"|(?P<hat>[a-z])\u0302"
    r"|(?P<count>[A-Za-z])(?P<at>\d)(?!\w)"
    r"|(?P<quoted>'[a-z]+')"
    rf"|(?P<function>{_CALLED})(?![A-Za-z-])"
    rf"|(?P<words>[A-Za-z]{{2,}}(?:[- ](?:a )?(?!(?:{_CALLED})\b)[A-Za-z]{{2,}})*)"
    r"|(?P<symbol>[ΣΠ²ᵀ₈]|[^\w\s])"
)


def pieces(text: str) -> Iterator[list[tuple[str, str]]]:
    """Yield for each line its parts, which two spaces or more keep apart: as they stand, and as TeX."""
    for line in text.splitlines():
        yield [(part, tex(part)) for part in re.split(r"\s{2,}", line.strip())]


def tex(text: str) -> str:
    """Translate one part.

    >>> tex("s_ij = q_i · k_j / √(3d)")
    's_{ij} = q_{i} \\\\cdot  k_{j} / \\\\sqrt{3d}'
    >>> tex("ω = base^(-2i / d) where i < d")
    'ω = \\\\text{base}^{-2i / d} \\\\text{ where } i \\\\lt  d'
    """
    made, at = [], 0
    while found := TOKEN.search(text, at):
        made.append(text[at : found.start()])
        at = found.end()
        command = found["raised"] or r"\sqrt"
        if found["open"] or found["under"]:
            inside, at = _closed(text, at)
            made.append(f"{command}{{{tex(inside)}}}")
        elif index := found["index"] or found["one"]:
            upright = len(index) > 2 and index.isalpha()
            inside = rf"\mathrm{{{index}}}" if upright else re.sub(r"([A-Za-z])(\d)$", r"\1_\2", index)
            made.append(f"{command}{{{inside}}}")
        else:
            made.append(_token(found, text[: found.start()], text[at:]))
    return "".join([*made, text[at:]])


def _token(found: re.Match[str], before: str, after: str) -> str:
    if found["hat"]:
        return rf"\hat{{{found['hat']}}}"
    if found["count"]:
        return f"{found['count']}_{found['at']}"
    if name := found["function"]:
        return rf"\{name} " if name in FUNCTIONS else rf"\operatorname{{{name}}}"
    if words := found["words"] or found["quoted"]:
        left = " " * (before.endswith(" ") and before.rstrip()[-1:] not in OPERATORS)
        right = " " * (after.startswith(" ") and after.lstrip()[:1] not in OPERATORS)
        return rf"\text{{{left}{words}{right}}}"
    return SYMBOLS.get(found["symbol"], found["symbol"])


def _closed(text: str, at: int) -> tuple[str, int]:
    """Find the end of what a bracket before `at` opens; return what is inside, and the place after it."""
    depth = 1
    for end in range(at, len(text)):
        depth += (text[end] in "({") - (text[end] in ")}")
        if not depth:
            return text[at:end], end + 1
    return text[at:], len(text)
