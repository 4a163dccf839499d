"""A worker of a run that is planned already: it does what is left, beside any others that see the same folder."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.store.schema import PlannedTrial
from posenc.lab.sweep import plan, tuning
from posenc.lab.sweep.loop import Groups, carry_out, named, waiting
from posenc.lab.sweep.progress import Progress
from posenc.lab.sweep.team import DONE, FAILED, outcome
from posenc.lab.train.lanes import arrangement
from posenc.lab.train.training import ResolvedRun
from posenc.language.echo import plural


def work(
    folder: Path,
    *,
    keep: bool = False,
    lanes: str | None = None,
    save_every: float = checkpoints.EVERY,
    watch: Progress,
) -> int:
    """Train what is left of the plan; returns the exit code: failed where any trial of the plan failed.

    It starts by the names of records alone. Once nothing is left by these, it reads the records, and trains what
    damaged ones lost. Reported trials are planned when the learning rate of their run is chosen. Raises `ValueError`
    at a run that another version planned.
    """
    how, resolved = arrangement(lanes), _Resolved()

    def train(groups: Groups) -> int:
        return carry_out(folder, groups, resolved, how, keep=keep, save_every=save_every, watch=watch)

    for every, lines, total in tuning.stages(folder):
        store.ready(folder)
        done = named(folder, every)
        groups = waiting(folder, lines, done, keep)
        many = sum(map(len, groups.values()))
        watch.begin(total, len(every) - many, None)
        if (code := train(turned(groups))) not in (DONE, FAILED):
            return code
        lost = done - store.survey(folder).outcomes.keys()
        if again := waiting(folder, [line for line in lines if line.id in lost], (), False):
            records = f"Records of {plural(len(again), 'group')}"
            watch.note(f"{records} are damaged, as `posenc status` says; running again.")
            if (code := train(again)) not in (DONE, FAILED):
                return code
    return outcome(folder)


def turned(groups: Mapping[str, list[PlannedTrial]]) -> dict[str, list[PlannedTrial]]:
    """The groups from a random one on, and then those before it: workers that start together begin apart, and each
    still meets equal programs one after another."""
    names = list(groups)
    start = random.randrange(len(names)) if names else 0
    return {name: groups[name] for name in names[start:] + names[:start]}


class _Resolved:
    """The runs of a plan, each resolved once."""

    def __init__(self):
        self._known: dict[str, ResolvedRun] = {}

    def __call__(self, line: PlannedTrial) -> ResolvedRun:
        text = store.canonical(line.run)
        if text not in self._known:
            self._known[text] = plan.planned_run(line.run)
        return self._known[text]
