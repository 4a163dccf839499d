"""Metrics as sums on the device and one division on the host, and the keys of training and test examples.

Exact match needs no decoding loop. If the end of an answer is scored, greedy decoding is right everywhere if and only
if the argmax under the true answer is. The first error breaks both. Token accuracy is that of teacher forcing.
"""

from __future__ import annotations

import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from posenc.lab.metrics import PARTS, RIGHT
from posenc.lab.tasks.task import Batch, Task
from posenc.language import grammar
from posenc.language.registry import identity

PLACES = 32
"""Bins at most, of places in a text, in which hits are counted."""
_MOST = 2**31 - 2**8
"""The most that a sum counts, in parts of a nat; it also replaces NaN. A float32 holds it exactly."""


def measure(logits: Float[Array, "B T C"], batch: Batch) -> dict[str, Int[Array, ""]]:
    """Sums over a batch, as int32: `correct` of `scored` tokens, `exact` and `last` of `rows`.

    `exact` counts rows with every scored token right, `last` those right at their last scored token. Rows without a
    scored token do not count. NaN logits count as wrong, whatever `argmax` returns for them.
    """
    return tally(hits(logits, batch), batch)


def hits(logits: Float[Array, "B T C"], batch: Batch) -> Bool[Array, "B T"]:
    """Return the scored tokens that are right."""
    return (jnp.argmax(logits, axis=-1) == batch.targets) & ~jnp.isnan(logits).any(axis=-1) & batch.score


def tally(hit: Array, batch: Batch) -> dict[str, Int[Array, ""]]:
    """Return the sums of a batch, from the scored tokens that are right."""
    return {name: jnp.sum(counts, dtype=jnp.int32) for name, counts in by_row(hit, batch).items()}


def by_row(hit: Array, batch: Batch) -> dict[str, Int[Array, " B"]]:
    """Return the counts of each row."""
    scored = batch.score.any(axis=1)
    columns = {
        "correct": hit.sum(axis=1),
        "scored": batch.score.sum(axis=1),
        "exact": scored & (hit == batch.score).all(axis=1),
        "last": (hit & last_scored(batch.score)).any(axis=1),
        "rows": scored,
    }
    return {name: counts.astype(jnp.int32) for name, counts in columns.items()}


def last_scored(score: Bool[Array, "B T"]) -> Bool[Array, "B T"]:
    """The last scored token of each row that has one."""
    index = jnp.arange(score.shape[1], dtype=jnp.int32)[None, :]
    return index == jnp.max(jnp.where(score, index, -1), axis=1)[:, None]


def beyond(hit: Array, batch: Batch, first: Int[Array, ""]) -> dict[str, Int[Array, " B"]]:
    """For each row, how many of the scored tokens from index `first` on are right, and how many there are."""
    far = batch.score & (jnp.arange(batch.score.shape[1], dtype=jnp.int32)[None, :] >= first)
    return {
        "beyond": (hit & far).sum(axis=1, dtype=jnp.int32),
        "beyond_scored": far.sum(axis=1, dtype=jnp.int32),
    }


def losses(logits: Float[Array, "B T C"], batch: Batch) -> Float[Array, "B T"]:
    """The cross-entropy of each scored token, in nats; 0 of others."""
    return jnp.where(batch.score, cross_entropy(logits.astype(jnp.float32), batch.targets), 0.0)


def cross_entropy(logits: Float[Array, "*rows C"], targets: Int[Array, "*rows"]) -> Float[Array, "*rows"]:
    """-log softmax(logits) at the targets, in nats. No look-up, whose gradient would scatter."""
    right = jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1) == targets[..., None]
    return jax.nn.logsumexp(logits, axis=-1) - jnp.where(right, logits, 0.0).sum(-1)


def nats(loss: Float[Array, "*bins T"]) -> Int[Array, "*bins"]:
    """The sum along the last axis, to the nearest part of a nat."""
    parts = jnp.nan_to_num(jnp.round(PARTS * loss.sum(axis=-1)), nan=_MOST, posinf=_MOST)
    return jnp.minimum(parts, _MOST).astype(jnp.int32)


def by_place(hit: Array, loss: Array, batch: Batch, width: Int[Array, ""]) -> dict[str, Int[Array, 32]]:
    """Return how many scored tokens are right, how many there are, and their cross-entropy in parts of a nat. Each is
    by bins of `width` positions, over all rows.

    A position is the index of a token in its text; further ones than `PLACES` bins hold must be padding.
    """
    at = jnp.arange(batch.score.shape[1], dtype=jnp.int32) // width
    in_bin = at[None, :] == jnp.arange(PLACES, dtype=jnp.int32)[:, None]

    def binned(counts: Array) -> Array:
        return jnp.where(in_bin, counts.sum(axis=0, dtype=counts.dtype)[None, :], 0).sum(-1, dtype=counts.dtype)

    return {
        "right": binned(hit.astype(jnp.int32)),
        "scored": binned(batch.score.astype(jnp.int32)),
        "nats": nats(binned(loss)[:, None]),
    }


def width(tokens: int) -> int:
    """Return the positions of a bin for texts of this many tokens."""
    return -(-tokens // PLACES)


def first_beyond(task: Task, n: int, length: int) -> int:
    """The first place of size n that no text of a size up to `length` has; all places count where n is such a size."""
    return task.tokens(length) if n > length else 0


def score(sums: dict[str, Int[Array, ""]], metric: str) -> float:
    """One number from the sums, on the host."""
    if metric not in RIGHT:
        raise ValueError(f"No metric is called {metric!r}; take one of {', '.join(RIGHT)}.")
    part, total = (int(np.asarray(sums[name])) for name in RIGHT[metric])
    if total == 0:
        raise ValueError(f"Nothing was scored, so there is no {metric!r}; evaluate at least one row.")
    return 1 - part / total if metric == "error" else part / total


def full(task: Task) -> str:
    """The text of a task with every setting written out, so that a changed default changes the text."""
    return grammar.write(grammar.Call(task.name, (), tuple(identity(task).items())))


def train_key(seed: int | Int[Array, ""], step: int | Int[Array, ""]) -> PRNGKeyArray:
    """The key of one training batch."""
    return jax.random.fold_in(_named_key(jax.random.key(seed), "train"), step)


def evaluation_key(task: Task, n: int | Int[Array, ""]) -> PRNGKeyArray:
    """The key of a task's test set at one size: the same for every scheme and every seed."""
    return jax.random.fold_in(_named_key(jax.random.key(0), "evaluation", full(task)), n)


def validation_key(task: Task, n: int | Int[Array, ""]) -> PRNGKeyArray:
    """The key of the examples that choose a learning rate; results never report them."""
    return jax.random.fold_in(_named_key(jax.random.key(0), "validation", full(task)), n)


def positions_key(seed: int | Int[Array, ""], what: str, n: int | Int[Array, ""]) -> PRNGKeyArray:
    """The key of random positions, for one trial at one step ("train") or size ("evaluation")."""
    return jax.random.fold_in(_named_key(jax.random.key(seed), "positions", what), n)


def _named_key(key: PRNGKeyArray, *names: str) -> PRNGKeyArray:
    for name in names:  # crc32, since `hash` of a text differs from process to process
        key = jax.random.fold_in(key, np.uint32(zlib.crc32(name.encode())))
    return key
