"""The sweep: plan, run group after group, record. The same command again does what is left, and nothing twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.toml import to_toml
from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.sweep import plan
from posenc.lab.sweep.estimate import operations, programs, seconds
from posenc.lab.sweep.loop import carry_out, waiting
from posenc.lab.sweep.order import together
from posenc.lab.sweep.packing import pack
from posenc.lab.sweep.progress import Progress
from posenc.lab.sweep.team import DONE, FAILED
from posenc.lab.train import device
from posenc.lab.train.lanes import arrangement
from posenc.lab.train.training import ResolvedRun


def sweep(
    experiment: Experiment,
    folder: Path,
    *,
    keep: bool = False,
    lanes: str | None = None,
    save_every: float = checkpoints.EVERY,
    group_size: int | None = None,
    watch: Progress,
) -> int:
    """Run what is left of an experiment; returns the exit code. Refuses impossible runs before anything trains.

    New groups have at most `group_size` trials; what is planned keeps its groups. Groups in training are saved every
    `save_every` seconds, and at the first signal.
    """
    how = arrangement(lanes)
    runs = plan.resolved_runs(experiment)
    store.ready(folder)
    wanted = _planned(experiment, runs, folder, group_size)
    lines, stored = [line for line in store.read_plan(folder) if line.id in wanted], store.survey(folder)
    groups = waiting(folder, lines, stored.outcomes, keep)
    left = [line for lines in groups.values() for line in lines]
    for problem in stored.problems:
        watch.note(problem)
    if old := {plan.segment(line) for line in left if line.segment is None}:
        steps = " and ".join(map(str, sorted(old)))
        watch.note(f"An older posenc planned trials here without the length of segments; it is the default, {steps}.")
    of = {group: wanted[lines[0].id] for group, lines in groups.items()}
    groups = together(groups, of, experiment.plan.steps)
    watch.begin(len(wanted), len(wanted) - len(left), len(programs(of.values(), experiment.plan)))
    runs_of = lambda line: wanted[line.id]  # noqa: E731
    code = carry_out(folder, groups, runs_of, how, keep=keep, save_every=save_every, watch=watch)
    if code in (DONE, FAILED):
        pack(folder, watch)
    return code


def planned(experiment: Experiment, folder: Path, group_size: int | None = None) -> None:
    """Write the plan of an experiment for workers to carry out. Refuses impossible runs."""
    store.ready(folder)
    _planned(experiment, plan.resolved_runs(experiment), folder, group_size)


def rehearse(experiment: Experiment, folder: Path) -> dict[str, Any]:
    """What a sweep would do: its trials, those done, the programs to compile, and estimates of the rest's cost."""
    runs, knobs, steps = plan.resolved_runs(experiment), experiment.plan.knobs(), experiment.plan.steps
    finished = store.survey(folder).outcomes if (folder / "plan.jsonl").exists() else {}
    left = [sum(plan.identity(c, k, steps) not in finished for k in knobs) for c in runs]
    todo = [(resolved, n) for resolved, n in zip(runs, left, strict=True) if n]
    needed = programs((resolved for resolved, _ in todo), experiment.plan)
    return {
        "trials": len(runs) * len(knobs),
        "done": len(runs) * len(knobs) - sum(left),
        "groups": len(todo),
        "programs": len(needed),
        "operations": operations(todo, experiment.plan),
        "seconds": round(seconds(todo, experiment.plan, needed)),
        "device": device.named(),
        "lanes": str(arrangement()),
    }


def _planned(
    experiment: Experiment, runs: list[ResolvedRun], folder: Path, group_size: int | None
) -> dict[str, ResolvedRun]:
    """Write what is new into the plan; returns every trial of the experiment with its run."""
    known = {line.id for line in store.read_plan(folder)} if (folder / "plan.jsonl").exists() else set()
    wanted = {plan.identity(c, k, experiment.plan.steps): c for c in runs for k in experiment.plan.knobs()}
    store.write_plan(folder, plan.lines(experiment, runs, known, group_size), to_toml(experiment))
    return wanted
