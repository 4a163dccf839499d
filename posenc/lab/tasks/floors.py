"""Floors under every result: the scores of guesses that ignore the order of tokens, or the tokens.

    uniform    guess each answer token among the task's choices, the length of the answer known
    prior      the best constant: a single class for everything
    bag        the row's most frequent token, where answers are tokens of the row (`Task.cue`): a model without
               positions gives the same answer in every place, and this is the best that the multiset of tokens allows
    position   the best function of index and size, blind to the tokens: one constant sequence per size

Bucket sort shows why: index and length alone give 78 to 94 %, where the literature compares with 20 %. For exact match
they mean every token guessed right, one class or one token right throughout, and the most frequent whole answer. The
constant and the sequence are estimated. They are chosen on one half of a sample and counted on the other, so that
chance hits do not count. A floor has the unit of the task's metric: for `error`, one minus the share that is right. For
`gain` all of these gain nothing, and gain counts from the losses of `posenc.lab.tasks.exact`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from posenc.lab.compiling import Programs
from posenc.lab.metrics import GAIN, RIGHT
from posenc.lab.tasks.examples import bucket_classes, pad_tokens, parts
from posenc.lab.tasks.measure import first_beyond, last_scored, tally
from posenc.lab.tasks.task import Batch, Task

FLOORS = ("uniform", "prior", "bag", "position")
SEED = 20230526


class Guessing(NamedTuple):
    """Facts that decide the program that counts: tasks for which they are equal share it."""

    exact: bool
    """True if the metric is that of whole answers."""
    writes: bool
    """True if answers are texts with an end."""
    cued: bool
    """True if answers are tokens of the row."""
    classes: int
    """The number of classes, padded: further ones are never right."""


class TaskNumbers(NamedTuple):
    """Numbers of a task; those that it lacks are -1."""

    choices: Any
    end: Any
    first: Any
    """The first token of the cue."""
    beyond: Any
    """The token after its last."""


class Answers(NamedTuple):
    """The part of examples that guesses see, and by which they are judged."""

    tokens: Int[Array, "rows S"]
    is_input: Bool[Array, "rows S"]
    """The tokens of the input."""
    targets: Int[Array, "rows T"]
    score: Bool[Array, "rows T"]

    @classmethod
    def of(cls, batch: Batch) -> Answers:
        """Return the answers of a batch, padded so that tasks share programs."""
        own = (batch.tokens, batch.prompt) if batch.source is None else (batch.source, batch.source_valid)
        return pad_tokens(cls(*own, batch.targets, batch.score))


class Judged(NamedTuple):
    """Choice of the scored tokens that are judged."""

    first: Any
    """The first position that is judged."""
    last: Any
    """True if only the last of each row is judged."""


Table = dict[int, dict[str, float]]
"""Size to the name of a floor to its score."""


def floors(task: Task, sizes: Sequence[int], *, rows: int = 8192) -> Table:
    """The floors at every size, counted on `rows` examples.

    >>> from posenc.tasks import parse
    >>> floors(parse("reverse_string"), [4], rows=64)[4]["uniform"]
    0.5
    """
    if task.metric == GAIN:
        return _nothing_gained(task, sizes)
    judged = Judged(0, False)
    return _tables(task, sizes, rows, lambda n: {task.metric: judged})[task.metric]


def floors_by_metric(task: Task, sizes: Sequence[int], length: int, *, rows: int = 8192) -> dict[str, Table]:
    """Return the floors under the task's own metric. A metric of tokens adds those under `last` and `beyond`, and a
    metric of whole answers those under `accuracy`, of their tokens.

    `length` is the largest trained size, which decides the positions that are beyond training.
    """

    own = {} if task.metric == GAIN else {task.metric: Judged(0, False)}

    def judged(n: int) -> dict[str, Judged]:
        if task.metric == "exact":
            return own | {"accuracy": Judged(0, False)}
        if task.metric not in ("token", "error", GAIN):
            return own
        return own | {"last": Judged(0, True), "beyond": Judged(first_beyond(task, n, length), False)}

    return _tables(task, sizes, rows, judged) | ({} if own else {GAIN: _nothing_gained(task, sizes)})


def _nothing_gained(task: Task, sizes: Sequence[int]) -> Table:
    """The gain of the law of one token, over which gain is counted; that of any other guess is cut to 0 too."""
    _check(task, sizes)
    return {int(n): {"unigram": 0.0} for n in sizes}


def _check(task: Task, sizes: Sequence[int]) -> None:
    for n in sizes:
        task.check_size(n)
    if not sizes:
        raise ValueError(f"The list of sizes for the floors of {task.name!r} is empty; give at least one size.")


def _tables(
    task: Task, sizes: Sequence[int], rows: int, judged: Callable[[int], dict[str, Judged]]
) -> dict[str, Table]:
    _check(task, sizes)
    cued, classes = task.cue is not None, bucket_classes(task.classes)
    cue = range(-1, -1) if task.cue is None else task.cue
    numbers = TaskNumbers(task.choices, task.special("EOS") if task.layout.writes else -1, cue.start, cue.stop)
    names = [name for name in FLOORS if cued or name != "bag"]
    tables: dict[str, Table] = {}
    for n in sizes:
        key = jax.random.fold_in(jax.random.key(SEED), n)
        answers = tuple(map(Answers.of, jax.device_get(parts(task, 2 * rows, max(sizes), key, n))))
        for metric, which in judged(n).items():
            guessing = Guessing(metric == "exact", task.layout.writes, cued, classes)
            part, total = RIGHT["exact" if guessing.exact else "token"]
            which = Judged(np.int32(which.first), np.bool_(which.last))
            sums = jax.device_get(_sums_by_floor(guessing, TaskNumbers(*map(np.int32, numbers)), which, answers))
            if not sums["uniform"][total]:
                continue  # no place is beyond training
            right = {name: float(sums[name][part]) / float(sums[name][total]) for name in names}
            scores = {name: 1 - r if metric == "error" else r for name, r in right.items()}
            tables.setdefault(metric, {})[int(n)] = scores
    return tables


@functools.partial(Programs, static=1)
def _sums_by_floor(
    guessing: Guessing, numbers: TaskNumbers, which: Judged, answers: tuple[Answers, ...]
) -> dict[str, dict[str, Array]]:
    """The sums of each floor, chosen on every other example and counted on those between."""
    sample = _judged(which, jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *answers))
    learnt, judged = (jax.tree.map(lambda leaf, h=h: leaf[h::2], sample) for h in (0, 1))
    return {
        "uniform": _uniform(guessing, numbers, judged),
        "prior": tally(_prior(guessing, numbers, learnt, judged), judged),
        "position": tally(_position(guessing, learnt, judged), judged),
    } | (
        {"bag": tally(_right(guessing, numbers, judged, _frequent(guessing, numbers, judged)), judged)}
        if guessing.cued
        else {}
    )


def _judged(which: Judged, batch: Answers) -> Answers:
    """Return the examples with only the judged tokens scored."""
    index = jnp.arange(batch.score.shape[1], dtype=jnp.int32)[None, :]
    return batch._replace(score=batch.score & (index >= which.first) & (last_scored(batch.score) | ~which.last))


def _end(guessing: Guessing, numbers: TaskNumbers, batch: Answers) -> Bool[Array, "rows T"]:
    """Return where the target is EOS; the length of the answer is taken as known."""
    return batch.score & (batch.targets == numbers.end) if guessing.writes else jnp.zeros_like(batch.score)


def _uniform(guessing: Guessing, numbers: TaskNumbers, batch: Answers) -> dict[str, Array]:
    end, share = _end(guessing, numbers, batch), 1.0 / numbers.choices
    chance = jnp.where(end, 1.0, share)
    sums = {name: s.astype(jnp.float32) for name, s in tally(batch.score, batch).items()}
    free = jnp.sum(batch.score & ~end, axis=1, dtype=jnp.int32)
    scored = batch.score.any(axis=1)
    sums["correct"] = jnp.sum(jnp.where(batch.score, chance, 0.0))
    sums["exact"] = jnp.sum(jnp.where(scored, share**free, 0.0))
    sums["last"] = jnp.sum(jnp.where(batch.score & last_scored(batch.score), chance, 0.0))
    return sums


def _right(guessing: Guessing, numbers: TaskNumbers, batch: Answers, guess: Array) -> Bool[Array, "rows T"]:
    """Return the scored tokens that a guess gets right."""
    return batch.score & ((batch.targets == guess) | _end(guessing, numbers, batch))


def _prior(guessing: Guessing, numbers: TaskNumbers, learnt: Answers, judged: Answers) -> Bool[Array, "rows T"]:
    """Return the scored tokens that the best constant gets right."""
    if guessing.exact:
        exact_hits = lambda c: jnp.sum(tally(_right(guessing, numbers, learnt, c), learnt)["exact"])  # noqa: E731
        each = jax.lax.map(exact_hits, jnp.arange(guessing.classes, dtype=jnp.int32))
    else:
        guessed = (learnt.score & ~_end(guessing, numbers, learnt)).astype(jnp.int32)
        each = jnp.zeros(guessing.classes, jnp.int32).at[learnt.targets].add(guessed)
    return _right(guessing, numbers, judged, jnp.argmax(each).astype(jnp.int32))


def _frequent(guessing: Guessing, numbers: TaskNumbers, batch: Answers) -> Int[Array, "rows 1"]:
    """Each row's most frequent token of the task's cue, as a class. Classes are counted from the first such token."""
    tokens = batch.tokens
    in_cue = batch.is_input & (tokens >= numbers.first) & (tokens < numbers.beyond)
    ordered = jnp.sort(jnp.where(in_cue, tokens, numbers.beyond), axis=1)
    i = jnp.broadcast_to(jnp.arange(ordered.shape[1], dtype=jnp.int32)[None, :], ordered.shape)
    begins = jnp.pad(ordered[:, 1:] != ordered[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    run = jnp.where(ordered < numbers.beyond, i - jax.lax.cummax(jnp.where(begins, i, 0), axis=1) + 1, 0)
    best = jnp.take_along_axis(ordered, jnp.argmax(run, axis=1)[:, None], axis=1)[:, 0]
    best = jnp.where(in_cue.any(axis=1), best, numbers.first)
    return (best if guessing.writes else best - numbers.first)[:, None]


def _position(guessing: Guessing, learnt: Answers, judged: Answers) -> Bool[Array, "rows T"]:
    """Return the scored tokens that the best constant sequence gets right; at one size, that is the best function of
    index."""
    if guessing.exact:
        return judged.score & (judged.targets == learnt.targets[_commonest(learnt)][None, :])
    index = jnp.arange(learnt.targets.shape[1], dtype=jnp.int32)[None, :]
    count = jnp.zeros((index.shape[1], guessing.classes), jnp.int32)
    count = count.at[index, learnt.targets].add(learnt.score.astype(jnp.int32))
    return judged.score & (judged.targets == jnp.argmax(count, axis=1)[None, :])


def _commonest(batch: Answers) -> Int[Array, ""]:
    """A row whose whole answer is the most frequent; rows are compared by a polynomial hash that wraps at 2³²."""
    term = jnp.where(batch.score, batch.targets + 1, 0).astype(jnp.uint32)
    power = np.array([pow(1_000_003, i, 2**32) for i in range(term.shape[1])], np.uint32)
    rows = jnp.sum(term * power[None, :], axis=1, dtype=jnp.uint32)
    ordered = jnp.sort(rows)
    many = jnp.searchsorted(ordered, rows, side="right") - jnp.searchsorted(ordered, rows, side="left")
    return jnp.argmax(many)
