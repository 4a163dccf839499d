"""Evaluation: a program of the task makes the examples of a size, and one of scheme, model and shape counts on them.

Each is compiled once in a process. Examples are the same for every scheme, and counts depend on the task by the shape
of its examples alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree, UInt32

from posenc.lab.compiling import Programs
from posenc.lab.models.interface import Inputs, inputs
from posenc.lab.tasks import Batch, Task
from posenc.lab.tasks.examples import cut_padding, fewer, pad_tokens, round_length
from posenc.lab.tasks.measure import (
    beyond,
    by_place,
    by_row,
    evaluation_key,
    first_beyond,
    hits,
    losses,
    nats,
    positions_key,
    validation_key,
    width,
)
from posenc.lab.train.lanes import Arrangement, lanes
from posenc.lab.train.shapes import endless, known_classes, places

SCORES = 2**22
"""Scores of one layer, or logits, evaluated at once: more would be no faster, and take most of a sweep's memory."""
DRAWN = 2**24
"""The limit if positions or dropout are drawn for each part of the examples: it decides the parts, and so results."""
DRAWS = 16
"""Draws of random positions over which the sequences of one size are evaluated."""
HALF = 2**12
"""Sums are of quotients and rests by this: those of losses over many rows do not fit 32 bits."""
SHORT, SHORTEST = 128, 32
"""Tokens up to which sizes share two programs, and up to which they share one."""


class ScoredExamples(NamedTuple):
    """The part of examples that is read: by the model, and to count what it gets right."""

    inputs: Inputs
    targets: Int[Array, "rows T"]
    score: Bool[Array, "rows T"]


class Counting(NamedTuple):
    """Settings that decide how a model is evaluated, beside the model and the examples."""

    each: int
    """How many examples at once."""
    as_trained: bool
    """True if dropout and shifts act as in training."""


def rounds(task: Task, sizes: Sequence[int], short: int = SHORT, waste: int = 3) -> tuple[int, ...]:
    """The padded sizes of examples, few, so that these differ little in shape. Padding wastes at most this factor, or
    more among sizes of up to `short` tokens.

    Where evaluation draws something they decide what, and are programs; see `own_size` for where it draws nothing.
    """
    kept: list[int] = []
    for n in sorted(sizes, reverse=True):
        last = task.tokens(kept[-1]) if kept else math.inf
        if last > short and task.tokens(n) * waste < last:
            kept.append(n)
    return tuple(reversed(kept))


def padded_size(task: Task, sizes: Sequence[int], n: int, short: int = SHORT, waste: int = 3) -> int:
    """The first of `rounds` that holds examples of size n."""
    return next(most for most in rounds(task, sizes, short, waste) if most >= n)


def own_size(resolved: Any, sizes: Sequence[int], n: int) -> int:
    """The size that examples of size n are padded to. Unless something is drawn, those of many tokens have no padding
    and those of few have less, since it would cost more than a program."""
    task, room = resolved.task, padded_size(resolved.task, sizes, n)
    if draws(resolved):
        return room
    if task.tokens(n) > SHORT:
        return n
    short = [m for m in sizes if task.tokens(m) <= SHORT]
    return min(room, padded_size(task, short, n, SHORTEST, 2))


