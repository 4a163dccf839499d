"""Training as three pure functions of one trial: `init`, `segment`, `evaluate`.

A segment is two programs. One of the task makes its batches (`lab.train.batches`), and one of scheme, model and shape
trains on them (`lab.train.shapes`). Each is compiled once in a process.

Trials are lanes of one program (`lab.train.lanes`). The step, the total of steps and the sizes are arguments that all
lanes share. Data are made on the device, keys are folded from seed and step, and only sums cross to the host.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float, Int, PyTree

from posenc.coordinates import check_index
from posenc.core.compose import layers, parts
from posenc.core.scheme import Dims
from posenc.core.shapes import label
from posenc.lab.compiling import OFTEN, SELDOM, Programs, forget
from posenc.lab.models import kinds, stems
from posenc.lab.models.carry import carried
from posenc.lab.models.draws import WeightDraw
from posenc.lab.models.interface import Shape, build
from posenc.lab.spec.run import Knobs, Run
from posenc.lab.spec.suites import usual_model
from posenc.lab.tasks import Layout, Task, measure
from posenc.lab.tasks import parse as parse_task
from posenc.lab.tasks.measure import positions_key
from posenc.lab.train import evaluation
from posenc.lab.train.batches import Batching, Examples, batches_of, cut, draw_sizes
from posenc.lab.train.lanes import Arrangement, lanes
from posenc.lab.train.shapes import StepShape, known_classes, step_shape
from posenc.lab.train.vectors import Packing, Vectors
from posenc.naming import bind, parse

REVISION = 1
"""Raised when training or evaluation computes something else: part of every trial's identity."""
ROUNDING = 3
"""Number that rises when training computes the same in another order, so that last digits differ. It is provenance, as
the version of jax is.

2: two vectors hold all parameters, gradients of norm and loss are written out, and batches have more padding.

3: short examples are evaluated with less padding, and initial values are drawn without fusion emitters."""
BATCHES = 2**26
"""Bytes of the batches that are made at once."""
NEVER = -1e30
"""The logit of a class that a task does not have."""


class State(NamedTuple):
    """One trial between two segments."""

    model: PyTree
    """A model, as `posenc.lab.models.interface` says what that is."""
    optimiser: PyTree
    """The moments, as vectors."""
    diverged: Int[Array, ""]
    """The first step whose loss or update was not finite; -1 while there is none."""


class ResolvedRun(NamedTuple):
    """A run with its texts resolved: what training, evaluation and identity need."""

    run: Run
    task: Task
    scheme: Any
    shape: Shape

    @property
    def batching(self) -> Batching:
        """Return the settings that decide its batches."""
        return Batching.of(self.run, self.task)

    @property
    def step(self) -> StepShape:
        """Return the facts that decide the program of its steps."""
        return step_shape(self.scheme, self.shape, self.run.schedule, self.batching)


def resolve(run: Run, origin: int | None = None) -> ResolvedRun:
    """The task and scheme of a run, bound to its sizes, and the run with nothing left open. Refuses what cannot be.

    `origin` is the length in tokens that schemes are bound to as the trained one, where that is not the run's own: what
    goes on with the parameters of a run counts from the length that they were first trained on.
    """
    task = parse_task(run.task)
    run = run.filled(task.sizes.upto(run.length, run.shortest).train[0], usual_model(task))
    causal = check_model(run, task)
    for n in (run.shortest, run.length):
        task.check_size(n)
    dims = Dims(
        width=run.width,
        heads=run.heads,
        head=run.width // run.heads,
        trained=origin or task.tokens(run.length),
        longest=task.tokens(run.longest),
        causal=causal,
    )
    scheme, stem = parse(run.scheme), stems.parse(run.stem)
    check_index(scheme)
    scheme = scheme if run.kind.binds else bind(scheme, dims)
    if run.kind.attends:
        (_check_behind if causal else _check_direction)(scheme, run)
    sizes = (dims, run.depth, run.hidden, task.vocab, task.classes)
    shape = Shape(*sizes, run.norm, run.dtype, stem, run.attention, run.dropout, run.kind)
    return ResolvedRun(run, task, scheme, shape)


