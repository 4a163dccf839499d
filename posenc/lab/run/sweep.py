"""The sweep: plan, then work. Run the command again, and it trains what is left.

Before it starts, `rehearse` says what it will do, and how long that will take. The estimate divides its multiplications
by the speed that this machine just showed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from posenc.lab.run import plan as plans
from posenc.lab.run import tuning
from posenc.lab.run.progress import Progress
from posenc.lab.run.worker import work
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.run import Plan
from posenc.lab.spec.toml import to_toml
from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.train import device, needs, training
from posenc.lab.train.lanes import arrangement
from posenc.lab.train.training import ResolvedRun

COMPILE = {"steps": 5.0, "sums": 0.9}
"""Seconds of compiling a program of each kind, as seen on two cores with nothing cached; half a second for others."""
SHARE = 0.25
"""The share of the matrix product's speed that training small models reaches, as seen on two cores."""


def sweep(
    experiment: Experiment,
    folder: Path,
    *,
    runs: Sequence[ResolvedRun] | None = None,
    keep: bool = False,
    lanes: str | None = None,
    save_every: float = checkpoints.EVERY,
    group_size: int | None = None,
    watch: Progress,
) -> int:
    """Run what is left of an experiment; returns the exit code. Refuses impossible runs before anything trains.

    `runs` are those of the experiment where they are resolved already. New groups have at most `group_size` trials;
    what is planned keeps its groups. Groups in training are saved every `save_every` seconds, and at the first signal.
    """
    share = plan_experiment(experiment, folder, group_size, runs)
    return work(folder, only=share, keep=keep, lanes=lanes, save_every=save_every, watch=watch)


def plan_experiment(
    experiment: Experiment, folder: Path, group_size: int | None = None, runs: Sequence[ResolvedRun] | None = None
) -> tuning.Share:
    """Write what is new into the plan of a folder, for this process or other workers to carry out. Raises `ValueError`
    for runs that are impossible, and for what the folder was planned without: other sizes, other rates to choose among.
    """
    requested = experiment.plan
    runs = plans.resolved_runs(experiment) if runs is None else runs
    runs = plans.group_by_program(runs, requested.steps)
    store.ready(folder)
    before = store.read_plan(folder) if (folder / "plan.jsonl").exists() else []
    lines = plans.lines(experiment, runs, before, group_size)
    store.write_plan(folder, lines, to_toml(experiment))
    written = {store.canonical(text): (text, resolved) for resolved in runs for text in [plans.written(resolved)]}
    candidates = {
        plans.trial_name(run, knobs, requested.steps)
        for run, _ in written.values()
        for rate in (requested.lr if requested.tuning else ())
        for knobs in requested.at(rate, requested.seeds)
    }
    resolved = {text: resolved for text, (_, resolved) in written.items()}
    share = tuning.Share({line.id for line in lines}, candidates, experiment.trials, resolved, group_size)
    if candidates:
        tuning.extend(folder, share)
    return share


def programs(runs: Iterable[ResolvedRun], plan: Plan) -> set[tuple[Any, ...]]:
    """The programs that these runs compile between them, each with its kind first."""
    return set().union(*(training.programs(run, plan.steps, plan.rows, plans.evaluated(run, plan)) for run in runs))


def seconds(runs: list[tuple[ResolvedRun, int]], plan: Plan, needed: Iterable[tuple[Any, ...]]) -> float:
    """Estimate the seconds of these trials of each run, and of the programs they need. It was right within a factor of
    two on the machines it was tried on."""
    if not runs:
        return 0.0
    compiling = sum(COMPILE.get(kind, 0.5) for kind, *_ in needed)
    return compiling + operations(runs, plan) / (SHARE * peak())


def operations(runs: list[tuple[ResolvedRun, int]], plan: Plan) -> float:
    """Count the floating-point operations of these trials of each run, whatever the machine."""
    begun: set[Any] = set()
    return sum(
        trials * (needs.steps(c, plan.steps, begun) + needs.evaluation(c, plans.evaluated(c, plan), plan.rows))
        for c, trials in runs
    )


def peak() -> float:
    """Floating-point operations per second of a matrix product here, now: the fastest of a few, since others may be at
    work on the same machine."""
    a = jax.device_put(np.ones((1024, 1024), np.float32))
    product = jax.jit(lambda a: a @ a)
    jax.block_until_ready(product(a))
    took = []
    for _ in range(8):
        began = time.perf_counter()
        jax.block_until_ready(product(a))
        took.append(time.perf_counter() - began)
    return 2 * 1024**3 / min(took)


def rehearse(experiment: Experiment, folder: Path, runs: Sequence[ResolvedRun] | None = None) -> dict[str, Any]:
    """Return what a sweep would do: its trials, those done, the programs to compile, and estimates of the rest's cost.
    `runs` are those of the experiment if they are resolved already."""
    runs, plan = plans.resolved_runs(experiment) if runs is None else runs, experiment.plan
    finished = store.survey(folder).outcomes if folder.exists() else {}
    rates = tuning.rates(folder) if plan.tuning else {}
    left = [(resolved, *_left(resolved, plan, rates, finished)) for resolved in runs]
    stages = [[(resolved, counts[n]) for resolved, *counts in left if counts[n]] for n in range(2)]
    needed = [programs((resolved for resolved, _ in stage), plan) for stage in stages]
    lanes, todo = arrangement(), [*stages[0], *stages[1]]
    if lanes.padded(len(plan.lr) * len(plan.tuning)) == lanes.padded(len(plan.seeds)):
        needed = [needed[0] | needed[1]]  # both stages have as many lanes
    compiled = [key for keys in needed for key in keys]
    return {
        "trials": experiment.trials,
        "tuning": len(runs) * len(plan.lr) * len(plan.tuning),
        "done": experiment.trials - sum(count for _, count in todo),
        "groups": len(todo),
        "programs": len(compiled),
        "operations": operations(todo, plan),
        "seconds": round(seconds(todo, plan, compiled)),
        "memory": max((needs.peak(run, _longest(run, plan)) for run in runs), default=0.0),
        "device": device.named(),
        "lanes": str(lanes),
    }


def _longest(resolved: ResolvedRun, plan: Plan) -> int:
    """The largest size that a run trains on or is evaluated at."""
    return max(*plans.evaluated(resolved, plan), resolved.run.trained_to)


def _left(resolved: ResolvedRun, plan: Plan, rates: Mapping[str, float], finished: Collection[str]) -> tuple[int, int]:
    """How many trials of a run are left: of those that tune, and of the reported ones."""
    trials = plans.wanted(resolved, plan, rates)
    left = [knobs for id, knobs in trials.items() if id not in finished]
    tuned = sum(knobs.seed in plan.tuning for knobs in left)
    return tuned, len(left) - tuned + plan.trials - len(trials)
