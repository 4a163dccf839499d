"""What the heat map of the atlas shows: a line for each row, probe, model and choice of the learning rate. No jax."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from posenc.lab.results import statistics
from posenc.lab.results.atlas_cells import PROBE_OF, on_probes, placed, reach
from posenc.lab.results.floors import highest
from posenc.lab.results.results import Results, load
from posenc.lab.results.statistics import TableCell, at_chosen_rates
from posenc.lab.spec import atlas
from posenc.lab.store.records import PACKED

TIMES = (1, 1.25, 2, 4)
"""The sizes to choose from, in L, the longest size trained on."""
CHOSEN = "chosen"
"""The rate that validation at the sizes trained on chose."""


def records(folder: Path) -> list[Path]:
    """The committed records of the atlas in a folder of experiments, and what is trained of its other probes so far."""
    places = (folder / "records", folder / "records" / "partial")
    paths = [place / f"{name}.json{PACKED}" for name in atlas.EXPERIMENTS for place in places]
    return [path for path in paths if path.is_file()]


def atlas_data(paths: Iterable[Path]) -> dict[str, list[dict[str, Any]]]:
    """The lines of the heat map, and accuracy by place where the records counted it."""
    each = [results for path in paths for results in on_probes(load(path))]
    lines = [line for results in each for line in _lines(results)]
    places = [line for results in each for line in _places(results)]
    return {"cells": lines, "places": places}


def _lines(results: Results) -> Iterator[dict[str, Any]]:
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
        yield same | {"rate": CHOSEN, "at": reported} | _numbers(cell, cell.values)
        for rate, sizes in sorted(by_rate.get(key, {}).items()):
            yield (
                same
                | {"rate": f"{rate:g}", "at": f"{rate:g}"}
                | _numbers(cell, {n: tuple(of.values()) for n, of in sizes.items()})
            )


def _numbers(cell: TableCell, values: Mapping[int, Sequence[float]]) -> dict[str, Any]:
    """Medians at the sizes to choose from, how far they hold, and the runs behind them."""
    longest = cell.trained[1]
    medians = {n: median(of) for n, of in sorted(values.items()) if n >= cell.trained[0] and of}
    at = {f"x{times:g}".replace(".", "_"): _brief(medians.get(int(times * longest), math.nan)) for times in TIMES}
    runs = "; ".join(
        f"{times:g} L: {', '.join(f'{value:.2f}' for value in values[int(times * longest)])}"
        for times in TIMES
        if int(times * longest) in values
    )
    trained = min((medians[n] for n in cell.inside if n in medians), default=math.nan)
    held = reach(medians, longest)
    return {**at, "reach": held and _brief(held), "trained": _brief(trained), "n": cell.n, "runs": runs}


def _places(results: Results) -> Iterator[dict[str, Any]]:
    """The median share right in each bin of places of the longest size, at the chosen rates."""
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


def columns(model: str) -> list[str]:
    """The probes of a model, in the order of the atlas."""
    return [name for name, probe in atlas.PROBES.items() if model in probe.models]
