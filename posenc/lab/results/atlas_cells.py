"""Cells of the atlas: how far each row carries on each task, from its records, and as the table that comes with posenc.
This needs no jax.

L is the longest trained size. As in every table, a number is the median over seeds at the rates that tie in validation.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from posenc.lab.results import statistics
from posenc.lab.results.floors import highest
from posenc.lab.results.rate_gaps import by_rate
from posenc.lab.results.results import Results, grouped
from posenc.lab.results.statistics import TableCell, furthest, summary
from posenc.lab.results.words import label_parts
from posenc.lab.spec import atlas, committed
from posenc.lab.store.schema import GroupRecord, PlannedTrial, TaskRecord
from posenc.language.echo import plural

TIMES = (1, 2, 4)
"""Sizes that are told, in L."""
APART = 0.2
"""The gap at a size beyond L from which the medians of tying rates are reported as different."""
TABLE = "atlas.cells.csv"
"""The name of the table, beside the records."""
PROBE_OF = {probe.task: name for name, probe in atlas.PROBES.items()}


@dataclass(frozen=True)
class AtlasCell:
    """A row of the atlas on a probe."""

    row: str
    """The scheme's text, or the model in its place."""
    model: str
    probe: str
    family: str
    trained: float
    """The least median at a size trained on."""
    reach: float | None
    """The furthest size, in L, up to which the median is at least 0.9; None where it is less at a size trained on."""
    once: float
    """The median at L."""
    twice: float
    """At 2 L."""
    four: float
    """At 4 L."""
    floor: float
    """The highest floor at 2 L."""
    rates_apart: float
    """The largest difference at a size beyond L between the medians of rates that tie in validation."""
    seeds: int
    rates: int
    """How many were tried."""
    diverged: int
    failed: int
    """Trials that ended without a result."""

    @property
    def learned(self) -> bool:
        """Tell whether every trained size was learned; without that a longer one shows nothing."""
        return self.reach is not None

    @property
    def held(self) -> str:
        """How far it holds, in words."""
        return "not learned" if self.reach is None else f"to {self.reach:g} L"

    @property
    def above(self) -> float:
        """How far the median at 2 L is on the way from the highest floor to 1, cut to 0..1."""
        return min(max((self.twice - self.floor) / (1 - self.floor), 0.0), 1.0) if self.floor < 1 else 0.0


COLUMNS = tuple(f.name for f in fields(AtlasCell))
_TEXTS = ("row", "model", "probe", "family")
_COUNTS = ("seeds", "rates", "diverged", "failed")


def atlas_cells(results: Results) -> list[AtlasCell]:
    """The cells that these results have, probe after probe; other tasks than probes are left out."""
    made = [cell for of_model in on_probes(results) for cell in _cells(of_model)]
    order = [*atlas.PROBES]
    return sorted(made, key=lambda c: (order.index(c.probe), c.model, c.row))


def on_probes(results: Results) -> list[Results]:
    """The results on tasks that are probes, those of each model by the metrics that its probes have."""
    probes = {task: atlas.PROBES[PROBE_OF[task]] for task in results.choices("task") if task in PROBE_OF}
    on_tasks = results.only(task=tuple(probes))
    models = grouped((_model(record), record) for record in on_tasks.records)
    return [
        replace(
            on_tasks, records=tuple(records), unfinished=tuple(u for u in on_tasks.unfinished if _model(u) == model)
        ).shown({task: probe.metric_in(model) for task, probe in probes.items()})
        for model, records in models.items()
    ]


def _model(record: GroupRecord | PlannedTrial) -> str:
    """Return "encoder" or "decoder"; recurrent models count as decoders."""
    return "encoder" if str(record.run["model"]).partition("(")[0] == "encoder" else "decoder"


def _cells(results: Results) -> Iterator[AtlasCell]:
    tasks, models = results.tasks(), results.models()
    for cell in statistics.cells(results):
        if (key := (cell.task, cell.scheme)) in models:
            yield _cell(cell, tasks[cell.task], models[key])


def placed(label: str, model: str) -> tuple[str, str]:
    """The row of the atlas that a scheme's label in a model belongs to, and the model around it."""
    return (model, "decoder") if model in atlas.RECURRENT else (label_parts(label)[0], model)


