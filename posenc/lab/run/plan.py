"""From an experiment to trials with names: what each is, written out in full, hashed once, and grouped by program."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from posenc.core.compose import Pattern, layers, normal_form
from posenc.lab.models import attentions, kinds
from posenc.lab.spec import own, sources
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.run import THEN, Continuation, Knobs, Plan, Run
from posenc.lab.store import folder
from posenc.lab.store.schema import KnobRecord, PlannedTrial
from posenc.lab.tasks import spec as task_spec
from posenc.lab.tasks.measure import full as full_task
from posenc.lab.train import needs
from posenc.lab.train import training as train
from posenc.lab.train.training import ResolvedRun, resolve, stages
from posenc.language import registry
from posenc.naming import full, parse, spec


class Unfit(ValueError):
    """Settings with which no scheme could run."""


class Examined(NamedTuple):
    """An experiment whose runs were looked at before any of them trains."""

    experiment: Experiment
    """With the runs that can be planned."""
    runs: list[ResolvedRun]
    sound: list[bool]
    """True for each of them that can run, as far as tracing shows."""
    faults: list[str]
    """A sentence for each run in which a scheme or task of the user's own fails."""

    @property
    def trainable(self) -> tuple[Experiment, list[ResolvedRun]]:
        """The runs that can run."""
        runs = tuple(itertools.compress(self.experiment.runs, self.sound))
        return dataclasses.replace(self.experiment, runs=runs), list(itertools.compress(self.runs, self.sound))


def resolved_runs(experiment: Experiment) -> list[ResolvedRun]:
    """Every run of an experiment, resolved, and traced in the abstract, so that what cannot run is refused at once."""
    return examined(experiment).runs


def examined(experiment: Experiment) -> Examined:
    """Every run of an experiment, resolved, and traced in the abstract, so that what cannot run is refused at once.

    A run in which a class of the user's own fails is said, and planned where it has a name; it fails when its turn
    comes, and no other one does. Raises `ValueError` where no run is left.
    """
    kept, runs, sound, faults = [], [], [], []
    for run in experiment.runs:
        try:
            resolved, fault = rehearsed(run, experiment.plan), ""
        except Exception as error:
            if not (fault := _own_fault(run, error)):
                raise
            resolved = _named(run)
            faults.append(fault)
        if resolved is not None:
            kept.append(run)
            runs.append(resolved)
            sound.append(not fault)
    if faults and not any(sound):
        raise ValueError(faults[0])
    _check_spellings(runs)
    return Examined(dataclasses.replace(experiment, runs=tuple(kept)), runs, sound, faults)


def _own_fault(run: Run, error: Exception) -> str:
    """Describe the fault of a scheme or task of the user's own, by name, file and line. It is empty if the fault is not
    theirs, as of a setting that posenc refuses."""
    resolved = _named(run)
    settings = resolved is None or isinstance(error, Unfit)  # which are no fault of a class
    if not (where := own.place_of(error, [] if settings else parts_of(resolved))):
        return ""
    which = f"{run.scheme} on {run.task} cannot run: "
    return f"{which}{own.described(error).removeprefix(which)} ({where})."


def _named(run: Run) -> ResolvedRun | None:
    """A run that has a name in a plan, whether or not it can run."""
    try:
        return resolve(run)
    except Exception:
        return None


def _check_spellings(runs: Sequence[ResolvedRun]) -> None:
    """Refuse one run in two spellings, such as `rope` and `rope(base=10000.0)`: two are counted and one is trained."""
    spelled: dict[str, Run] = {}
    for resolved in runs:
        run = resolved.run
        if (first := spelled.setdefault(folder.canonical(written(resolved)), run)) is not run:
            a, b = (f"{r.scheme} on {r.task}" + (f", then {r.then}" if r.then else "") for r in (first, run))
            raise ValueError(f"{a}, and {b}, are one run in two spellings; give one of them.")


