"""Every file that quotes numbers of records, as the records have them now: pages, and numbers and tables in documents.

A table stands between `<!-- NAME: ... -->` and `<!-- end of NAME -->`.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from experiments.pages.fields import refresh
from experiments.pages.measured import FOLDER, measured, names
from experiments.pages.page import markdown, page
from posenc.lab.explain import aliases
from posenc.lab.results import atlas_cells
from posenc.lab.results.statistics import summary
from posenc.lab.spec import atlas
from posenc.lab.spec.experiment_file import executed

ROOT = FOLDER.parent
Row = tuple[str, ...]
NEEDS = {
    "offset": "find the token a fixed number of positions back",
    "pointer": "follow a pointer of up to four positions",
    "distance": "tell how far apart two tokens are",
    "index": "tell which of the first eight positions has a token",
    "look-up": "find the token at an index",
    "order": "tell which of two comes first",
    "count": "count",
    "memory": "keep a bit until it is asked for",
    "recall": "find a value by its key",
    "copy": "copy",
    "reverse": "copy backwards",
    "parity": "compute parity",
}
"""Task of the atlas to what a model must do."""
FIRST = (
    *((probe, "decoder") for probe in ("offset", "pointer", "index", "memory", "recall", "copy", "parity")),
    *((probe, "encoder") for probe in ("offset", "index", "order")),
)
"""Tasks and models of the README's table."""
USUAL = ("rope", "alibi", "t5(buckets=16, reach=16)", "learned", "sinusoidal", "nope")
"""Schemes that a reader may use already, the most frequent first."""
SHOWN, FAILS = 3, 0.8
"""Names in a cell of the README's table, and the most accuracy at 2 L of a row that it advises against."""
FAR, TWICE = 4.0, 2.0
"""Multiples of the longest trained size."""


def written() -> dict[Path, str]:
    """Return path to text of every page and document, and of the cells of the atlas."""
    return {FOLDER / f"{name}.md": page(measured(name)) for name in names()} | documents()