def counting(resolved: Any, rows: int, length: int) -> Counting:
    """Return how the models of a resolved run are evaluated on `rows` examples of `length` tokens, which are padded
    unless something is drawn."""
    positions = places(resolved.scheme)
    as_trained = resolved.run.evaluation == "as_trained"
    if not draws(resolved):
        length = _padding(resolved)(length)
    held = length * max(resolved.run.kind.pairs(resolved.run) * length, resolved.task.classes)
    most = max(1, (DRAWN if positions or as_trained else SCORES) // held)
    if positions:
        most = min(most, max(1, rows // DRAWS))
    return Counting(max(d for d in range(1, rows + 1) if rows % d == 0 and d <= most), as_trained)


OF_ROWS = ("beyond", "beyond_nats", "beyond_scored", "correct", "exact", "last", "nats", "rows", "scored")
"""Counts in each example, in the order of the columns."""
OF_PLACES = ("nats", "right", "scored")
"""Counts in each bin of positions."""


class Counts(NamedTuple):
    """Counts of `posenc.lab.tasks.measure`: arrays of a column for each count, or these by name."""

    rows: Any
    """In each example, or over all."""
    places: Any
    """In each bin of places, or in those of each part of the examples."""

    @classmethod
    def of(cls, rows: Mapping[str, Array], places: Mapping[str, Array]) -> Counts:
        """The columns of counts, one array: each operation on them is then one, and not nine."""
        assert (*sorted(rows),) == OF_ROWS and (*sorted(places),) == OF_PLACES
        return cls(jnp.stack([rows[name] for name in OF_ROWS], -1), jnp.stack([places[name] for name in OF_PLACES], -1))

    def named(self) -> Counts:
        """The counts by name, from arrays whose last axis are the columns."""
        columns = lambda a, names: {name: a[..., i] for i, name in enumerate(names)}  # noqa: E731
        return Counts(columns(self.rows, OF_ROWS), columns(self.places, OF_PLACES))


class SizeQuestion(NamedTuple):
    """Question of an evaluation: numbers, so that tasks and sizes share a program."""

    n: Any
    """The size."""
    choosing: Any
    """True if it is to choose a learning rate."""
    classes: Any
    """The classes of the task: the first ones of the model."""
    beyond: Any
    """The first place that is further out than any trained on."""
    width: Any
    """The places of a bin."""

    @classmethod
    def of(cls, resolved: Any, n: int, choosing: bool) -> SizeQuestion:
        """Return the question to the models of a run at size n."""
        task = resolved.task
        places = first_beyond(task, n, resolved.run.length), width(task.tokens(n))
        return cls(np.int32(n), np.bool_(choosing), np.int32(task.classes), *map(np.int32, places))


def counts(
    settings: Counting, model: PyTree, seed: UInt32[Array, ""], question: SizeQuestion, examples: ScoredExamples
) -> Counts:
    """Count in each example, and by position in each part of them.

    Random positions are drawn for each trial, size and part of the examples.
    """

    def count_part(part: tuple) -> Counts:
        number, batch = part
        own = jax.random.fold_in(positions_key(seed, "evaluation", question.n), 2 * number + question.choosing)
        logits = model(batch.inputs, own, train=settings.as_trained)
        logits = jnp.where(known_classes(logits, question.classes), logits, -jnp.inf)
        hit, loss = hits(logits, batch), losses(logits, batch)
        far = jnp.where(jnp.arange(loss.shape[1], dtype=jnp.int32)[None, :] >= question.beyond, loss, 0.0)
        rows = by_row(hit, batch) | beyond(hit, batch, question.beyond)
        rows |= {"nats": nats(loss), "beyond_nats": nats(far)}
        return Counts.of(rows, by_place(hit, loss, batch, question.width))

    rows = examples.targets.shape[0]
    cut = jax.tree.map(lambda a: a.reshape(-1, settings.each, *a.shape[1:]), examples)
    parts = jax.lax.map(count_part, (jnp.arange(rows // settings.each, dtype=jnp.int32), cut))
    return parts._replace(rows=parts.rows.reshape(rows, -1))


@functools.partial(jax.jit, static_argnums=0)
def _counts(settings: Counting, *args: Any) -> dict[str, Int[Array, " rows"]]:
    return counts(settings, *args).named().rows


@functools.partial(Programs, static=2)
def sums(settings: Counting, over: Arrangement, *args: Any) -> Counts:
    """The sums of `counts` in each lane, `[lanes, 2, …]`: each as a quotient and a rest by `HALF`."""

    def summed(*args: Any) -> Counts:
        return jax.tree.map(lambda a: jnp.stack([a // HALF, a % HALF]).sum(1), counts(settings, *args))

    return lanes(summed, over, 2)(*args)


def examples_at(task: Task, rows: int, sizes: Sequence[int], n: int, choosing: bool = False) -> Batch:
    """The examples of one of these sizes, padded as `rounds` says: every scheme and seed shares them.

    Where `choosing`, they are those on which a learning rate is chosen, else those that are reported. One program makes
    those of all sizes.
    """
    room = padded_size(task, sizes, n)
    key, part = (validation_key, "validation") if choosing else (evaluation_key, "test")
    return fewer(task, rows, max(sizes), room, key(task, n), np.int32(n), task.load_part(part))


def draws(resolved: Any) -> bool:
    """Tell whether evaluation draws positions, dropout or shifts, by the shape of the examples."""
    return resolved.run.evaluation == "as_trained" or places(resolved.scheme)


def own_tokens(resolved: Any, sizes: Sequence[int], n: int, batch: Batch) -> Batch:
    """The examples of one of these sizes with the padding of `own_size`."""
    return cut_padding(batch, resolved.task, own_size(resolved, sizes, n))


def programs(resolved: Any, rows: int, sizes: Sequence[int]) -> set[tuple[Any, ...]]:
    """Return the keys of all programs that an evaluation compiles."""
    task, step = resolved.task, resolved.step
    keys: set[tuple[Any, ...]] = {("examples", task, rows, max(sizes))}
    for tokens in map(task.tokens, {own_size(resolved, sizes, n) for n in sizes}):
        keys.add(("sums", step.scheme, step.shape, _padding(resolved)(tokens), counting(resolved, rows, tokens)))
    return keys


def examined(
    resolved: Any, model: PyTree, seed: Array, sizes: Sequence[int], n: int, batch: Batch
) -> dict[str, Int[np.ndarray, " rows"]]:
    """Return the counts in each of these examples of one of these sizes, which do not choose a learning rate."""
    batch = own_tokens(resolved, sizes, n, batch)
    settings, question = counting(resolved, *batch.tokens.shape), SizeQuestion.of(resolved, n, False)
    scored = scored_examples(resolved, resolved.step.coordinates, batch)
    return jax.device_get(_counts(settings, model, seed, question, scored))


def evaluate(
    resolved: Any,
    rows: int,
    over: Arrangement,
    models: PyTree,
    seeds: UInt32[Array, " lanes"],
    sizes: Sequence[int],
    choosing_rates: Sequence[bool],
) -> Counts:
    """The sums over all examples, `[lanes, sizes, …]`, where each size has whether it is for choosing a rate."""
    totals, names = [], resolved.step.coordinates
    for n, choosing in zip(sizes, choosing_rates, strict=True):
        batch = own_tokens(resolved, sizes, n, examples_at(resolved.task, rows, sizes, n, choosing))
        settings, question = counting(resolved, *batch.tokens.shape), SizeQuestion.of(resolved, n, choosing)
        totals.append(sums(settings, over, models, seeds, question, scored_examples(resolved, names, batch)))
    join_halves = lambda halves: halves[:, 0].astype(np.int64) * HALF + halves[:, 1]  # noqa: E731
    return jax.tree.map(lambda *sizes: np.stack(list(map(join_halves, sizes)), 1), *jax.device_get(totals)).named()


def scored_examples(resolved: Any, names: tuple[str, ...], batch: Batch) -> ScoredExamples:
    """The examples as the models of a run take them; of the coordinates these."""
    examples = ScoredExamples(inputs(batch).reading(names), batch.targets, batch.score)
    return pad_tokens(examples, _padding(resolved))


class UpTo(NamedTuple):
    """The length that examples of this many tokens are padded to. It is at most that of a table of positions, unless
    the examples themselves are longer."""

    table: int

    def __call__(self, tokens: int) -> int:
        return max(tokens, min(round_length(tokens), self.table))


def _padding(resolved: Any) -> Callable[[int], int]:
    """The length that examples are padded to, from how many tokens they have."""
    return round_length if endless(resolved.scheme) else UpTo(resolved.shape.dims.table)
