"""A worker of a run that is planned already: it does what is left, beside any others that see the same folder."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.store.schema import PlannedTrial
from posenc.lab.sweep import plan
from posenc.lab.sweep.loop import carry_out, named, waiting
from posenc.lab.sweep.packing import pack
from posenc.lab.sweep.progress import Progress
from posenc.lab.sweep.team import DONE, FAILED, outcome
from posenc.lab.train.lanes import arrangement
from posenc.lab.train.training import ResolvedRun
from posenc.language.echo import counted


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
    damaged ones lost. Raises `ValueError` at a run that another version planned.
    """
    how, lines = arrangement(lanes), store.read_plan(folder)
    store.ready(folder)
    resolved, done = _Resolved(), named(folder, lines)
    groups = waiting(folder, lines, done, keep)
    many = sum(map(len, groups.values()))
    watch.begin(len(lines), len(lines) - many, None)
    code = carry_out(folder, turned(groups), resolved, how, keep=keep, save_every=save_every, watch=watch)
    if code not in (DONE, FAILED):
        return code
    lost = done - store.survey(folder).outcomes.keys()
    if again := waiting(folder, [line for line in lines if line.id in lost], (), False):
        watch.note(f"Records of {counted(len(again), 'group')} are damaged, as `posenc status` says; running again.")
        code = carry_out(folder, again, resolved, how, keep=keep, save_every=save_every, watch=watch)
    if code in (DONE, FAILED):
        pack(folder, watch)
        return outcome(folder)
    return code


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
