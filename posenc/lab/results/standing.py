"""Progress of a sweep that tunes: the reported trials that wait for the learning rate of their run, and those that no
longer count because another rate was chosen. No jax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from posenc.lab.store import folder as store
from posenc.lab.store.schema import PlannedTrial


@dataclass(frozen=True)
class Standing:
    """Decisions of the tuning trials of a run folder so far."""

    undecided: int = 0
    """The number of reported trials that wait to be planned. All seeds of a run count while one of its tuning trials
    has no result; after that those not planned at the chosen rate. It is an upper bound, because trials of an earlier
    choice count if that choice stays."""
    waiting: frozenset[str] = frozenset()
    """The reported trials that are planned at the rate of an earlier choice, while tuning trials have no result."""
    replaced: frozenset[str] = frozenset()
    """The reported trials that are planned at a rate which is not the chosen one."""

    @property
    def idle(self) -> frozenset[str]:
        """Return the trials that no worker is to train now."""
        return self.waiting | self.replaced


def standing(folder: Path, plan: Sequence[PlannedTrial] | None = None) -> Standing:
    """Return the decisions so far in a run folder, or in its `plan` if it was read already."""
    lines = plan or store.read_plan(folder)
    if not any(line.tuning for line in lines):
        return Standing()
    from posenc.lab.results.rates import decided  # what most folders do without
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
    """Tell whether every trial has a result that is to have one, and no trial waits to be planned."""
    before = standing(folder)
    return ended(store.status(folder), before)


def ended(status: store.RunStatus, standing: Standing) -> bool:
    """Tell the same from states that were read already: first the decisions, since workers may plan between the two
    looks."""
    return not standing.undecided and status.left <= standing.replaced
