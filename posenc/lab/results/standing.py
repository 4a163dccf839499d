"""How far a sweep that tunes is: which reported trials still wait for the learning rate of their run. No jax."""

from __future__ import annotations

from pathlib import Path

from posenc.lab.results.rates import decided
from posenc.lab.results.results import load
from posenc.lab.store import folder as store


def undecided(folder: Path) -> int:
    """How many reported trials wait to be planned: at most so many, for those that an earlier choice trained need no
    second time where it stays.

    They are all reported seeds of a run of which a tuning trial has no result, and else those not planned at the rate
    that was chosen.
    """
    lines = store.read_plan(folder)
    if not any(line.tuning for line in lines):
        return 0
    rates, waiting = decided(load(folder)), 0
    for of_run in store.by_run(lines):
        rate = next((rates[line.id] for line in of_run if line.id in rates), None)
        planned = {line.knobs.seed for line in of_run if not line.tuning and line.knobs.lr == rate}
        waiting += len(store.reported(of_run) - planned)
    return waiting


def finished(folder: Path) -> bool:
    """Whether every planned trial has a result, and none waits to be planned."""
    return store.status(folder).recorded and not undecided(folder)
