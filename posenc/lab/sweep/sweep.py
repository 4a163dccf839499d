"""The sweep: plan, run group after group, record. The same command again does what is left, and nothing twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.run import Plan
from posenc.lab.spec.toml import to_toml
from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.store.reading import Survey
from posenc.lab.store.schema import PlannedTrial
from posenc.lab.sweep import plan, tuning
from posenc.lab.sweep.estimate import operations, programs, seconds
from posenc.lab.sweep.loop import Groups, carry_out, waiting
from posenc.lab.sweep.order import together
from posenc.lab.sweep.progress import Progress
from posenc.lab.sweep.team import DONE, FAILED
from posenc.lab.train import device
from posenc.lab.train.lanes import arrangement
from posenc.lab.train.training import ResolvedRun
from posenc.language.echo import plural


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
    code, tried = DONE, set()
    wanted, undecided, others = _planned(experiment, runs, folder, group_size)
    if others:
        watch.note(others)
    while True:
        lines, stored = [line for line in store.read_plan(folder) if line.id in wanted], store.survey(folder)
        groups = waiting(folder, [line for line in lines if line.id not in tried], stored.outcomes, keep)
        _begin(groups, wanted, undecided, stored, experiment, watch)
        groups = together(groups, {g: wanted[lines[0].id] for g, lines in groups.items()}, experiment.plan.steps)
        runs_of = lambda line, wanted=wanted: wanted[line.id]  # noqa: E731
        code = max(code, carry_out(folder, groups, runs_of, how, keep=keep, save_every=save_every, watch=watch))
        if code not in (DONE, FAILED):
            return code
        tried |= wanted.keys()
        if not undecided:
            break
        wanted, undecided, _ = _planned(experiment, runs, folder, group_size)
        if tried >= wanted.keys():
            watch.note(
                f"Not trained, since tuning trials of the same run have no result: {plural(undecided, 'trial')} to be "
                "reported. The same command tries those that failed again; a new --name chooses among other rates."
            )
            code = max(code, FAILED)
            break
    return code


def _begin(
    groups: Groups,
    wanted: Mapping[str, ResolvedRun],
    undecided: int,
    stored: Survey,
    experiment: Experiment,
    watch: Progress,
) -> None:
    """Tell of a stage what is done and left, and what is wrong with the files."""
    left = [line for lines in groups.values() for line in lines]
    for problem in stored.problems:
        watch.note(problem)
    if old := {plan.segment(line) for line in left if line.segment is None}:
        steps = " and ".join(map(str, sorted(old)))
        watch.note(f"An older posenc planned trials here without the length of segments; it is the default, {steps}.")
    needed = programs((wanted[lines[0].id] for lines in groups.values()), experiment.plan)
    watch.begin(len(wanted) + undecided, len(wanted) - len(left), len(needed))


def planned(experiment: Experiment, folder: Path, group_size: int | None = None) -> str:
    """Write the plan of an experiment for workers to carry out. Refuses impossible runs. Returns a sentence on tuning
    trials of earlier commands, where there are any."""
    store.ready(folder)
    return _planned(experiment, plan.resolved_runs(experiment), folder, group_size)[-1]


def rehearse(experiment: Experiment, folder: Path) -> dict[str, Any]:
    """What a sweep would do: its trials, those done, the programs to compile, and estimates of the rest's cost."""
    runs, requested = plan.resolved_runs(experiment), experiment.plan
    finished = store.survey(folder).outcomes if (folder / "plan.jsonl").exists() else {}
    rates = tuning.rates(folder) if requested.tuning else {}
    known = tuning.planned(folder, runs, requested)
    every = [_left(*run, requested, rates, finished) for run in zip(runs, known, strict=True)]
    first, second = ([getattr(one, stage) for one in every] for stage in ("tuning", "reported"))
    stages = [[(run, n) for run, n in zip(runs, stage, strict=True) if n] for stage in (first, second)]
    needed = [programs((resolved for resolved, _ in stage), requested) for stage in stages]
    how, todo = arrangement(), [*stages[0], *stages[1]]
    if how.padded(len(requested.lr) * len(requested.tuning)) == how.padded(len(requested.seeds)):
        needed = [needed[0] | needed[1]]  # both stages have as many lanes
    compiled = [one for each in needed for one in each]
    others = [line for of_run in known for line in tuning.earlier(of_run, requested)]
    trials, left = len(runs) * requested.trials + len(others), sum(n for _, n in todo)
    return {
        "trials": trials,
        "tuning": len(runs) * len(requested.lr) * len(requested.tuning) + len(others),
        "done": trials - left,
        "spared": sum(one.spared for one in every),
        "others": tuning.takes_part(others),
        "groups": len(todo),
        "programs": len(compiled),
        "operations": operations(todo, requested),
        "seconds": round(seconds(todo, requested, compiled)),
        "device": device.named(),
        "lanes": str(how),
    }


class _Left(NamedTuple):
    """How many trials of a run are left."""

    tuning: int
    reported: int
    """At most, where its learning rate is not chosen yet."""
    spared: int
    """How many of those have a result at a rate that was chosen before, and need none if it is chosen again."""


def _left(
    resolved: ResolvedRun,
    known: Sequence[PlannedTrial],
    requested: Plan,
    rates: Mapping[str, float],
    finished: Collection[str],
) -> _Left:
    every = plan.wanted(resolved, requested, rates)
    left = [knobs for id, knobs in every.items() if id not in finished]
    tuned = sum(knobs.seed in requested.tuning for knobs in left)
    later = requested.trials - len(every)
    others = sum(line.id not in finished for line in tuning.earlier(known, requested))
    reported = [
        line for line in known if not line.tuning and line.id in finished and line.knobs.seed in requested.seeds
    ]
    spared = max(Counter(line.knobs.lr for line in reported).values(), default=0) if later else 0
    return _Left(tuned + others, len(left) - tuned + later, spared)


def _planned(
    experiment: Experiment, runs: list[ResolvedRun], folder: Path, group_size: int | None
) -> tuple[dict[str, ResolvedRun], int, str]:
    """Write what is new into the plan. Returns every trial of the experiment that is planned by now with its run, the
    tuning trials of earlier commands among them; how many are planned later, when their learning rate is chosen; and a
    sentence on those of earlier commands, where there are any."""
    before = store.read_plan(folder) if (folder / "plan.jsonl").exists() else []
    rates = tuning.rates(folder) if experiment.plan.tuning else {}
    each = [(resolved, plan.wanted(resolved, experiment.plan, rates)) for resolved in runs]
    store.write_plan(folder, plan.lines(experiment, runs, before, group_size, rates), to_toml(experiment))
    later = sum(experiment.plan.trials - len(every) for _, every in each)
    of_runs = zip(tuning.planned(folder, runs, experiment.plan), runs, strict=True)
    earlier = [(line, resolved) for of_run, resolved in of_runs for line in tuning.earlier(of_run, experiment.plan)]
    others = {line.id: resolved for line, resolved in earlier}
    part = tuning.takes_part([line for line, _ in earlier])
    return others | {id: resolved for resolved, every in each for id in every}, later, part
