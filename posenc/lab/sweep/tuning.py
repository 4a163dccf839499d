"""The two stages of a sweep that tunes: some seeds choose a learning rate for each run, and others train at it.

The trials that tune are planned first, and name the seeds to be reported. Those are planned as soon as every tuning
trial of their run has a result, by whoever comes first: the sweep, or any worker that sees its folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from posenc.lab.results.rates import decided
from posenc.lab.results.results import load
from posenc.lab.spec.run import Knobs
from posenc.lab.store import folder as store
from posenc.lab.store.schema import PlannedTrial, written
from posenc.lab.sweep import plan


def rates(folder: Path) -> Mapping[str, float]:
    """Tuning trial to the learning rate that was chosen for its run, where every tuning trial of it has a result."""
    if not (folder / "plan.jsonl").exists() or not any(line.tuning for line in store.read_plan(folder)):
        return {}
    return decided(load(folder))


def stages(folder: Path) -> Iterator[tuple[list[PlannedTrial], list[PlannedTrial]]]:
    """The whole plan and what is new in it, stage after stage: once one is done, `extend` plans the next."""
    every, tried = store.read_plan(folder), set()
    while new := [line for line in every if line.id not in tried]:
        yield every, new
        tried |= {line.id for line in new}
        extend(folder)
        every = store.read_plan(folder)


def extend(folder: Path) -> bool:
    """Plan the reported trials of the runs whose rate is decided now; whether there were any to plan.

    It needs nothing but the folder. A run's new groups are as large as the largest of its tuning ones.
    """
    planned = store.read_plan(folder)
    if not any(line.tuning for line in planned):
        return False
    chosen, known, new = rates(folder), {line.id for line in planned}, []
    for of_run in store.by_run(line for line in planned if line.tuning):
        found = next((chosen[line.id] for line in of_run if line.id in chosen), None)
        if found is not None:
            new += _reported(of_run, found, known)
    return bool(store.write_plan(folder, new)) if new else False


def _reported(tuning: Sequence[PlannedTrial], rate: float, known: set[str]) -> list[PlannedTrial]:
    """The reported trials of a run that are not planned yet, at this rate."""
    first, resolved = tuning[0], plan.planned_run(tuning[0].run)
    found = {}
    for seed in sorted({seed for line in tuning for seed in line.reports or ()}):
        knobs = replace(first.knobs, seed=seed, lr=rate)
        id = plan.identity(resolved, Knobs(**written(knobs)), first.steps)
        if id not in known:
            found[id] = knobs
    group = plan.grouped(list(found), max(Counter(line.group for line in tuning).values()))
    return [replace(first, id=id, group=group[id], knobs=knobs, reports=None) for id, knobs in found.items()]
