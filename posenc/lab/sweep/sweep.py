"""The sweep: plan, run group after group, record. The same command again does what is left, and nothing twice."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.toml import to_toml
from posenc.lab.store import disk, parameters
from posenc.lab.store import folder as store
from posenc.lab.store.schema import PlannedTrial
from posenc.lab.sweep import plan
from posenc.lab.sweep.estimate import operations, programs, seconds
from posenc.lab.sweep.order import together
from posenc.lab.sweep.worker import Progress, Stopped, Worker
from posenc.lab.train import device
from posenc.lab.train.lanes import arrangement
from posenc.lab.train.training import ResolvedRun

RESULTS = ("done", "diverged")
PAUSE = 2.0
"""Seconds between two looks at groups that other workers hold."""
DONE, FAILED, PREEMPTED, INTERRUPTED = 0, 1, 75, 130


class Signals:
    """The first SIGINT or SIGTERM ends after the segment; the second ends at once."""

    def __init__(self):
        self.code = 0

    def __enter__(self) -> Signals:
        self._before = {s: signal.signal(s, self._heard) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *exc):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heard(self, number, frame):
        if self.code:
            raise KeyboardInterrupt
        self.code = INTERRUPTED if number == signal.SIGINT else PREEMPTED

    def check(self) -> None:
        """Raise where a signal was heard."""
        if self.code:
            raise Stopped


def sweep(
    experiment: Experiment, folder: Path, *, keep: bool = False, lanes: str | None = None, watch: Progress
) -> int:
    """Run what is left of an experiment; returns the exit code. Refuses impossible runs before anything trains."""
    how = arrangement(lanes)
    runs = plan.resolved_runs(experiment)
    store.ready(folder)
    wanted = _planned(experiment, runs, folder)
    outcomes = store.status(folder).outcomes
    kept = set(parameters.kept(folder)) if keep else None

    def left(line: PlannedTrial) -> bool:
        """Whether a trial has no result yet, or none of the parameters that are to be kept."""
        done = outcomes[line.id] in RESULTS
        return line.id in wanted and not (done and (kept is None or line.id in kept))

    waiting = [line for line in store.read_plan(folder) if left(line)]
    groups: dict[str, list[PlannedTrial]] = {}
    for line in waiting:
        groups.setdefault(line.group, []).append(line)
    for problem in store.read_records(folder).problems:
        watch.note(problem)
    of = {group: wanted[lines[0].id] for group, lines in groups.items()}
    groups = together(groups, of, experiment.plan.steps)
    watch.begin(len(wanted), len(wanted) - len(waiting), len(programs(of.values(), experiment.plan)))
    with Signals() as signals:
        worker = Worker(folder, how, experiment.plan.stride, keep, watch, signals.check)
        noted = 0
        try:
            while groups:
                held = {g: lines for g, lines in groups.items() if not worker.run(g, lines, wanted[lines[0].id])}
                if len(held) not in (0, noted):
                    watch.note(f"{len(held)} of the groups left are being run by other workers; waiting for these.")
                    noted = len(held)
                if len(held) == len(groups):  # for others to end, or for one to die
                    signals.check()
                    time.sleep(PAUSE)
                groups = held
        except Stopped:
            watch.note("Stopped; what is recorded is safe, and the same command goes on.")
            return signals.code
    return FAILED if worker.failed else DONE


def rehearse(experiment: Experiment, folder: Path) -> dict[str, Any]:
    """What a sweep would do: its trials, those done, the programs to compile, and estimates of the rest's cost."""
    runs, knobs, steps = plan.resolved_runs(experiment), experiment.plan.knobs(), experiment.plan.steps
    outcomes = store.status(folder).outcomes if (folder / "plan.jsonl").exists() else {}
    left = [sum(outcomes.get(plan.identity(c, k, steps)) not in RESULTS for k in knobs) for c in runs]
    waiting = [(resolved, n) for resolved, n in zip(runs, left, strict=True) if n]
    return {
        "trials": len(runs) * len(knobs),
        "done": len(runs) * len(knobs) - sum(left),
        "groups": len(waiting),
        "programs": len(programs((resolved for resolved, _ in waiting), experiment.plan)),
        "operations": operations(waiting, experiment.plan),
        "seconds": round(seconds(waiting, experiment.plan)),
        "device": device.named(),
        "lanes": str(arrangement()),
    }


def _planned(experiment: Experiment, runs: list[ResolvedRun], folder: Path) -> dict[str, ResolvedRun]:
    """Write what is new into the plan; returns every trial of the experiment with its run."""
    known = {line.id for line in store.read_plan(folder)} if (folder / "plan.jsonl").exists() else set()
    wanted = {plan.identity(c, k, experiment.plan.steps): c for c in runs for k in experiment.plan.knobs()}
    store.write_plan(folder, plan.lines(experiment, runs, known))
    if not wanted.keys() <= known:
        disk.write(disk.inside(folder, "sweep.toml"), to_toml(experiment).encode())
    return wanted
