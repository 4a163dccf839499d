"""The cards of tasks (a worked example, floors, sizes, source) and of suites of them.

All of it is read from the task's docstring, settings and samples, so that no second list can disagree.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import unicodedata
from typing import Any

import jax
import numpy as np

from posenc.catalog.card import Card, Fact, bibtex, flowing, keys, paragraphs, settings_fact, uncited
from posenc.lab import tasks
from posenc.lab.explain.source_floors import floors_fact, source_floors
from posenc.lab.figures.style import aligned
from posenc.lab.metrics import GAIN
from posenc.lab.run.plan import evaluated
from posenc.lab.spec.run import SUITE, Plan, Run
from posenc.lab.spec.suites import named
from posenc.lab.tasks.floors import floors
from posenc.lab.tasks.task import Layout, Task
from posenc.lab.train.training import resolve
from posenc.language.registry import settings

LAYOUTS = {
    Layout.TAG: "the answer in empty slots (?) after the input",
    Layout.CLASSIFY: "one empty slot (?) after the input, and one class for it",
    Layout.TOKENS: "answers at the input tokens themselves",
    Layout.LM: "a text: a prompt, SEP, the answer, EOS; each token is predicted at the one before it",
    Layout.SEQ2SEQ: "a source that an encoder reads, and an answer that a decoder writes",
}
KEY, ROWS, SIZE, SHOWN = 0, 16, 8, 48
"""The example is the first of ROWS rows with a scored token, at SIZE, or smaller so as to have at most SHOWN tokens."""
LONGEST, WORK = 1024, 2**20
"""Floors are counted at sizes of at most LONGEST tokens, on at most WORK tokens at each size, or else on 64 rows."""
SUITE_COLUMNS = ("task", "model", "trained on", "tokens", "evaluated at")


def as_html(task: Task) -> str:
    """The card of a task as HTML, as notebooks show it."""
    return card(tasks.spec(task)).as_html()


def card(text: str, size: int | None = None, floors: dict[str, Any] | None = None) -> Card:
    """The card of a task; `floors` are those of `floor_table`, which cost a compilation."""
    task = tasks.parse(text)
    n = _small(task) if size is None else size
    batch = _sampled(task, n)
    example = _example(task, n, batch)
    described = unsampled(text)
    sampled = [Fact("example", example, "\n".join(_aligned(example)), f"An example of size {n}", is_block=True)]
    if floors is not None:
        sampled.append(floors_fact(floors) if "losses" in floors else _floors(floors))
    names = Fact("coordinates", sorted(batch.coords)), Fact("strata", sorted(batch.strata))
    lines, *rest = described.facts
    return dataclasses.replace(described, facts=(lines, *sampled, *rest[:-2], *names, *rest[-2:]))


def unsampled(text: str) -> Card:
    """The card of a task without what takes a sample, which costs a compilation: its example, its coordinates."""
    task = tasks.parse(text)
    idea, lines, notes = _documented(type(task))
    layout = task.layout.value
    facts = (
        Fact("lines", lines, ""),
        Fact("layout", {"name": layout, "is": LAYOUTS[task.layout]}, f"{layout}: {LAYOUTS[task.layout]}"),
        Fact("directions", sorted(task.directions), " and ".join(sorted(task.directions)), "direction"),
        Fact("metric", task.metric),
        Fact("ability", task.ability, task.ability or "not stated"),
        settings_fact(settings(task)),
        _tokens(task),
        _sizes(task),
        Fact("suites", list(task.suites)),
        Fact("docstring", inspect.cleandoc(type(task).__doc__ or ""), ""),
    )
    sources = keys(entries(type(task)))
    return Card("task", tasks.spec(task), idea, "\n".join(lines), facts, tuple(notes), sources)


def worked(text: str, count: int = 3) -> list[str]:
    """Examples of a task that differ, in aligned lines: the first is that of its card."""
    task = tasks.parse(text)
    n = _small(task)
    batch = _sampled(task, n)
    scored = [row for row in range(ROWS) if batch.score[row].any()] or [0]
    shown = (_example(task, n, jax.tree.map(lambda a, row=row: a[row:], batch)) for row in scored)
    return list(dict.fromkeys("\n".join(_aligned(example)) for example in shown))[:count]


def _tokens(task: Task) -> Fact:
    own, special, classes = task.alphabet, list(task.layout.specials), task.classes
    text = f"{own} task tokens and {', '.join(special)}; {classes} classes"
    return Fact("tokens", {"own": own, "special": special, "classes": classes}, text)


def _sizes(task: Task) -> Fact:
    sizes, longest = task.sizes, task.tokens(task.sizes.train[1])
    first, last = sizes.train
    bounds = f"from {sizes.smallest}" + (f" to {sizes.largest}" if sizes.largest is not None else "")
    bounds += f" in steps of {sizes.step}" * (sizes.step > 1)
    beyond = ", ".join(map(str, sizes.evaluation)) or "none"
    trained = f"trained on {first if first == last else f'{first} to {last}'} ({longest} tokens)"
    values = {
        "smallest": sizes.smallest,
        "largest": sizes.largest,
        "step": sizes.step,
        "trained on": list(sizes.train),
        "evaluated": list(sizes.evaluation),
        "tokens at the largest trained on": longest,
    }
    return Fact("sizes", values, f"{bounds}; {trained}, evaluated at {beyond}")


def _floors(table: dict[str, Any]) -> Fact:
    """The floors, a line for each size."""
    label = f"Baselines, in {table['metric']}, counted on {table['rows']} examples of each size"
    row = lambda at: ", ".join(f"{name} {100 * value:.1f} %" for name, value in at.items())  # noqa: E731
    lines = (f"size {n}: {row(at)}" for n, at in table["at size"].items())
    return Fact("floors", table, "\n".join(lines), label, is_block=True)


def floor_table(text: str, windows: tuple[int, ...] | None = None) -> dict[str, Any]:
    """Return the floors at two sizes, the largest trained one and one far beyond, and the number of rows at each. For a
    source with exact losses, return the losses of predictors at one size, windows among them. Raises `ValueError` for
    windows of another task, or of more tokens than this size has."""
    task = tasks.parse(text)
    if task.metric == GAIN:
        return source_floors(task, windows)
    if windows is not None:
        raise ValueError(
            f"--windows is for sources whose exact losses are known, such as 'copies', and not for {task.name!r}; leave"
            " it out."
        )
    sizes = {task.sizes.train[1], *task.sizes.evaluation}
    short = sorted(n for n in sizes if task.tokens(n) <= LONGEST) or [task.sizes.smallest]
    two = list(dict.fromkeys((short[0], short[-1])))
    rows = max(64, min(8192, _power_below(WORK // task.tokens(two[-1]))))
    return {"metric": task.metric, "rows": rows, "at size": floors(task, two, rows=rows)}


def _power_below(n: int) -> int:
    """The largest power of two up to n. Examples are made in equal parts, and few are equal only for such a number."""
    return 1 << max(n.bit_length() - 1, 0)


def cite(text: str) -> str:
    """The BibTeX of a task's sources."""
    cls = type(tasks.parse(text))
    return "\n\n".join(entries(cls) or [uncited(cls.name)])