def evaluated(resolved: ResolvedRun, plan: Plan) -> tuple[int, ...]:
    """The sizes evaluated: the requested ones, or multiples of the largest trained on, as far as the task has them.

    A multiple between two sizes of the task's stands for the lower. Refuses "all" where none lies beyond training.
    """
    sizes = resolved.task.sizes
    if plan.sizes == "all":
        first, last = resolved.run.trained_to + 1, max(sizes.evaluation, default=0)
        if beyond := tuple(n for n in range(first, last + 1) if sizes.has(n)):
            return beyond
        raise ValueError(
            f"sizes are 'all' from {first} on, but {resolved.run.task!r} is evaluated to {last}; give numbers."
        )
    if plan.sizes is not None:
        return plan.sizes
    sizes, around = resolved.task.sizes, plan.around(resolved.run.shortest, resolved.run.trained_to)
    return tuple(n for n in dict.fromkeys(map(sizes.below, around)) if sizes.has(n))


def rehearsed(run: Run, plan: Plan) -> ResolvedRun:
    """A resolved run whose forward passes have the right shapes at the largest size. Refuses what cannot run."""
    try:
        resolved = resolve(run)
        sizes = evaluated(resolved, plan)
        for n in sizes:
            resolved.task.check_size(n)
        longest = max(*sizes, resolved.run.trained_to)
        for stage, _ in stages(resolved, plan.steps):
            needs.check_memory(stage, longest)
    except (ValueError, TypeError) as error:
        raise Unfit(f"{run.scheme} on {run.task} cannot run: {error}") from error
    try:
        own.check_task(resolved.task, (resolved.run.shortest, resolved.run.length, *sizes))
        state = None
        for stage, _ in stages(resolved, plan.steps):
            state = needs.fits(stage, longest, state)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{run.scheme} on {run.task} cannot run: {error}") from error
    return resolved


def group_by_program(runs: Sequence[ResolvedRun], steps: int) -> list[ResolvedRun]:
    """The runs, those that train by the same programs next to one another, else in the order given. A sweep that is
    stopped has then compiled little that it did not use."""
    first: dict[Any, int] = {}

    def place(resolved: ResolvedRun) -> int:
        key: Any = id(resolved)
        with own.forgiving(parts_of(resolved)):
            key = tuple(stage.step for stage, _ in stages(resolved, steps))
        return first.setdefault(key, len(first))

    return sorted(runs, key=place)


def wanted(resolved: ResolvedRun, plan: Plan, rates: Mapping[str, float]) -> dict[str, Knobs]:
    """Trial to its knobs, of one run: all that can be planned by now. `rates` has, for trials that tune, the learning
    rate that was chosen."""
    run = written(resolved)
    trials = {trial_name(run, knobs, plan.steps): knobs for knobs in plan.knobs()}
    if not plan.tuning or not trials.keys() <= rates.keys():
        return trials
    reported = plan.at(rates[next(iter(trials))], plan.seeds)
    return trials | {trial_name(run, knobs, plan.steps): knobs for knobs in reported}


def lines(
    experiment: Experiment, runs: list[ResolvedRun], before: Sequence[PlannedTrial] = (), most: int | None = None
) -> list[PlannedTrial]:
    """Return the trials of an experiment, as the plan keeps them; of runs that tune, the tuning trials alone. Trials of
    one run that were not planned `before` form one group, or several of limited size."""
    planned, plan, ids = [], experiment.plan, {line.id for line in before}
    for resolved in runs:
        trials = wanted(resolved, plan, {})
        group = grouped([trial for trial in trials if trial not in ids], most)
        shared = {
            "run": written(resolved),
            "steps": plan.steps,
            "sizes": evaluated(resolved, plan),
            "rows": plan.rows,
            "segment": plan.stride,
            "label": label(resolved.run),
            "family": family(resolved.scheme),
            "task": task_spec(resolved.task),
        }
        none = folder.digest([])  # of a trial that is known, whose line stays as it is
        for id, knobs in trials.items():
            reports = plan.seeds if knobs.seed in plan.tuning else None
            own = {"id": id, "group": group.get(id, none), "knobs": KnobRecord(**knobs._asdict()), "reports": reports}
            planned.append(PlannedTrial(**own, **shared))
    return planned


