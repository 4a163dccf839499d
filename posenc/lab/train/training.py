"""Training as three pure functions of one trial: `init`, `segment`, `evaluate`.

The first two are compiled once for each stage of a run, of which most have one; the last only for its end.

Trials are lanes of one program (`lab.train.lanes`). The step, the total of steps and the sizes are arguments that all
lanes share; data are made inside the program, keys are folded from seed and step, nothing crosses to the host but sums.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PyTree

from posenc.coordinates import check_index
from posenc.core.compose import layers, normal_form, parts
from posenc.core.scheme import Dims
from posenc.core.shapes import label
from posenc.lab.models import kinds, stems
from posenc.lab.models.carry import carried
from posenc.lab.models.interface import Shape, build, inputs
from posenc.lab.models.weights import decaying
from posenc.lab.spec.run import Knobs, Run
from posenc.lab.spec.suites import usual_model
from posenc.lab.tasks import Layout, Task
from posenc.lab.tasks import parse as parse_task
from posenc.lab.tasks.measure import by_row, evaluation_key, hits, positions_key, train_key, validation_key
from posenc.lab.train import draws
from posenc.lab.train.lanes import Arrangement, lanes
from posenc.naming import bind, parse

REVISION = 1
"""Raised when training or evaluation changes its numbers: part of every trial's identity."""
SCORES = 2**24
"""Scores of one layer, or logits, evaluated at once: more would not fit a small machine."""
DRAWS = 16
"""Draws of random positions over which the sequences of one size are evaluated."""
SHORT = 128
"""Tokens up to which padding costs less than one more program."""


class State(NamedTuple):
    """One trial between two segments."""

    model: PyTree
    """A model, as `posenc.lab.models.interface` says what that is."""
    optimiser: PyTree
    diverged: Int[Array, ""]
    """The first step whose loss or update was not finite; -1 while there is none."""


class ResolvedRun(NamedTuple):
    """A run with its texts resolved: what training, evaluation and identity need."""

    run: Run
    task: Task
    scheme: Any
    shape: Shape