def check_model(run: Run, task: Task) -> bool:
    """Tell whether a token sees only the tokens up to itself. Refuses a model that cannot do the task."""
    kind, source = run.kind, task.layout is Layout.SEQ2SEQ
    if bool(kind.source) < source or (kind.source == "always") > source:
        fit = (name for name in kinds.MODELS.names() if bool(kinds.MODELS.find(name).source) == source)
        others = ", ".join(kinds.likeliest(fit))
        has, reads = ("a", "reads none") if source else ("no", "needs one")
        raise ValueError(f"The task {run.task!r} has {has} source, but model={run.model!r} {reads}; take {others}.")
    causal = kind.causal or source  # what is written after a source is written from left to right
    direction = "causal" if causal else "bidirectional"
    if direction not in task.directions:
        raise ValueError(
            f"The task {run.task!r} is {' or '.join(sorted(task.directions))}, but model={run.model!r} is {direction};"
            f" take {_models(not causal)}."
        )
    if run.then is not None and not kind.goes_on:
        raise ValueError(
            f"then is {run.then!r}, but no scheme goes on with the parameters of {run.model!r}; leave it out, or take"
            " encoder or decoder."
        )
    return causal


def _check_direction(scheme: Any, run: Run) -> None:
    """Refuse a scheme that cannot see the future where a model shows it."""
    for part in (layer.scheme for layer in layers(scheme)):
        if why := part.limits.get("bidirectional"):
            raise ValueError(
                f"{label(part)} is causal only: {why}; but model={run.model!r} is bidirectional; take"
                " model=decoder, or another scheme."
            )


def _check_behind(scheme: Any, run: Run) -> None:
    """Refuse parameters for keys that a model never shows: they would not be trained."""
    for part in (plain for layer in layers(scheme) for plain in parts(layer)):
        if getattr(part, "bidirectional", None):
            raise ValueError(
                f"{label(part)} has bidirectional=True, for keys after the query too, but model={run.model!r} shows"
                " none; leave bidirectional out, or take model=encoder."
            )


def _models(causal: bool) -> str:
    """The models that see only what stands before, or those that see both ways, of those that need no source."""
    kept = (name for name in kinds.MODELS.names() if kinds.MODELS.find(name).source != "always")
    texts = (f"{n}(bidirectional={not causal})" if "bidirectional" in vars(kinds.parse(n)) else n for n in kept)
    return ", ".join(kinds.likeliest(kinds.spec(m) for m in map(kinds.parse, texts) if m.causal == causal))


def stages(resolved: ResolvedRun, steps: int) -> list[tuple[ResolvedRun, int]]:
    """Return the runs that train in turn with the same parameters, and the step at which each ends (DroPE without the
    rest; Gelberg, 2025)."""
    share, scheme, length = resolved.run.goes_on
    if not scheme:
        return [(resolved, steps)]
    at = round(share * steps)
    if not 0 < at < steps:
        raise ValueError(f"then is {resolved.run.then!r}, which leaves no step of {steps} on one side; train longer.")
    return [(resolved, at), (under(resolved, scheme, length), steps)]


def under(resolved: ResolvedRun, scheme: str, length: int | None = None) -> ResolvedRun:
    """Return the run under another scheme, trained on sizes up to `length`, or to its own.

    The scheme is bound to the length that the run was first trained on, from which a factor counts. With `original`
    left open, `yarn(factor=4.0)` stretches that length, and not the one that it is trained further or evaluated on.
    """
    run = resolved.run
    run = dataclasses.replace(run, scheme=scheme, then=None, length=length or run.length)
    return resolve(run, origin=resolved.shape.dims.trained)


def as_arrays(knobs: Knobs) -> Knobs:
    """The knobs of one lane in the types that programs take; NumPy's, since each of JAX's is a program of its own."""
    return Knobs(np.uint32(knobs.seed), *map(np.float32, knobs[1:]))


def init(resolved: ResolvedRun, knobs: Knobs, before: State | None = None) -> State:
    """A trial before its first step, or before the first of a stage that goes on from a state."""
    return begin(*resolved.step.model, knobs, before, resolved.task.vocab, resolved.task.classes)


