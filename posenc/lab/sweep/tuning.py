"""The two stages of a sweep that tunes: some seeds choose a learning rate for each run, and others train at it.

The trials that tune are planned first, and name the seeds to be reported. Those are planned as soon as every tuning
trial of their run has a result, by whoever comes first: the sweep, or any worker that sees its folder. All tuning
trials of a run that are planned in a folder take part in the choice, whichever command planned them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from posenc.lab.results.rates import decided
from posenc.lab.results.results import load
from posenc.lab.results.standing import standing
from posenc.lab.spec.run import Knobs, Plan
from posenc.lab.store import folder as store
from posenc.lab.store.schema import KnobRecord, PlannedTrial, written
from posenc.lab.sweep import plan
from posenc.lab.train.training import ResolvedRun
from posenc.language.echo import plural


def rates(folder: Path) -> Mapping[str, float]:
    """Tuning trial to the learning rate that was chosen for its run, where every tuning trial of it has a result."""
    if not (folder / "plan.jsonl").exists() or not any(line.tuning for line in store.read_plan(folder)):
        return {}
    return decided(load(folder))


def planned(folder: Path, runs: Sequence[ResolvedRun], requested: Plan) -> list[list[PlannedTrial]]:
    """What is planned of each run in a folder, by whichever command; nothing where none of its seeds are to tune."""
    if not requested.tuning or not (folder / "plan.jsonl").exists():
        return [[] for _ in runs]
    knobs = KnobRecord(**requested.knobs()[0]._asdict())
    keys = [store.run_key(store.canonical(plan.written(resolved)), requested.steps, knobs) for resolved in runs]
    every = store.by_run(store.read_plan(folder))
    found = {store.run_key(store.canonical(one[0].run), one[0].steps, one[0].knobs): one for one in every}
    return [found.get(key, []) for key in keys]


def earlier(of_run: Iterable[PlannedTrial], requested: Plan) -> list[PlannedTrial]:
    """The tuning trials of a run that are not requested now: they take part in the choice, and so are trained too."""
    wanted = {(seed, rate) for seed in requested.tuning for rate in requested.lr}
    return [line for line in of_run if line.tuning and (line.knobs.seed, line.knobs.lr) not in wanted]


def takes_part(lines: Sequence[PlannedTrial]) -> str:
    """A sentence on tuning trials that are not requested now; empty where there are none."""
    if not lines:
        return ""
    rates = ", ".join(f"{rate:g}" for rate in sorted({line.knobs.lr for line in lines}))
    which = f"{plural(len(lines), 'tuning trial')} that earlier commands planned here (lr {rates})"
    return f"The choice of learning rates is also among {which}; use a new --name to choose without."


class Stage(NamedTuple):
    """What those who see the folder alone are to do."""

    every: list[PlannedTrial]
    """The plan, without reported trials whose rate is not the chosen one."""
    new: list[PlannedTrial]
    """What no stage before had."""
    total: int
    """How many trials there will be, at most, once all rates are chosen."""


def stages(folder: Path) -> Iterator[Stage]:
    """Stage after stage: once one is done, `extend` plans the next."""
    tried: set[str] = set()
    while True:
        now = standing(folder)
        every = [line for line in store.read_plan(folder) if line.id not in now.idle]
        new = [line for line in every if line.id not in tried]
        if not new:
            return
        yield Stage(every, new, len(every) + now.undecided)
        tried |= {line.id for line in new}
        extend(folder)


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
    for seed in sorted(store.reported(tuning)):
        knobs = replace(first.knobs, seed=seed, lr=rate)
        id = plan.identity(resolved, Knobs(**written(knobs)), first.steps)
        if id not in known:
            found[id] = knobs
    group = plan.grouped(list(found), max(Counter(line.group for line in tuning).values()))
    return [replace(first, id=id, group=group[id], knobs=knobs, reports=None) for id, knobs in found.items()]
