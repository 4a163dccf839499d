"""Three floors under every result: the scores of guesses that ignore the order of tokens, or the tokens.

uniform    guess each answer token among the task's choices, the length of the answer known
prior      the best single class for everything; where an answer is one of the row's tokens, also the row's most
           frequent one (`Task.cue`), which a bag of tokens suffices for
position   the best function of index and size, blind to the tokens: one constant sequence per size

Bucket sort shows why: index and length alone give 78 to 94 %, where the literature compares with 20 %. For exact match
the three mean: every token guessed right, one class right throughout, the most frequent whole answer. The last two are
estimated: chosen on one half of a sample and counted on the other, so that chance hits do not count. A floor has the
unit of the task's metric: for `error`, one minus the share that is right.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from posenc.lab.tasks.measure import RATIOS, tally
from posenc.lab.tasks.task import Batch, Task

FLOORS = ("uniform", "prior", "position")
SEED = 20230526


def floors(task: Task, sizes: Sequence[int], *, rows: int = 8192) -> dict[int, dict[str, float]]:
    """The three floors at every size, counted on `rows` examples, in one compiled program.

    >>> from posenc.tasks import parse
    >>> floors(parse("reverse_string"), [4], rows=64)[4]["uniform"]
    0.5
    """
    for n in sizes:
        task.check_size(n)
    if not sizes:
        raise ValueError(f"The list of sizes for the floors of {task.name!r} is empty; give at least one size.")
    estimate = jax.jit(functools.partial(_floors, task, batch=rows, n_max=max(sizes)))
    found = jax.device_get(estimate(jax.random.key(SEED), jnp.asarray(sizes, jnp.int32)))
    part, whole = RATIOS[task.metric]
    table = {}
    for at, n in enumerate(sizes):
        right = {name: float(found[name][part][at]) / float(found[name][whole][at]) for name in FLOORS}
        table[int(n)] = {name: 1 - r if task.metric == "error" else r for name, r in right.items()}
    return table


def _floors(task: Task, key: PRNGKeyArray, sizes: Int[Array, " S"], *, batch: int, n_max: int):
    def one(n):
        whole = task.sample(jax.random.fold_in(key, n), n, batch=2 * batch, n_max=n_max)
        learnt, judged = (jax.tree.map(lambda leaf, h=h: leaf[h::2], whole) for h in (0, 1))
        return {
            "uniform": _uniform(task, judged),
            "prior": tally(_prior(task, learnt, judged), judged),
            "position": tally(_position(task, learnt, judged), judged),
        }

    return jax.lax.map(one, sizes)


def _end(task: Task, batch: Batch):
    """Where the target is EOS; the length of the answer is taken as known."""
    if not task.layout.writes:
        return jnp.zeros_like(batch.score)
    return batch.score & (batch.targets == task.special("EOS"))


def _uniform(task: Task, batch: Batch):
    end = _end(task, batch)
    chance = jnp.where(end, 1.0, 1.0 / task.choices)
    sums = {name: s.astype(jnp.float32) for name, s in tally(batch.score, batch).items()}
    free = jnp.sum(batch.score & ~end, axis=1, dtype=jnp.int32)
    scored = batch.score.any(axis=1)
    index = jnp.arange(batch.score.shape[1], dtype=jnp.int32)[None, :]
    last = index == jnp.max(jnp.where(batch.score, index, -1), axis=1)[:, None]
    sums["correct"] = jnp.sum(jnp.where(batch.score, chance, 0.0))
    sums["exact"] = jnp.sum(jnp.where(scored, (1.0 / task.choices) ** free, 0.0))
    sums["last"] = jnp.sum(jnp.where(batch.score & last, chance, 0.0))
    return sums


def _prior(task: Task, learnt: Batch, judged: Batch):
    """Which scored tokens the best constant, or the row's most frequent token, gets right."""
    exact = task.metric == "exact"

    def got(batch, guess):
        hit = batch.score & ((batch.targets == guess) | _end(task, batch))
        return jnp.sum(tally(hit, batch)["exact" if exact else "correct"])

    if exact:
        each = jax.lax.map(lambda c: got(learnt, c), jnp.arange(task.classes, dtype=jnp.int32))
    else:
        guessed = (learnt.score & ~_end(task, learnt)).astype(jnp.int32)
        each = jnp.zeros(task.classes, jnp.int32).at[learnt.targets].add(guessed)
        each += jnp.sum(learnt.score, dtype=jnp.int32) - jnp.sum(guessed, dtype=jnp.int32)
    constant = jnp.argmax(each).astype(jnp.int32)
    guess = jnp.full(judged.targets.shape, constant)
    if task.cue is not None:
        frequent = got(learnt, _frequent(task, learnt)) > jnp.max(each)
        guess = jnp.where(frequent, _frequent(task, judged), guess)
    return judged.score & ((judged.targets == guess) | _end(task, judged))


def _frequent(task: Task, batch: Batch):
    """Each row's most frequent token of `task.cue`, as a class. Classes are counted from the first such token."""
    tokens, counted = (batch.tokens, batch.prompt) if batch.source is None else (batch.source, batch.source_valid)
    counted &= (tokens >= task.cue.start) & (tokens < task.cue.stop)
    ordered = jnp.sort(jnp.where(counted, tokens, task.cue.stop), axis=1)
    i = jnp.broadcast_to(jnp.arange(ordered.shape[1], dtype=jnp.int32)[None, :], ordered.shape)
    begins = jnp.pad(ordered[:, 1:] != ordered[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    run = jnp.where(ordered < task.cue.stop, i - jax.lax.cummax(jnp.where(begins, i, 0), axis=1) + 1, 0)
    best = jnp.take_along_axis(ordered, jnp.argmax(run, axis=1)[:, None], axis=1)[:, 0]
    best = jnp.where(counted.any(axis=1), best, task.cue.start)
    return (best if task.layout.writes else best - task.cue.start)[:, None]


def _position(task: Task, learnt: Batch, judged: Batch):
    """Which scored tokens the best constant sequence gets right; at one size, that is the best function of index."""
    if task.metric == "exact":
        return judged.score & (judged.targets == learnt.targets[_commonest(learnt)][None, :])
    index = jnp.arange(learnt.targets.shape[1], dtype=jnp.int32)[None, :]
    count = jnp.zeros((index.shape[1], task.classes), jnp.int32)
    count = count.at[index, learnt.targets].add(learnt.score.astype(jnp.int32))
    return judged.score & (judged.targets == jnp.argmax(count, axis=1)[None, :])


def _commonest(batch: Batch):
    """A row whose whole answer is the most frequent; rows are compared by a polynomial hash that wraps at 2³²."""
    term = jnp.where(batch.score, batch.targets + 1, 0).astype(jnp.uint32)
    power = np.array([pow(1_000_003, i, 2**32) for i in range(term.shape[1])], np.uint32)
    rows = jnp.sum(term * power[None, :], axis=1, dtype=jnp.uint32)
    ordered = jnp.sort(rows)
    many = jnp.searchsorted(ordered, rows, side="right") - jnp.searchsorted(ordered, rows, side="left")
    return jnp.argmax(many)
