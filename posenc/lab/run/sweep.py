"""The sweep: plan, then work. The same command again does what is left, and nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from posenc.lab.run import plan
from posenc.lab.run.progress import Progress
from posenc.lab.run.tuning import Share, extend
from posenc.lab.run.worker import work
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.toml import to_toml
from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.train.training import ResolvedRun


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
) -> Share:
    """Write what is new into the plan of a folder, for this process or other workers to carry out. Raises `ValueError`
    for runs that are impossible, and for what the folder was planned without: other sizes, other rates to choose among.
    """
    requested = experiment.plan
    runs = plan.resolved_runs(experiment) if runs is None else runs
    runs = plan.group_by_program(runs, requested.steps)
    store.ready(folder)
    before = store.read_plan(folder) if (folder / "plan.jsonl").exists() else []
    lines = plan.lines(experiment, runs, before, group_size)
    store.write_plan(folder, lines, to_toml(experiment))
    written = {store.canonical(text): (text, resolved) for resolved in runs for text in [plan.written(resolved)]}
    candidates = {
        plan.trial_name(run, knobs, requested.steps)
        for run, _ in written.values()
        for rate in (requested.lr if requested.tuning else ())
        for knobs in requested.at(rate, requested.seeds)
    }
    resolved = {text: resolved for text, (_, resolved) in written.items()}
    share = Share({line.id for line in lines}, candidates, experiment.trials, resolved, group_size)
    if candidates:
        extend(folder, share)
    return share