def begin(scheme: Any, shape: Shape, knobs: Knobs, before: State | None, symbols: Any, classes: Any) -> State:
    """Return the initial state of a model of this shape, for a task with these numbers of symbols and classes."""
    draw = WeightDraw(jax.random.fold_in(jax.random.key(knobs.seed), 0), symbols, classes)
    model = build(scheme, shape, draw)
    fresh = State(model, adamw(knobs, 0.0).init(Packing.of(model).pack(model)), jnp.int32(-1))
    return fresh if before is None else gone_on(before, fresh)


def gone_on(before: State, fresh: State) -> State:
    """The state before, moments too, in the form of a fresh one under another scheme."""
    state = carried(*(s._replace(optimiser=Packing.of(s.model).unpack_all(s.optimiser)) for s in (before, fresh)))
    return state._replace(optimiser=Packing.of(fresh.model).pack_all(state.optimiser))


def segment(
    resolved: ResolvedRun, stride: int, state: State, knobs: Knobs, first: Array, total: Array
) -> tuple[State, Array]:
    """`stride` steps from step `first` of `total`, and the loss of each."""
    step, alone = resolved.step, Arrangement("map", 1)
    draws = draw_sizes(resolved.batching.sizes, stride, jnp.asarray(knobs.seed)[None], first)
    batches = jax.tree.map(lambda a: a[0], batches_of(resolved.batching, draws, alone)).reading(step.coordinates)
    return steps_on(step, state, knobs, batches, first, draws.buckets, total, jnp.int32(resolved.task.classes))


def steps_on(
    step: StepShape,
    state: State,
    knobs: Knobs,
    batches: Examples,
    first: Array,
    buckets: Int[Array, " stride"],
    total: Array,
    classes: Array,
) -> tuple[State, Array]:
    """Take a step on each of these batches, the first of which is that of step `first`, and return the loss of each."""

    packing = Packing.of(state.model)

    def train_step(state: State, inputs: tuple) -> tuple[State, Array]:
        n, bucket, batch = inputs
        branches = [functools.partial(loss_and_gradient, sizes) for sizes in step.batches]
        loss, gradient = jax.lax.switch(bucket, branches, packing.unpack(state.model), knobs, n, batch, classes)
        optimiser = adamw(knobs, rate_at(step.schedule, knobs, n, total))
        update, optimiser_state = optimiser.update(packing.pack(gradient), state.optimiser, state.model)
        finite = jnp.isfinite(loss) & jnp.isfinite(optax.tree.norm(update))
        diverged = jnp.where((state.diverged < 0) & ~finite, n, state.diverged)
        return State(optax.apply_updates(state.model, update), optimiser_state, diverged), loss

    step_numbers = first + jnp.arange(buckets.size, dtype=jnp.int32)
    packed = state._replace(model=packing.pack(state.model))
    state, losses = jax.lax.scan(train_step, packed, (step_numbers, buckets, batches))
    return state._replace(model=packing.unpack(state.model)), losses


class Program(NamedTuple):
    """The three functions of a stage, over lanes."""

    init: Any
    segment: Any
    evaluate: Any


def program(resolved: ResolvedRun, stride: int, rows: int, arrangement: Arrangement) -> Program:
    """Three functions over lanes: states live on the device and are given up to each segment.

    What they compile is shared by all runs of the process: `initial_states`, `train_segment` and the sums of an
    evaluation depend on scheme, model and shape, `make_batches` and `examples` on the task.
    """
    task, step, batching = resolved.task, resolved.step, resolved.batching
    symbols, classes = np.int32(task.vocab), np.int32(task.classes)

    def start(knobs: Knobs, before: State | None = None) -> State:
        return initial_states(*step.model, arrangement, knobs, before, symbols, classes)

    def go(state: State, knobs: Knobs, first: int, total: int) -> tuple[State, Array]:
        total, losses = np.int32(total), []
        chunk = chunk_of(batching, stride, knobs.seed.size)
        for at in range(0, stride, chunk):
            now = np.int32(first + at)
            draws = jax.device_get(draw_sizes(batching.sizes, chunk, knobs.seed, now))
            batches = batches_of(batching, draws, arrangement).reading(step.coordinates)
            state, loss = train_segment(step, arrangement, state, knobs, batches, now, draws.buckets, total, classes)
            losses.append(loss)
        return state, losses[0] if len(losses) == 1 else jnp.concatenate(losses, 1)

    def look(state: State, knobs: Knobs, sizes: Sequence[int], choosing_rates: Sequence[bool]) -> dict[str, Any]:
        return evaluation.evaluate(resolved, rows, arrangement, state.model, knobs.seed, sizes, choosing_rates)

    return Program(start, go, look)