def _cell(cell: TableCell, task: TaskRecord, model: str) -> AtlasCell:
    (row, kind), longest = placed(cell.scheme, model), cell.trained[1]
    medians = {n: summary(values).median for n, values in cell.values.items() if n >= cell.trained[0] and values}
    at = [medians.get(times * longest, math.nan) for times in TIMES]
    floor = highest(task, [2 * longest])
    counts = [cell.counts.get("diverged", 0), sum(n for of, n in cell.counts.items() if of not in ("done", "diverged"))]
    inside = min(medians[n] for n in cell.inside)
    numbers = [inside, reach(medians, longest), *at, floor, _rates_apart(cell)]
    rounded = [None if value is None else round(value, 4) for value in numbers]
    return AtlasCell(row, kind, PROBE_OF[cell.task], cell.family, *rounded, cell.n, len(cell.rates), *counts)


def reach(medians: Mapping[int, float], longest: int) -> float | None:
    """The furthest size, in L, up to which every median holds, if those trained on do."""
    held = furthest(medians) or 0
    return None if held < longest else held / longest


def _rates_apart(cell: TableCell) -> float:
    beyond = ([r.median for r in by_rate(cell.runs[n], cell.reported).values()] for n in cell.beyond)
    return max((max(medians) - min(medians) for medians in beyond if medians), default=0.0)


def table() -> Path | None:
    """The table of cells that comes with posenc; None where no folder of experiments has it."""
    return next((path for folder in committed.folders() if (path := folder / "records" / TABLE).is_file()), None)


def recorded_cells() -> tuple[AtlasCell, ...]:
    """The cells of that table."""
    path = table()
    return () if path is None else tuple(read(path.read_text(encoding="utf-8")))


def measured(text: str, cells: Iterable[AtlasCell] | None = None) -> str:
    """Describe what the atlas has of a scheme, in a sentence for each model; empty if it has no row.

    >>> cell = AtlasCell("rope", "decoder", "offset", "rotary", 1.0, 1.25, 1.0, 0.88, 0.5, 0.1, 0.0, 2, 2, 0, 0)
    >>> measured("rope", [cell])
    'decoder: offset to 1.25 L (2 seeds × 2 rates; experiments/atlas.py)'
    """
    row = atlas.row_of(text)
    of_row = [cell for cell in (recorded_cells() if cells is None else cells) if cell.row == row]
    sentences = []
    for model in dict.fromkeys(cell.model for cell in of_row):
        of_model = [cell for cell in of_row if cell.model == model]
        carried = [f"{c.probe} {c.held}" for c in sorted(of_model, key=lambda c: -(c.reach or 0)) if c.learned]
        lost = [cell.probe for cell in of_model if not cell.learned]
        parts = [", ".join(carried)] * bool(carried) + [f"not learned: {', '.join(lost)}"] * bool(lost)
        seeds, rates = min(cell.seeds for cell in of_model), min(cell.rates for cell in of_model)
        files = dict.fromkeys(f"experiments/{atlas.experiment(model, cell.probe)}.py" for cell in of_model)
        sentences.append(f"{model}: {'; '.join(parts)} ({runs_named(seeds, rates)}; {', '.join(files)})")
    return "; ".join([*([f"as {row}"] if sentences and text in atlas.EQUAL else []), *sentences])


def runs_named(seeds: int, rates: int) -> str:
    """The runs behind a cell: "2 seeds × 2 rates"."""
    return f"{plural(seeds, 'seed')} × {plural(rates, 'rate')}"


def read(text: str) -> Iterator[AtlasCell]:
    """Cells from a table as `write` makes it."""
    for line in csv.DictReader(io.StringIO(text)):
        yield AtlasCell(**{name: _value(name, line[name]) for name in COLUMNS})


def write(cells: Iterable[AtlasCell]) -> str:
    """Cells as CSV."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(COLUMNS)
    lines.writerows([["" if (v := getattr(cell, name)) is None else v for name in COLUMNS] for cell in cells])
    return out.getvalue()


def _value(name: str, text: str) -> Any:
    if name in _TEXTS:
        return text
    return int(text) if name in _COUNTS else float(text) if text else None
