"""How far a sweep that tunes is: which reported trials wait for the learning rate of their run, and which no longer
count, since another rate was chosen. No jax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from posenc.lab.store import folder as store
from posenc.lab.store.schema import PlannedTrial


@dataclass(frozen=True)
class Standing:
    """What the tuning trials of a run folder have decided by now."""

    undecided: int = 0
    """How many reported trials wait to be planned: all reported seeds of a run of which a tuning trial has no result,
    and else those that are not planned at the chosen rate. At most so many, for those that an earlier choice trained
    need no second time where it stays."""
    waiting: frozenset[str] = frozenset()
    """The reported trials that are planned at the rate of an earlier choice, while tuning trials have no result."""
    replaced: frozenset[str] = frozenset()
    """The reported trials that are planned at a rate which is not the chosen one."""

    @property
    def idle(self) -> frozenset[str]:
        """The trials that nobody is to train now."""
        return self.waiting | self.replaced


def standing(folder: Path, plan: Sequence[PlannedTrial] | None = None) -> Standing:
    """What is decided by now in a run folder, or of a `plan` of it that was read already."""
    lines = plan or store.read_plan(folder)
    if not any(line.tuning for line in lines):
        return Standing()
    from posenc.lab.results.rates import decided  # with numpy, which most folders do without
    from posenc.lab.results.results import load

    rates, undecided, waiting, replaced = decided(load(folder)), 0, set[str](), set[str]()
    for of_run in store.by_run(lines):
        seeds = store.reported(of_run)
        rate = next((rates[line.id] for line in of_run if line.id in rates), None)
        reported = [line for line in of_run if not line.tuning and line.knobs.seed in seeds]
        others = {line.id for line in reported if line.knobs.lr != rate}
        (waiting if rate is None else replaced).update(others)
        undecided += len(seeds - {line.knobs.seed for line in reported if line.id not in others})
    return Standing(undecided, frozenset(waiting), frozenset(replaced))


def finished(folder: Path) -> bool:
    """Whether every trial has a result that is to have one, and none waits to be planned."""
    before = standing(folder)
    return ended(store.status(folder), before)


def ended(status: store.RunStatus, standing: Standing) -> bool:
    """The same of what was looked up already: first what is decided, since workers may plan between the two looks."""
    return not standing.undecided and status.left <= standing.replaced
