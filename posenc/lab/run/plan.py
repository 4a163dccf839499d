"""From an experiment to trials with names: what each is, written out in full, hashed once, and grouped by program."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from posenc.coordinates import check_reach
from posenc.core.compose import Pattern, layers, normal_form
from posenc.lab.models import attentions, kinds, stems
from posenc.lab.models.interface import coordinate_inputs, inputs
from posenc.lab.spec import sources
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.run import THEN, Continuation, Knobs, Plan, Run
from posenc.lab.store import folder
from posenc.lab.store.schema import KnobRecord, PlannedTrial
from posenc.lab.tasks import Task
from posenc.lab.tasks import spec as task_spec
from posenc.lab.tasks.measure import full as full_task
from posenc.lab.train import training as train
from posenc.lab.train.device import memory
from posenc.lab.train.training import ResolvedRun, State, as_arrays, init, resolve, stages
from posenc.language import registry
from posenc.naming import bind, full, parse, spec

ROWS = 256
"""Examples whose coordinates are looked at before anything trains."""


def resolved_runs(experiment: Experiment) -> list[ResolvedRun]:
    """Every run of an experiment, resolved, and traced in the abstract, so that what cannot run is refused at once."""
    runs = [rehearsed(run, experiment.plan) for run in experiment.runs]
    _check_spellings(runs)
    return runs


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
    return _legal(resolved.task, plan.around(resolved.run.shortest, resolved.run.trained_to))


def _legal(task: Task, sizes: Sequence[int]) -> tuple[int, ...]:
    """The sizes of a task that stand for these, as far as it has any."""
    near = dict.fromkeys(task.sizes.below(n) for n in sizes)
    return tuple(n for n in near if task.sizes.has(n))


def _trained_on(run: Mapping[str, Any]) -> tuple[Any, ...]:
    """The task of a written run, and the sizes that it trains on."""
    further = Continuation.read(run["then"]).length if run.get("then") else None
    return run["task"], run["shortest"], run["length"], further


def rehearsed(run: Run, plan: Plan) -> ResolvedRun:
    """A resolved run whose forward passes have the right shapes at the largest size. Refuses what cannot run."""
    try:
        resolved = resolve(run)
        sizes = evaluated(resolved, plan)
        for n in sizes:
            resolved.task.check_size(n)
        longest = max(*sizes, resolved.run.trained_to)
        state = None
        for stage, _ in stages(resolved, plan.steps):
            state = fits(stage, longest, state)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{run.scheme} on {run.task} cannot run: {error}") from error
    return resolved


def fits(resolved: ResolvedRun, longest: int, before: Any = None) -> Any:
    """The state of a run in the abstract. Refuses what cannot run at the longest size."""
    _check_memory(resolved, longest)
    state, _ = jax.eval_shape(lambda before: _forward(resolved, longest, before), before)
    _check_draws(resolved, longest)
    return state


def _check_memory(resolved: ResolvedRun, longest: int) -> None:
    """Refuse what the machine cannot hold: weights, logits, and scores that no chunk of rows makes small enough."""
    run, task, here = resolved.run, resolved.task, memory()

    def hold(needed: float, what: str, lower: str, beside: float = 0) -> None:
        if here and beside + needed > here:
            raise ValueError(f"{what} take {_gib(needed)}, and this machine has {_gib(here)}; lower {lower}.")

    weights, tables = 12 * run.depth * run.kind.weights(run), 12 * run.width * (task.vocab + task.classes)
    hold(weights, "its weights and their moments", f"{'width, hidden' if run.hidden else 'width'} or depth")
    ends = f"the embedding of {task.vocab} tokens, the readout of {task.classes} and their moments"
    hold(tables, ends, "the number of symbols or width", beside=weights)
    for n, rows in ((run.length, run.batch), (longest, 1)):
        tokens, many = task.tokens(n), f"{rows} sequence{'s' if rows > 1 else ''} of size {n}"
        hold(4 * rows * run.kind.pairs(run) * tokens**2, f"one layer's scores of {many}", "the size, batch or heads")
        logits = f"the logits of {many}, {task.classes} for each token,"
        hold(4 * rows * tokens * task.classes, logits, "the number of symbols, the size or batch")


def _gib(size: float) -> str:
    return f"{size / 2**30:,.0f} GiB"


def _check_draws(resolved: ResolvedRun, longest: int) -> None:
    """Refuse coordinates that may draw, in training or at the largest size evaluated, what a scheme cannot serve.

    What a task offers may differ from row to row, as a sum does in length, so many rows are looked at.
    """
    if not any(layer.coordinates for layer in layers(resolved.scheme)):
        return
    scheme = bind(resolved.scheme, resolved.shape.dims)  # a model that binds its own schemes leaves this one open
    for n, training in ((resolved.run.length, True), (longest, resolved.run.evaluation == "as_trained")):
        check_reach(scheme, resolved.shape.dims, _Examples(resolved.task, n), training)


@dataclasses.dataclass(frozen=True)
class _Examples(Mapping[str, Any]):
    """The inputs of coordinates for examples of one size. Examples are drawn only if more than the index is read, as
    drawing takes seconds to compile and most coordinates read only the index."""

    task: Task
    n: int

    def __getitem__(self, name: str) -> Any:
        return np.arange(self.task.tokens(self.n), dtype=np.int32) if name == "index" else self._drawn[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._drawn)

    def __len__(self) -> int:
        return len(self._drawn)

    @property
    def _drawn(self) -> dict[str, Any]:
        return _inputs_drawn(self.task, self.n)


@functools.lru_cache(maxsize=64)
def _inputs_drawn(task: Task, n: int) -> dict[str, Any]:
    """The inputs of coordinates for ROWS examples; the schemes of a sweep share them."""
    batch = jax.jit(functools.partial(task.sample, n=n, batch=ROWS, n_max=n))(jax.random.key(0))
    return coordinate_inputs(inputs(batch))


def group_by_program(runs: Sequence[ResolvedRun], steps: int) -> list[ResolvedRun]:
    """The runs, those that train by the same programs next to one another, else in the order given. A sweep that is
    stopped has then compiled little that it did not use."""
    first: dict[Any, int] = {}

    def place(resolved: ResolvedRun) -> int:
        return first.setdefault(tuple(stage.step for stage, _ in stages(resolved, steps)), len(first))

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
    experiment: Experiment,
    runs: list[ResolvedRun],
    before: Sequence[PlannedTrial] = (),
    most: int | None = None,
) -> list[PlannedTrial]:
    """The trials of an experiment, as the plan keeps them, of those that tune the tuning trials alone. Those of one run
    that were not planned `before` form one group, or several of at most so many trials.

    Beside trials of the same task and training that have the sizes of an older posenc, others get the same: a table has
    one set, and the line of a trial does not change.
    """
    planned, plan, ids = [], experiment.plan, {line.id for line in before}
    earlier = {(_trained_on(line.run), line.sizes) for line in before} if plan.sizes is None else set()
    for resolved in runs:
        trials = wanted(resolved, plan, {})
        group = grouped([trial for trial in trials if trial not in ids], most)
        run, older = written(resolved), _legal(resolved.task, plan.once_around(resolved.run.trained_to))
        shared = {
            "run": run,
            "steps": plan.steps,
            "sizes": older if (_trained_on(run), older) in earlier else evaluated(resolved, plan),
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


def segment(line: PlannedTrial) -> int:
    """Steps between two looks at the host: the plan's, or the default in plans of older versions."""
    return line.segment or Plan(steps=line.steps).stride