def chunk_of(batching: Batching, stride: int, lanes: int) -> int:
    """How many steps of a segment have their batches made at once: a divisor of it."""
    room = max(1, BATCHES // (batching.size_in_bytes() * lanes))
    return max(n for n in range(1, stride + 1) if stride % n == 0 and n <= room)


def forget_programs(before: set[StepShape], now: set[StepShape]) -> None:
    """Drop what was compiled for steps before and serves none of those now; else it stays loaded as long as the
    process."""
    if before.isdisjoint(now):
        models, needed = ({step.model for step in steps} for steps in (before, now))
        forget(train_segment, *((initial_states, evaluation.sums) if models.isdisjoint(needed) else ()))


def programs(resolved: ResolvedRun, steps: int, rows: int, sizes: Sequence[int]) -> set[tuple[Any, ...]]:
    """Return the keys of all programs that a run compiles: runs share those for which they are equal."""
    batching, all_stages = resolved.batching, stages(resolved, steps)
    keys = {("batches", batching), ("sizes", batching.sizes)}
    for step in (stage.step for stage, _ in all_stages):
        keys |= {("initial", *step.model), ("steps", step)}
    return keys | evaluation.programs(all_stages[-1][0], rows, sizes)


@functools.partial(Programs, static=3, wanted=SELDOM)
def initial_states(scheme: Any, shape: Shape, arrangement: Arrangement, *args: Any) -> State:
    """`begin` in each lane."""
    return lanes(functools.partial(begin, scheme, shape), arrangement, 2)(*args)


@functools.partial(Programs, static=2, donated=(0,), wanted=OFTEN)
def train_segment(step: StepShape, arrangement: Arrangement, *args: Any) -> tuple[State, Array]:
    """`steps_on` in each lane."""
    return lanes(functools.partial(steps_on, step), arrangement, 4)(*args)


def loss_and_gradient(sizes: Any, model: PyTree, knobs: Knobs, n: Array, batch: Examples, classes: Array):
    key = positions_key(knobs.seed, "train", n)
    return jax.value_and_grad(cross_entropy)(model, cut(batch, sizes), key, classes)


def cross_entropy(model: PyTree, batch: Examples, key: Array, classes: Any) -> Float[Array, ""]:
    """The loss of one batch: cross-entropy of the targets, averaged by the weights that the task gives them.

    Of the model's classes the task has the first `classes`.
    """
    logits = model(batch.inputs, key, train=True)
    logits = jnp.where(known_classes(logits, classes), logits, NEVER)
    losses = measure.cross_entropy(logits, batch.targets)
    return (losses * batch.weight).sum() / jnp.maximum(batch.weight.sum(), 1.0)


def rate_at(schedule: str, knobs: Knobs, n: Array, total: Array) -> Float[Array, ""]:
    """The learning rate of a step: a linear rise, then a fall to a tenth, to zero, or none."""
    rise = jnp.maximum(knobs.warmup * total, 1.0)
    share = jnp.clip((n - rise) / jnp.maximum(total - rise, 1.0), 0.0, 1.0)
    fall = {"cosine": 0.55 + 0.45 * jnp.cos(jnp.pi * share), "linear": 1 - share, "constant": jnp.ones(())}[schedule]
    return knobs.lr * jnp.minimum((n + 1) / rise, 1.0) * fall


def adamw(knobs: Knobs, rate: Any) -> optax.GradientTransformation:
    """AdamW (Loshchilov and Hutter, 2019) after clipping, of the vectors of a model."""
    return optax.chain(
        optax.clip_by_global_norm(knobs.clip),
        optax.adamw(rate, weight_decay=knobs.weight_decay, mask=Vectors(True, False)),
    )


def pure(model: PyTree) -> dict:
    """The parameters as nested dicts of arrays, readable without Flax."""
    return nnx.to_pure_dict(nnx.state(model))