def entries(cls: type[Task]) -> list[str]:
    """The BibTeX entries of a task's family that the task names as its sources; all of them if it names none."""
    doc = cls.__doc__ or ""
    family = [e for text in (_module(cls), doc) for e in bibtex(text)]
    named = {e: re.match(r"@\w+\{([a-z]+)(\d{4})", e) for e in family}
    plain = _folded("\n\n".join(paragraphs(cls)))
    by = {e: m for e, m in named.items() if m and re.search(rf"\b{m[1]}\b", plain)}
    dated = {m[1] for m in by.values() if m[2] in plain}
    named_here = [e for e, m in by.items() if m[1] not in dated or m[2] in plain]
    ours = re.search(r"\(ours\b", doc.strip().split("\n\n")[0])
    return named_here or ([] if ours else family)


def _documented(cls: type) -> tuple[str, list[str], list[str]]:
    """The parts of a docstring: the idea, the lines that show input and output, and the remaining paragraphs."""
    idea, *rest = paragraphs(cls)
    shown = [p for p in rest if re.search("->|EOS", p.split("\n")[0])][:1]
    return flowing(idea), [line for p in shown for line in p.splitlines()], [flowing(p) for p in rest if p not in shown]


def _module(cls: type) -> str:
    return getattr(sys.modules.get(cls.__module__), "__doc__", None) or ""


def _folded(text: str) -> str:
    """A text in lower case without accents, like BibTeX keys."""
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).lower()


def _small(task: Task) -> int:
    """A size whose example fits a few lines, if there is one."""
    low, high = task.sizes.smallest, task.sizes.largest
    wanted = max(low, SIZE if high is None else min(SIZE, high))
    return next((n for n in range(wanted, low, -1) if task.sizes.has(n) and task.tokens(n) <= SHOWN), low)


