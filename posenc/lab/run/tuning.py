"""Two stages of a sweep that tunes: some seeds choose a learning rate for each run, and others train at it.

The tuning trials are planned first, and name the seeds to be reported. The reported trials are planned as soon as every
tuning trial of their run has a result. The first to see it plans them: the sweep, or any worker that sees its folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from posenc.lab.results.rates import decided
from posenc.lab.results.results import Results, load
from posenc.lab.results.standing import standing
from posenc.lab.run import plan
from posenc.lab.spec.run import Knobs
from posenc.lab.store import folder as store
from posenc.lab.store.schema import PlannedTrial, written
from posenc.lab.train.training import ResolvedRun


class Share(NamedTuple):
    """Trials of a run folder that one command trains."""

    ids: Collection[str]
    """The trials that are planned."""
    candidates: Collection[str]
    """The reported trials at every learning rate that is tried. Trials at the chosen rate are planned later."""
    total: int
    """How many trials there will be, once all rates are chosen."""
    runs: Mapping[str, ResolvedRun]
    """The runs of the trials, by what the plan says of each as canonical JSON."""
    group_size: int | None
    """The most trials of a group that is planned later; None for all of a run."""


class Stage(NamedTuple):
    """Work that is to be done now."""

    lines: list[PlannedTrial]
    """The plan, without reported trials whose rate is not the chosen one."""
    new: list[PlannedTrial]
    """The trials that no stage before had."""
    total: int
    """How many trials there will be, at most, once all rates are chosen."""


def rates(folder: Path) -> Mapping[str, float]:
    """Return tuning trial to the learning rate that was chosen for its run, if every tuning trial of it has a result.
    In a folder without a plan, every recorded one must have a result."""
    if not (folder / "plan.jsonl").exists():
        return decided(Results(folder.name, store.read_records(folder).records)) if folder.exists() else {}
    return decided(load(folder)) if any(line.tuning for line in store.read_plan(folder)) else {}


def stages(folder: Path, only: Share | None = None) -> Iterator[Stage]:
    """Stage after stage of a run folder, or of one command's share: once one is done, `extend` plans the next."""
    tried: set[str] = set()
    while True:
        planned = store.read_plan(folder)
        now = standing(folder, planned)
        lines = [line for line in planned if _takes_part(line.id, now.idle, only)]
        new = [line for line in lines if line.id not in tried]
        if not new:
            return
        yield Stage(lines, new, len(lines) + now.undecided if only is None else only.total)
        tried |= {line.id for line in new}
        if only is None or only.candidates:
            extend(folder, only)


def _takes_part(id: str, idle: Collection[str], only: Share | None) -> bool:
    if only is None:
        return id not in idle
    return id in only.ids or (id in only.candidates and id not in idle)


def extend(folder: Path, only: Share | None = None) -> bool:
    """Plan the reported trials of the runs whose rate is decided now; whether there were any to plan.

    It needs nothing but the folder. The new groups of a run are then as large as the largest of its tuning ones.
    """
    planned = store.read_plan(folder)
    if not any(line.tuning for line in planned):
        return False
    decided, ids, new = rates(folder), {line.id for line in planned}, []
    for of_run in store.by_run(line for line in planned if line.tuning and (only is None or line.id in only.ids)):
        rate = next((decided[line.id] for line in of_run if line.id in decided), None)
        if rate is not None:
            most = only.group_size if only else max(Counter(line.group for line in of_run).values())
            new += _reported(of_run, rate, ids, most)
    return bool(store.write_plan(folder, new)) if new else False


def _reported(
    tuning: Sequence[PlannedTrial], rate: float, planned: Collection[str], most: int | None
) -> list[PlannedTrial]:
    """Return the reported trials of a run that are not planned yet, at this rate, in groups of limited size."""
    first, knobs = tuning[0], {}
    for seed in sorted(store.reported(tuning)):
        of_seed = replace(first.knobs, seed=seed, lr=rate)
        id = plan.trial_name(first.run, Knobs(**written(of_seed)), first.steps)
        if id not in planned:
            knobs[id] = of_seed
    group = plan.grouped(list(knobs), most)
    return [replace(first, id=id, group=group[id], knobs=knobs[id], reports=None) for id in knobs]