def resolve(run: Run) -> ResolvedRun:
    """The task and scheme of a run, bound to its sizes, and the run with nothing left open. Refuses what cannot be."""
    task = parse_task(run.task)
    run = run.filled(task.sizes.upto(run.length, run.shortest).train[0], usual_model(task))
    causal = check_model(run, task)
    for n in (run.shortest, run.length):
        task.check_size(n)
    dims = Dims(
        width=run.width,
        heads=run.heads,
        head=run.width // run.heads,
        trained=task.tokens(run.length),
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
    """Whether a token sees only what stands before it and itself. Refuses a model that cannot do the task."""
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
    for one in (normal_form(layer).scheme for layer in layers(scheme)):
        if why := one.limits.get("bidirectional"):
            raise ValueError(
                f"{label(one)} is causal only: {why}; but model={run.model!r} is bidirectional; take"
                " model=decoder, or another scheme."
            )


def _check_behind(scheme: Any, run: Run) -> None:
    """Refuse parameters for keys that a model never shows: nobody would train them."""
    for one in (plain for layer in layers(scheme) for plain in parts(layer)):
        if getattr(one, "bidirectional", None):
            raise ValueError(
                f"{label(one)} has bidirectional=True, for keys after the query too, but model={run.model!r} shows"
                " none; leave bidirectional out, or take model=encoder."
            )


def _models(causal: bool) -> str:
    """The models that see only what stands before, or those that see both ways, of those that need no source."""
    kept = (name for name in kinds.MODELS.names() if kinds.MODELS.find(name).source != "always")
    texts = (f"{n}(bidirectional={not causal})" if "bidirectional" in vars(kinds.parse(n)) else n for n in kept)
    return ", ".join(kinds.likeliest(kinds.spec(m) for m in map(kinds.parse, texts) if m.causal == causal))


def stages(resolved: ResolvedRun, steps: int) -> list[tuple[ResolvedRun, int]]:
    """What is trained in turn with the same parameters, and where each ends (DroPE without the rest; Gelberg, 2025)."""
    share, scheme = resolved.run.goes_on
    if not scheme:
        return [(resolved, steps)]
    at = round(share * steps)
    if not 0 < at < steps:
        raise ValueError(f"then is {resolved.run.then!r}, which leaves no step of {steps} on one side; train longer.")
    return [(resolved, at), (resolve(dataclasses.replace(resolved.run, scheme=scheme, then=None)), steps)]


def edges(resolved: ResolvedRun) -> tuple[int, ...]:
    """The padded sizes that sizes trained on fall into, the largest of each bucket."""
    run, below = resolved.run, resolved.task.sizes.below
    span, n = run.length - run.shortest + 1, run.buckets
    return tuple(sorted({below(run.shortest - 1 + -(-span * (i + 1) // n)) for i in range(n)}))


def rounds(resolved: ResolvedRun, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The padded sizes of evaluation: few, since each is a program; none wastes more than a factor of three."""
    kept: list[int] = []
    for n in sorted(sizes, reverse=True):
        last = resolved.task.tokens(kept[-1]) if kept else math.inf
        if last > SHORT and resolved.task.tokens(n) * 3 < last:
            kept.append(n)
    return tuple(reversed(kept))


def as_arrays(knobs: Knobs) -> Knobs:
    """The knobs of one lane in the types that programs take."""
    return Knobs(jnp.uint32(knobs.seed), *map(jnp.float32, knobs[1:]))


def init(resolved: ResolvedRun, knobs: Knobs, before: State | None = None) -> State:
    """A trial before its first step, or before the first of a stage that goes on from a state."""
    model = build(resolved.scheme, resolved.shape, jax.random.fold_in(jax.random.key(knobs.seed), 0))
    fresh = State(model, adamw(knobs, 0.0, model).init(model), jnp.int32(-1))
    return fresh if before is None else carried(before, fresh)


def segment(
    resolved: ResolvedRun, stride: int, state: State, knobs: Knobs, first: Array, total: Array
) -> tuple[State, Array]:
    """`stride` steps from step `first` of `total`, and the loss of each."""

    def step(state: State, n: Array) -> tuple[State, Array]:
        size, bucket = size_at(resolved, knobs, n)
        branches = [functools.partial(_loss_and_gradient, resolved, edge) for edge in edges(resolved)]
        loss, gradient = jax.lax.switch(bucket, branches, state.model, knobs, n, size)
        optimiser = adamw(knobs, rate_at(resolved.run.schedule, knobs, n, total), state.model)
        update, moments = optimiser.update(gradient, state.optimiser, state.model)
        fine = jnp.isfinite(loss) & jnp.isfinite(optax.tree.norm(update))
        diverged = jnp.where((state.diverged < 0) & ~fine, n, state.diverged)
        return State(optax.apply_updates(state.model, update), moments, diverged), loss

    return jax.lax.scan(step, state, first + jnp.arange(stride, dtype=jnp.int32))


def evaluate(
    resolved: ResolvedRun,
    rows: int,
    padded: tuple[int, ...],
    state: State,
    knobs: Knobs,
    sizes: Int[Array, " S"],
    chosen: Bool[Array, " S"],
) -> PyTree:
    """The sums of `posenc.lab.tasks.measure` at each size, on examples that every scheme and seed shares.

    Where `chosen`, the examples are those on which a learning rate is chosen, else those that are reported. Random
    positions are drawn anew for each trial, size and part of the examples.
    """

    def at(one: tuple) -> PyTree:
        n, choosing = one
        branches = [functools.partial(_sums, resolved, rows, n_max) for n_max in padded]
        bucket = jnp.searchsorted(jnp.asarray(padded), n)
        return jax.lax.switch(bucket, branches, state.model, knobs.seed, n, choosing)

    return jax.lax.map(at, (sizes, chosen))


class Program(NamedTuple):
    """The three compiled functions of a stage, over lanes."""

    init: Any
    segment: Any
    evaluate: Any


def program(resolved: ResolvedRun, stride: int, rows: int, sizes: tuple[int, ...], how: Arrangement) -> Program:
    """Three jitted functions: states live on the device and are given up to each segment."""
    start = lanes(functools.partial(init, resolved), how, 0)
    go = lanes(functools.partial(segment, resolved, stride), how, 2)
    look = lanes(functools.partial(evaluate, resolved, rows, rounds(resolved, sizes)), how, 2)
    return Program(jax.jit(start), jax.jit(go, donate_argnums=0), jax.jit(look))


def size_at(resolved: ResolvedRun, knobs: Knobs, n: Array) -> tuple[Array, Array]:
    """The size of a step, drawn from the step alone: trials that meet the same lengths differ by less noise."""
    run, padded = resolved.run, jnp.asarray(edges(resolved))
    key = jax.random.fold_in(jax.random.key(run.length), draws.turn(run, n))
    if run.lengths == "example":
        key = jax.random.fold_in(key, knobs.seed)
        return draws.sizes(run, resolved.task, key, (run.batch,)), jnp.int32(len(padded) - 1)
    size = draws.sizes(run, resolved.task, key, ())
    return size, jnp.searchsorted(padded, size)


def _loss_and_gradient(resolved: ResolvedRun, n_max: int, model: PyTree, knobs: Knobs, n: Array, size: Array):
    key = train_key(knobs.seed, draws.turn(resolved.run, n))
    batch = resolved.task.sample(key, size, batch=resolved.run.batch, n_max=n_max)
    return jax.value_and_grad(cross_entropy)(model, batch, positions_key(knobs.seed, "train", n))


def cross_entropy(model: PyTree, batch: Any, key: Array) -> Float[Array, ""]:
    """The loss of one batch: cross-entropy of the targets, averaged by the weights that the task gives them."""
    logits = model(inputs(batch), key, train=True)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch.targets)
    return (losses * batch.weight).sum() / jnp.maximum(batch.weight.sum(), 1.0)


def _sums(
    resolved: ResolvedRun, rows: int, n_max: int, model: PyTree, seed: Array, n: Array, choosing: Array
) -> PyTree:
    counted, _ = examined(resolved, rows, n_max, model, seed, n, choosing)
    return jax.tree.map(lambda a: a.sum(dtype=a.dtype), counted)


def examined(
    resolved: ResolvedRun, rows: int, n_max: int, model: PyTree, seed: Array, n: Array, choosing: Array
) -> PyTree:
    """What was counted in each row of the examples of one size, and by what the task groups them, both `[rows]`."""
    key = jnp.where(choosing, validation_key(resolved.task, n), evaluation_key(resolved.task, n))
    batch = resolved.task.sample(key, n, batch=rows, n_max=n_max)
    length = batch.tokens.shape[1]
    most = max(1, SCORES // (length * max(resolved.run.kind.pairs(resolved.run) * length, resolved.task.classes)))
    if any(normal_form(s).coordinates for s in layers(resolved.scheme)):
        most = min(most, max(1, rows // DRAWS))
    each = max(d for d in range(1, rows + 1) if rows % d == 0 and d <= most)

    def some(part: tuple) -> dict[str, Array]:
        number, given = part
        own = jax.random.fold_in(positions_key(seed, "evaluation", n), 2 * number + choosing)
        training = resolved.run.evaluation == "as_trained"
        return by_row(hits(model(inputs(given), own, train=training), given), given)

    cut = jax.tree.map(lambda a: a.reshape(-1, each, *a.shape[1:]), batch)
    counted = jax.lax.map(some, (jnp.arange(rows // each, dtype=jnp.int32), cut))
    return jax.tree.map(jnp.ravel, counted), batch.strata


def rate_at(schedule: str, knobs: Knobs, n: Array, total: Array) -> Float[Array, ""]:
    """The learning rate of a step: a linear rise, then a fall to a tenth, to zero, or none."""
    rise = jnp.maximum(knobs.warmup * total, 1.0)
    share = jnp.clip((n - rise) / jnp.maximum(total - rise, 1.0), 0.0, 1.0)
    fall = {"cosine": 0.55 + 0.45 * jnp.cos(jnp.pi * share), "linear": 1 - share, "constant": jnp.ones(())}[schedule]
    return knobs.lr * jnp.minimum((n + 1) / rise, 1.0) * fall


def adamw(knobs: Knobs, rate: Any, model: PyTree) -> optax.GradientTransformation:
    """AdamW (Loshchilov and Hutter, 2019) after clipping; what decays is labelled by the model."""
    return optax.chain(
        optax.clip_by_global_norm(knobs.clip),
        optax.adamw(rate, weight_decay=knobs.weight_decay, mask=decaying(model)),
    )


def pure(model: PyTree) -> dict:
    """The parameters as nested dicts of arrays, readable without Flax."""
    return nnx.to_pure_dict(nnx.state(model))
