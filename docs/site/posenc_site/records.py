"""Everything that the pages take from results and figures of the laboratory, as plain values, read once."""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from posenc.lab.cli import claims
from posenc.lab.figures.across import by_merit, looks_of
from posenc.lab.figures.figures import length_panels, worded
from posenc.lab.figures.panels import ranged
from posenc.lab.figures.style import HUES
from posenc.lab.report.vega import dashes, medians
from posenc.lab.results import statistics
from posenc.lab.results.atlas_cells import PROBE_OF, AtlasCell, on_probes, placed, reach, recorded_cells, runs_named
from posenc.lab.results.evidence import Evidence
from posenc.lab.results.floors import floors, highest
from posenc.lab.results.published import count_seen
from posenc.lab.results.results import Results, load
from posenc.lab.results.statistics import TableCell, at_chosen_rates
from posenc.lab.results.verdicts import count_verdicts, findings
from posenc.lab.spec import atlas, committed
from posenc.lab.spec.committed import words_in
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.experiment_file import from_file
from posenc.lab.store.records import PACKED

__all__ = ["HUES", "AtlasCell", "recorded_cells", "runs_named"]
ROOT = Path(__file__).resolve().parents[3]
EXPERIMENTS = ROOT / "experiments"
TIMES = (1, 1.25, 2, 4)
"""Sizes of the heat map, in L, the longest size trained on."""
CHOSEN = "chosen"
"""The rate that validation at the sizes trained on chose."""
MANY, PLACES = 5, 3
"""The fewest lines of a panel, through this many sizes or more, that get a figure to choose from."""
SIZES = 4


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Shelved:
    """An experiment and its committed results."""

    experiment: Experiment
    recorded: bool = False
    recorded_schemes: frozenset[str] = frozenset()
    """The words in labels of its record; the names of schemes are among them."""
    floors: Mapping[str, Table] = field(default_factory=dict)
    """The label of each recorded task to its floors."""
    counts: Mapping[str, str] = field(default_factory=dict)
    """"published" and "ours" to how often each verdict was given."""
    seen: str = ""
    provenance: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lengths: Sequence[Mapping[str, Any]] = ()
    """Curves of accuracy by size, for tasks with many lines."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return self.experiment.name

    @property
    def page(self) -> str:
        """Its committed page, from its title on; the site has what the page leaves to the file."""
        text = (EXPERIMENTS / f"{self.name}.md").read_text(encoding="utf-8")
        return re.sub(r"\nSource, setting, .*\n", "", text[text.index("# ") :])

    @functools.cached_property
    def tasks(self) -> set[str]:
        """The tasks of its runs, without settings."""
        return {run.task.partition("(")[0] for run in self.experiment.runs}

    @property
    def recorded_tasks(self) -> set[str]:
        """The tasks of its record, without settings."""
        return {label.partition("(")[0] for label in self.floors}


@functools.cache
def shelve() -> tuple[Shelved, ...]:
    """Read every experiment, in the order of their names."""
    return tuple(shelved(path) for path in sorted(EXPERIMENTS.glob("*.py")) if path.name[0] != "_")


@functools.cache
def _results(record: Path) -> Results | None:
    """Read a record; a damaged one counts as none, since `posenc reproduce` names its fault."""
    with contextlib.suppress(ValueError):
        return load(record) if record.is_file() else None


def shelved(path: Path) -> Shelved:
    """Read one experiment and its record."""
    experiment, results = from_file(path, yes=True), _results(committed.record_of(path))
    evidence = Evidence(results) if results else None
    found = findings(experiment.published, evidence, experiment.header.attempted)
    counts = {origin: claims.verdicts(count_verdicts(found)[origin]) for origin in claims.CALLED}
    common = {
        "counts": counts,
        "seen": claims.sightings(count_seen(experiment.published)).replace("none", ""),
    }
    if results is None or evidence is None:
        return Shelved(experiment, **common)
    tasks = {r.task.label: r.task for r in reversed(results.records)}
    return Shelved(
        experiment,
        recorded=True,
        recorded_schemes=frozenset().union(*(words_in(r.label) for r in results.records)),
        floors={label: _floors(tasks[label]) for label in reversed(tasks)},
        provenance=results.provenance(),
        lengths=lengths(experiment, results),
        **common,
    )


def _floors(task: Any) -> Table:
    """List what needs no learning, as the record counted it."""
    at = floors(task)
    shown = [n for n in sorted(at) if n >= task.trained[1]] or sorted(at)
    shown = shown[:: max(1, len(shown) // SIZES)]
    names = list(dict.fromkeys(floor for n in shown for floor in at[n]))
    rows = [(n, *(two(at[n].get(floor)) for floor in names)) for n in shown]
    return Table(f"{task.label}, in {task.read_by or task.metric}", ("size", *names), rows)


def two(value: float | None) -> str:
    """Write a share in two digits."""
    return "–" if value is None else f"{value:.2f}"


def lengths(experiment: Experiment, results: Results) -> list[dict[str, Any]]:
    """Collect the panel of each task with many schemes, and a line for each, the best first."""
    results = worded(experiment, results)
    shown = [p for p in length_panels(results) if sum(len(of) >= PLACES for of in p.points.values()) >= MANY]
    names = results.words.lines(dict.fromkeys(scheme for panel in shown for scheme in panel.points))
    looks, made = looks_of(results, names), []
    for p in shown:
        lines = [
            {"name": names[s], "colour": looks[s].colour, "dash": dashes(looks[s]), "points": [*medians(p, s)]}
            for s in by_merit([p])
        ]
        title = f"{p.title}, trained on {ranged(*p.trained)}" if p.trained else p.title
        made.append({"title": title, "panel": p, "lines": lines})
    return made


def atlas_records(folder: Path = EXPERIMENTS) -> list[Path]:
    """List the committed records of the atlas, and those of its other probes that are trained so far."""
    places = (folder / "records", folder / "records" / "partial")
    paths = [place / f"{name}.json{PACKED}" for name in atlas.EXPERIMENTS for place in places]
    return [path for path in paths if path.is_file()]


def atlas_data(paths: Iterable[Path]) -> dict[str, list[dict[str, Any]]]:
    """Collect the cells of the heat map, and accuracy by place where the records counted it."""
    each = [results for path in paths for results in on_probes(load(path))]
    return {"cells": [c for r in each for c in _cells(r)], "places": [line for r in each for line in _places(r)]}


def _cells(results: Results) -> Iterator[dict[str, Any]]:
    """Yield a cell for each row, probe, model and choice of the learning rate."""
    tasks, models = results.tasks(), results.models()
    by_rate: dict[tuple[str, str], dict[float, dict[int, dict[int, float]]]] = {}
    for r in results.rows():
        sizes = by_rate.setdefault((r.task, r.scheme), {}).setdefault(r.lr, {})
        sizes.setdefault(r.size, {})[r.seed] = r.value
    for cell in statistics.cells(results):
        key = cell.task, cell.scheme
        if key not in models:
            continue
        row, model = placed(cell.scheme, models[key])
        floor = highest(tasks[cell.task], [2 * cell.trained[1]])
        same = {"row": row, "model": model, "probe": PROBE_OF[cell.task], "family": cell.family, "floor": _brief(floor)}
        same["lost"] = ", ".join(f"{n} {outcome}" for outcome, n in cell.counts.items() if outcome != "done")
        reported = " and ".join(f"{rate:g}" for rate in cell.reported)
        yield {**same, "rate": CHOSEN, "at": reported, **_numbers(cell, cell.values)}
        for rate, sizes in sorted(by_rate.get(key, {}).items()):
            yield {
                **same,
                "rate": f"{rate:g}",
                "at": f"{rate:g}",
                **_numbers(cell, {n: [*of.values()] for n, of in sizes.items()}),
            }


def _numbers(cell: TableCell, values: Mapping[int, Sequence[float]]) -> dict[str, Any]:
    """Compute medians at the sizes to choose from, how far they hold, and the text of the runs behind them."""
    longest = cell.trained[1]
    medians = {n: median(of) for n, of in sorted(values.items()) if n >= cell.trained[0] and of}
    sizes = {times: int(times * longest) for times in TIMES}
    at = {f"x{times:g}".replace(".", "_"): _brief(medians.get(n, math.nan)) for times, n in sizes.items()}
    runs = {times: ", ".join(f"{value:.2f}" for value in values[n]) for times, n in sizes.items() if n in values}
    trained = min((medians[n] for n in cell.inside if n in medians), default=math.nan)
    held = reach(medians, longest)
    words = "; ".join(f"{times:g} L: {text}" for times, text in runs.items())
    return {**at, "reach": held and _brief(held), "trained": _brief(trained), "n": cell.n, "runs": words}


def _places(results: Results) -> Iterator[dict[str, Any]]:
    """Yield the median share right in each bin of places of the longest size, at the chosen rates."""
    models = results.models()
    shares: dict[tuple[str, str, str, int], dict[float, list[float]]] = {}
    for task, label, trial in at_chosen_rates(results):
        if task.places and trial.places and (task.label, label) in models:
            size = max(task.places)
            bins, right = task.places[size], (trial.places.get(size) or {}).get("right", ())
            key = (*placed(label, models[task.label, label]), PROBE_OF[task.label], size)
            for k, (hits, scored) in enumerate(zip(right, bins["scored"], strict=False)):
                if scored:
                    middle = k * bins["width"] + (bins["width"] - 1) / 2
                    shares.setdefault(key, {}).setdefault(middle, []).append(hits / scored)
    for (row, model, probe, size), of in shares.items():
        if len(of) > 1:
            line = [[x, _brief(median(values))] for x, values in sorted(of.items())]
            yield {"row": row, "model": model, "probe": probe, "size": size, "line": line}


def _brief(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 3)