def grouped(trials: Sequence[str], most: int | None) -> dict[str, str]:
    """Trial to its group. Groups differ by at most one trial in size, so that workers end together."""
    parts = 1 if most is None else -(-len(trials) // most)
    cuts = [n * len(trials) // max(parts, 1) for n in range(parts + 1)]
    pieces = [trials[a:b] for a, b in itertools.pairwise(cuts)]
    return {id: name for piece in pieces for name in [folder.digest(list(piece))] for id in piece}


def identity(resolved: ResolvedRun, knobs: Knobs, steps: int) -> str:
    """The name of a trial: the SHA-256 of everything that decides its result, defaults written out."""
    return trial_name(written(resolved), knobs, steps)


def trial_name(run: Mapping[str, Any], knobs: Knobs, steps: int) -> str:
    """The name of a trial of a run that is written out, as `written` does and plans hold it."""
    facts = {"run": run, "knobs": knobs._asdict(), "steps": steps}
    return folder.checksum(folder.canonical(facts))


def written(resolved: ResolvedRun) -> dict[str, Any]:
    """Return every setting that identity counts. These are a run with its schemes, task and stem written out, their
    revisions, and the digests of files that posenc does not ship."""
    run = registry.identity(resolved.run) | {"scheme": full(resolved.scheme), "task": full_task(resolved.task)}
    run["model"] = kinds.full(resolved.shape.model)
    if resolved.run.then is not None:
        second, further = stages(resolved, 2**30)[-1][0].scheme, resolved.run.goes_on
        same = further.length == resolved.run.length
        run["then"] = str(further._replace(scheme=full(second), length=None if same else further.length))
    if resolved.shape.stem is not None:
        run["stem"] = kinds.full(resolved.shape.stem)
    parts = parts_of(resolved)
    revisions = {type(part).__name__: part.revision for part in parts}
    revisions |= {"model": resolved.shape.model.revision, "training": train.REVISION}
    return run | {"revisions": revisions} | sources.of([*parts, resolved.shape.model])


def parts_of(resolved: ResolvedRun) -> list[Any]:
    """Every scheme, kind of coordinates, task, attention and stem of a run."""
    parts = [*_parts(resolved.scheme), resolved.task]
    if resolved.run.attention in attentions.PARTS:
        parts.append(attentions.PARTS[resolved.run.attention])
    if resolved.run.then is not None:
        parts += _parts(stages(resolved, 2**30)[-1][0].scheme)
    return parts if resolved.shape.stem is None else [*parts, resolved.shape.stem]


def label(run: Run) -> str:
    """Return the label of a run's scheme in figures and tables: its shortest text, and that of the one that goes on."""
    return shortest(THEN.join(text for text in (run.scheme, run.goes_on.label) if text))


def shortest(text: str) -> str:
    """The label that a text means, however its schemes are spelled."""
    parts = map(Continuation.labelled, text.split(THEN))
    return THEN.join(part._replace(scheme=spec(parse(part.scheme))).label for part in parts)


def family(scheme: Any) -> str:
    """Return the family whose colour a scheme takes; a pattern takes its first layer's."""
    first = scheme.layers[0] if isinstance(scheme, Pattern) else scheme
    return normal_form(first).scheme.family


def planned_run(run: Mapping[str, Any]) -> ResolvedRun:
    """The run that a plan holds, resolved again. Refuses one that names classes of modules that the caller has not
    imported, or of files that have changed since."""
    sources.check(run)
    fields = {f.name: run[f.name] for f in dataclasses.fields(Run) if f.name in run}
    resolved = resolve(Run(**fields))
    if written(resolved) != folder.plain(run):
        which = f"{resolved.run.scheme} on {resolved.run.task}"
        raise ValueError(f"The plan of {which} was written by another version; use a new --name.")
    return resolved


def _parts(scheme: Any) -> list[Any]:
    """Every plain scheme, and every kind of coordinates behind those that it serves."""
    draws = [draw for layer in layers(scheme) for draw in layer.draws]
    return [part for coordinates, schemes in draws for part in (*schemes, *([coordinates] if coordinates else []))]