def identity(resolved: ResolvedRun, knobs: Knobs, steps: int) -> str:
    """The name of a trial: the SHA-256 of everything that decides its result, defaults written out."""
    return trial_name(written(resolved), knobs, steps)


def trial_name(run: Mapping[str, Any], knobs: Knobs, steps: int) -> str:
    """The name of a trial of a run that is written out, as `written` does and plans hold it."""
    facts = {"run": run, "knobs": knobs._asdict(), "steps": steps}
    return hashlib.sha256(folder.canonical(facts).encode()).hexdigest()


def written(resolved: ResolvedRun) -> dict[str, Any]:
    """A run with its schemes, task and stem written out, their revisions, and the digests of files that posenc does not
    ship: every setting that identity counts."""
    run = registry.identity(resolved.run) | {"scheme": full(resolved.scheme), "task": full_task(resolved.task)}
    run["model"] = kinds.full(resolved.shape.model)
    parts = [*_parts(resolved.scheme), resolved.task]
    if resolved.run.attention in attentions.PARTS:
        parts.append(attentions.PARTS[resolved.run.attention])
    if resolved.run.then is not None:
        second, further = stages(resolved, 2**30)[-1][0].scheme, resolved.run.goes_on
        same = further.length == resolved.run.length
        run["then"] = str(further._replace(scheme=full(second), length=None if same else further.length))
        parts += _parts(second)
    if resolved.shape.stem is not None:
        run["stem"] = stems.full(resolved.shape.stem)
        parts.append(resolved.shape.stem)
    revisions = {type(part).__name__: part.revision for part in parts}
    revisions |= {"model": resolved.shape.model.revision, "training": train.REVISION}
    return run | {"revisions": revisions} | sources.of([*parts, resolved.shape.model])


def label(run: Run) -> str:
    """What figures and tables call a run's scheme: its shortest text, and that of the one that goes on."""
    return shortest(THEN.join(text for text in (run.scheme, run.goes_on.label) if text))


def shortest(text: str) -> str:
    """The label that a text means, however its schemes are spelled."""
    parts = map(Continuation.labelled, text.split(THEN))
    return THEN.join(part._replace(scheme=spec(parse(part.scheme))).label for part in parts)


def family(scheme: Any) -> str:
    """Whose colour a scheme takes; a pattern takes its first layer's."""
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


def _forward(resolved: ResolvedRun, size: int, before: State | None) -> tuple[State, Any]:
    state = init(resolved, as_arrays(Knobs()), before)
    batch = resolved.task.sample(jax.random.key(0), size, batch=1, n_max=size)
    return state, state.model(inputs(batch), jax.random.key(0))