def _sampled(task: Task, n: int) -> Any:
    task.check_size(n)
    sample = jax.jit(lambda key: task.sample(key, n, batch=ROWS, n_max=n))
    return jax.device_get(sample(jax.random.key(KEY)))


def _example(task: Task, n: int, batch: Any) -> dict[str, Any]:
    """One row: the input, the target at each scored token, and the oracle's answer to the prompt."""
    row = int(np.argmax(batch.score.any(1)))
    if task.continues:  # of a text that which has most symbols, since a row of dashes shows nothing
        row = max(range(len(batch.tokens)), key=lambda n: len({*batch.tokens[n][batch.valid[n]].tolist()}))
    valid, score, tokens, targets = (a[row] for a in (batch.valid, batch.score, batch.tokens, batch.targets))
    classes = task.layout not in (Layout.LM, Layout.SEQ2SEQ) and not task.continues
    empty = task.special("EMPTY") if "EMPTY" in task.layout.specials else None
    source = None if batch.source is None else batch.source[row][batch.source_valid[row]].tolist()
    prompt = tokens[batch.prompt[row]].tolist() if source is None else source
    named = {
        "source": None if source is None else [task.word(t) for t in source],
        "in": ["?" if t == empty else task.word(t) for t in tokens[valid].tolist()],
        "out": [
            None if not scored else str(t) if classes else task.word(t)
            for t, scored in zip(targets[valid].tolist(), score[valid].tolist(), strict=True)
        ],
    }
    answer = [int(t) for t in task.answer(list(prompt))]
    ids = {"prompt": prompt, "answer": answer, "targets": targets[score].tolist()}
    return {"size": n, **named, "oracle": [str(t) if classes else task.word(t) for t in answer], "ids": ids}


def _aligned(example: dict[str, Any], width: int = 96) -> list[str]:
    """Input above targets, in aligned columns that are broken at `width`."""
    lines = []
    if example["source"] is not None:
        lines += ["source  " + " ".join(example["source"])]
    columns = [(a, "·" if b is None else b) for a, b in zip(example["in"], example["out"], strict=True)]
    row: list[tuple[str, str]] = []
    for column in [*columns, None]:
        full = sum(max(map(len, c)) + 1 for c in [*row, column or ("", "")]) + 8 > width
        if column is None or full:
            wide = [max(map(len, c)) for c in row]
            for name, which in (("in", 0), ("out", 1)):
                cells = (c[which].ljust(w) for c, w in zip(row, wide, strict=True))
                lines.append(f"{name:<8}{' '.join(cells)}".rstrip())
            row = []
        row += [column] if column is not None else []
    return [*lines, "oracle  " + " ".join(example["oracle"])]


def suite_card(text: str) -> Card:
    """The card of a suite such as "suite:quick"."""
    (suite,) = named([text])
    values = {name: value for name, value in {**suite.run, **suite.plan}.items() if name != "model"}
    rows, presets = [_suite_row(run, Plan(**suite.plan)) for run in suite.runs], list(suite.presets)
    lines = aligned([SUITE_COLUMNS, *map(_suite_cells, rows)], str.ljust)
    settings = ", ".join(f"{name}={_joined(value, ',')}" for name, value in values.items()) or "none"
    facts = (
        Fact("use", use := f"task={SUITE}{suite.name}", ""),
        Fact("tasks", rows, "\n".join(lines), "", is_block=True),
        Fact("settings", values, settings),
        Fact("presets", presets, " or ".join(f"--preset {name}" for name in presets) or "not as a whole", "published"),
    )
    return Card("suite", suite.name, suite.idea, facts=facts, title=use)


def _suite_row(run: Run, plan: Plan) -> dict[str, Any]:
    cell = resolve(run)
    sizes = {"trained on": list(dict.fromkeys([cell.run.shortest, run.length])), "tokens": cell.task.tokens(run.length)}
    return {"task": run.task, "model": run.model, **sizes, "evaluated at": list(evaluated(cell, plan))}


def _suite_cells(row: dict[str, Any]) -> list[str]:
    return [" to ".join(map(str, row[name])) if name == "trained on" else _joined(row[name]) for name in SUITE_COLUMNS]


def _joined(value: Any, between: str = ", ") -> str:
    return between.join(map(str, value)) if isinstance(value, list) else str(value)