def documents() -> dict[Path, str]:
    """Return path to text of every document that may quote a record, and of the cells of the atlas."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    texts = {path: refresh(_tabled(path.read_text(encoding="utf-8"))) for path in paths}
    return texts | {FOLDER / "records" / atlas_cells.TABLE: atlas_cells.write(cells())}


@functools.cache
def cells() -> list[atlas_cells.AtlasCell]:
    """Read the cells of the atlas from its records."""
    recorded = [results for name in atlas.EXPERIMENTS if (results := measured(name).results) is not None]
    return [cell for results in recorded for cell in atlas_cells.atlas_cells(results)]


def _tabled(text: str) -> str:
    """Return a document with its tables as the records have them now."""
    for name, rows in TABLES.items():
        head, *lines = rows() if f"<!-- {name}: " in text else [()]
        between = rf"(<!-- {name}: [^>]*-->\n).*?(<!-- end of {name} -->)"
        text = re.sub(between, lambda m: f"{m[1]}\n{markdown(head, lines)}\n\n{m[2]}", text, flags=re.DOTALL)  # noqa: B023
    return text


def needs(model: str) -> Iterator[Row]:
    """Yield for each task of a model the rows that hold to 4 L and to 2 L, and how many fail before or do not learn."""
    yield "your model must", "0.9 up to 4 L or more", "up to 2 L", "fails before", "not learned"
    for probe in sorted(atlas.PROBES, key=[*NEEDS].index):
        reach = {c.row: c.reach or 0 for c in cells() if (c.model, c.probe) == (model, probe)}
        if reach:
            far = [f"`{row}`" for row in sorted(reach) if reach[row] >= FAR]
            twice = [f"`{row}`" for row in sorted(reach) if TWICE <= reach[row] < FAR]
            less, unlearned = sum(0 < t < TWICE for t in reach.values()), sum(not t for t in reach.values())
            yield NEEDS[probe], ", ".join(far) or "none", ", ".join(twice) or "none", str(less), str(unlearned)


def first_needs() -> Iterator[Row]:
    """Yield for each task of the README the well-known rows that hold furthest, those that fail, and their accuracy."""
    yield "I need to …", "in a", "take", "holds up to", "not", "how sure: accuracy of take and not at 2 L"
    known = executed(FOLDER / "figures" / "atlas_first.py").ROWS
    for probe, model in FIRST:
        of = {c.row: c for c in cells() if (c.model, c.probe) == (model, probe) and c.row in known}
        take = sorted(of.values(), key=lambda c: (-(c.reach or 0), -c.twice, c.row))
        take = [c for c in take if c.reach == take[0].reach][:SHOWN]
        fail = [of[row] for row in USUAL if not of[row].learned or of[row].twice <= FAILS][:SHOWN]
        span = f"{min(c.twice for c in take):.2f}, {max(c.twice for c in fail):.2f} (n = {take[0].seeds})"
        first, second = (", ".join(f"`{c.row}`" for c in which) for which in (take, fail))
        yield NEEDS[probe], model, first, f"{take[0].reach:g} L", second, span


def longer() -> Iterator[Row]:
    """Yield for each row of decoders how many tasks it learned and holds at 2 L and 4 L, the furthest first."""
    yield "scheme", "tasks", "learned", "0.9 up to 2 L", "up to 4 L", "which up to 4 L"
    of_row: dict[str, list[atlas_cells.AtlasCell]] = {}
    for cell in cells():
        if cell.model == "decoder":
            of_row.setdefault(cell.row, []).append(cell)
    held = {
        row: [[c.probe for c in of if (c.reach or 0) >= times] for times in (1.0, TWICE, FAR)]
        for row, of in of_row.items()
    }
    for row in sorted(held, key=lambda row: ([-len(probes) for probes in held[row][::-1]], row)):
        at_far = ", ".join(sorted(held[row][-1], key=[*atlas.PROBES].index)) or "none"
        yield f"`{row}`", str(len(of_row[row])), *(str(len(probes)) for probes in held[row]), at_far


BACK, ROW, TRAINED = "token_k_back(k=3)", 64, 16


def places() -> Iterator[Row]:
    """Yield the accuracy of each scheme between the positions where training ended or RoPE steps by arithmetic."""
    of, cuts = measured("first_look"), {TRAINED, *(first for first, _, _ in _stretches(ROW))}
    ends = [*zip(sorted(cuts), [*(first - 1 for first in sorted(cuts)[1:]), ROW - 1], strict=True)]
    rows = {name: [_at(of, name, ROW, *end) for end in ends] for name in of.schemes(BACK)}
    named = (f"{first} to {last}{' (trained)' * (last < TRAINED)}" for first, last in ends)
    yield f"accuracy in a row of {ROW}, at positions", *named
    for name in sorted(rows, key=lambda name: -sum(s.median for s in rows[name])):
        yield f"`{name}`", *(f"{s.median:.2f}" for s in rows[name])


def alias_stretches() -> Iterator[Row]:
    """Yield the stretches that arithmetic cuts rows into, and the accuracy of RoPE in each."""
    yield "row of", "positions", "aliases in view", "accuracy, median of seeds", "lowest seed", "highest seed"
    for size in (20, 24, 32, 48, 64):
        for first, last, in_view in _stretches(size):
            s = _at(measured("first_look"), "rope", size, first, last)
            seeds = measured("first_look").seeds(BACK, "rope", size, "accuracy", _bins(size, first, last))
            distances = ", ".join(f"{alias.distance:+}" for alias in in_view) or "none"
            span = f"{first} to {last}" if first < last else str(first)
            yield str(size), span, distances, f"{s.median:.2f}", f"{min(seeds):.2f}", f"{max(seeds):.2f}"


def _stretches(size: int) -> list:
    return aliases.stretches(aliases.find_aliases(_head("rope"), size), 3, size)


def _bins(size: int, first: int, last: int) -> tuple[int, int]:
    """Return the bins that hold positions: two positions wide in rows longer than 32."""
    return first - (size > 32), last


def _at(of, name: str, size: int, first: int, last: int):
    return summary(of.seeds(BACK, name, size, "accuracy", _bins(size, first, last)))


def bases() -> Iterator[Row]:
    """Yield the pairs that turn within the trained distances, and the strongest aliases, by base."""
    yield "base", "periods of pairs that turn", "gap behind, in 64", "gap ahead, in 64", "smallest gap in 256"
    for base in (10, 16, 100, 1000, 10_000, 100_000):
        head = _head(f"rope(base={base}.0)")
        periods = [f"{period:.1f}" for period in 2 * math.pi / head.frequencies if period <= np.ptp(head.span)]
        row = aliases.find_aliases(head, ROW, 0.5)
        sides = [[(gap, distance) for distance, gap in row if (distance > 0) == ahead] for ahead in (False, True)]
        gaps = [f"{min(side)[0]:.2f} at {min(side)[1]:+}" if side else "above 0.5" for side in sides]
        smallest = min(alias.gap for alias in aliases.find_aliases(head, 256, 1.0))
        yield f"{base:,}", ", ".join(periods), *gaps, f"{smallest:.2f}"


def _head(scheme: str) -> aliases.Head:
    """Return the head of `first_look`: 16 features, the token three back, rows of up to 16 tokens."""
    return aliases.widest_head(aliases.frequencies(scheme, 16, TRAINED), 3, TRAINED)


def sources() -> Iterator[Row]:
    """Yield gains on copies and on the chain at the trained length and far beyond, and the effective context."""
    copies, chain = measured("language"), measured("language_control")
    columns = ("copies at 64", "copies at 1,024", "context at 256", "context at 1,024", "chain at 64", "chain at 1,024")
    yield "scheme", *columns
    (task,), (control,) = copies.tasks, chain.tasks
    gain = {label: copies.summary(task, label, 1024).median for label in chain.schemes(control)}
    for label in sorted(gain, key=lambda label: -gain[label]):
        on_copies = [f"{copies.summary(task, label, size).median:.2f}" for size in (64, 1024)]
        context = [f"{copies.memory(task, label, size):.0f}" for size in (256, 1024)]
        on_chain = [f"{chain.summary(control, label, size).median:.2f}" for size in (64, 1024)]
        name = "lstm" if "lstm" in label else label.partition(" (")[0]
        yield f"`{name}`", *on_copies, *context, *on_chain


def text_bits() -> Iterator[Row]:
    """Yield bits per byte of schemes and of models that count, at the trained length and beyond."""
    of, sizes = measured("text"), (128, 256, 1024)
    yield "scheme", *(f"length {size:,}" for size in sizes)
    (task,) = of.tasks
    rows = {f"`{name}`": [of.summary(task, name, size).median for size in sizes] for name in of.schemes(task)}
    for name in ("order 5", "bigram", "unigram"):
        rows[f"{name} (counts)"] = [of.baselines(task, size)[name] for size in sizes]
    for name in sorted(rows, key=lambda name: rows[name][-1]):
        yield name, *(f"{bits:.2f}" for bits in rows[name])


TABLES: dict[str, Callable[[], Iterator[Row]]] = {
    "first_needs": first_needs,
    "needs": functools.partial(needs, "decoder"),
    "needs_of_encoders": functools.partial(needs, "encoder"),
    "longer": longer,
    "places": places,
    "aliases": alias_stretches,
    "bases": bases,
    "sources": sources,
    "text_bits": text_bits,
}
"""The name of a table in a document to its rows, the heads first."""
