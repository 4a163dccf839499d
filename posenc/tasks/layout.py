"""The layouts: a prompt and its answer become tokens, targets, masks and padding.

TAG, CLASSIFY   x₁ … x_p ? … ? . .          m empty slots directly after the input, so that the distance from input to
                                            slot does not depend on the padding; targets stand in the slots
TOKENS          x₁ … x_n . .                targets at the tokens themselves, not shifted
LM              BOS x SEP y EOS . .         targets are the tokens one to the left; scored where the target is y or EOS;
                                            offers "separator", 1 at SEP
SEQ2SEQ         x . . | BOS y . .           an encoder reads x, a decoder BOS y; targets are y EOS, all of them scored;
                                            both sequences are padded to one length

A prompt or an answer narrower than its length is continued by its last column: one column repeats one symbol.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from posenc.tasks.draw import INT, look
from posenc.tasks.task import Batch, Task

Strata = dict[str, Int[Array, " B"]]


def slots(
    task: Task,
    n: Int[Array, " B"],
    length: int,
    prompt: Int[Array, "B P"],
    p: Int[Array, " B"],
    answer: Int[Array, "B M"],
    m: Int[Array, " B"],
    strata: Strata | None = None,
    score: Int[Array, " B"] | None = None,
) -> Batch:
    """TAG and CLASSIFY: `p` tokens of the prompt, then `m` empty slots that ask for the answer.

    The loss weighs every slot; the metric counts the first `score` of them, or all.
    """
    i = jnp.broadcast_to(jnp.arange(length, dtype=INT)[None, :], (n.shape[0], length))
    given, valid = i < p[:, None], i < (p + m)[:, None]
    asked = valid & ~given
    blank = jnp.where(asked, task.special("EMPTY"), task.special("PAD"))
    return Batch(
        tokens=jnp.where(given, look(prompt, i), blank).astype(INT),
        targets=jnp.where(asked, look(answer, i - p[:, None]), 0).astype(INT),
        score=asked if score is None else asked & (i < (p + score)[:, None]),
        weight=asked.astype(jnp.float32),
        valid=valid,
        size=n,
        prompt=given,
        coords={},
        strata=strata or {},
    )


def ended(
    task: Task,
    n: Int[Array, " B"],
    length: int,
    prompt: Int[Array, "B P"],
    p: Int[Array, " B"],
    answer: Int[Array, "B M"],
    k: Int[Array, " B"],
    m: Int[Array, " B"],
    strata: Strata | None = None,
) -> Batch:
    """TAG: `k` classes, the last class to end them, and 0s up to `m` slots, which the loss weighs but nobody counts."""
    j, end = jnp.arange(answer.shape[1] + 1, dtype=INT)[None, :], k[:, None]
    text = jnp.where(j < end, jnp.pad(answer, ((0, 0), (0, 1))), jnp.where(j == end, task.classes - 1, 0))
    return slots(task, n, length, prompt, p, text, m, strata, k + 1)


def one_slot(
    task: Task,
    n: Int[Array, " B"],
    length: int,
    prompt: Int[Array, "B P"],
    p: Int[Array, " B"],
    target: Int[Array, " B"],
    strata: Strata | None = None,
) -> Batch:
    """CLASSIFY: one slot, one class."""
    return slots(task, n, length, prompt, p, target[:, None], jnp.ones_like(p), strata)


def tagged(
    task: Task,
    n: Int[Array, " B"],
    x: Int[Array, "B T"],
    p: Int[Array, " B"],
    targets: Int[Array, "B T"],
    score: Bool[Array, "B T"],
    weight: Float[Array, "B T"] | None = None,
    strata: Strata | None = None,
) -> Batch:
    """TOKENS: the first `p` tokens of x, a target at each that is scored or weighed."""
    valid = jnp.arange(x.shape[1], dtype=INT)[None, :] < p[:, None]
    score = score & valid
    weight = score.astype(jnp.float32) if weight is None else jnp.where(valid, weight, 0.0)
    return Batch(
        tokens=jnp.where(valid, x, task.special("PAD")).astype(INT),
        targets=jnp.where(score | (weight > 0), targets, 0).astype(INT),
        score=score,
        weight=weight,
        valid=valid,
        size=n,
        prompt=valid,
        coords={},
        strata=strata or {},
    )


def prompted(
    task: Task,
    n: Int[Array, " B"],
    length: int,
    prompt: Int[Array, "B P"],
    p: Int[Array, " B"],
    answer: Int[Array, "B M"],
    m: Int[Array, " B"],
    strata: Strata | None = None,
) -> Batch:
    """LM: BOS, `p` tokens, SEP, `m` tokens, EOS."""
    i = jnp.broadcast_to(jnp.arange(length + 1, dtype=INT)[None, :], (n.shape[0], length + 1))
    sep, eos = p[:, None] + 1, (p + m)[:, None] + 2
    text = jnp.select(
        [i == 0, i < sep, i == sep, i < eos, i == eos],
        [
            jnp.full_like(i, task.special("BOS")),
            look(prompt, i - 1),
            jnp.full_like(i, task.special("SEP")),
            look(answer, i - sep - 1),
            jnp.full_like(i, task.special("EOS")),
        ],
        jnp.full_like(i, task.special("PAD")),
    ).astype(INT)
    i = i[:, :length]
    score = (i >= sep) & (i < eos)
    return Batch(
        tokens=text[:, :length],
        targets=text[:, 1:],  # the place after the longest example is there for its padding alone
        score=score,
        weight=score.astype(jnp.float32),
        valid=i <= eos,
        size=n,
        prompt=i <= sep,
        coords={"separator": (i == sep).astype(INT)},
        strata=strata or {},
    )


def translated(
    task: Task,
    n: Int[Array, " B"],
    length: int,
    source: Int[Array, "B S"],
    s: Int[Array, " B"],
    answer: Int[Array, "B M"],
    m: Int[Array, " B"],
    strata: Strata | None = None,
) -> Batch:
    """SEQ2SEQ: an encoder reads `s` tokens of the source; a decoder BOS and `m` tokens, which it is asked for."""
    i = jnp.broadcast_to(jnp.arange(length, dtype=INT)[None, :], (n.shape[0], length))
    read, score, end, pad = i < s[:, None], i <= m[:, None], m[:, None], task.special("PAD")
    text = jnp.where(i == 0, task.special("BOS"), look(answer, i - 1))
    asked = jnp.where(i == end, task.special("EOS"), look(answer, i))
    return Batch(
        tokens=jnp.where(score, text, pad).astype(INT),
        targets=jnp.where(score, asked, pad).astype(INT),
        score=score,
        weight=score.astype(jnp.float32),
        valid=score,
        size=n,
        prompt=i == 0,
        coords={},
        strata=strata or {},
        source=jnp.where(read, look(source, i), pad).astype(INT),
        source_valid=read,
    )
