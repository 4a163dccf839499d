"""The layouts: a prompt and its answer become tokens, targets, masks and padding.

    TAG, CLASSIFY   x₁ … x_p ? … ? . .      m empty slots directly after the input, so that the distance from input to
                                            slot does not depend on the padding; targets are at the slots
    TOKENS          x₁ … x_n . .            targets at the tokens themselves, not shifted; of a source (`continued`)
                                            each is the token that comes next
    LM              BOS x SEP y EOS . .     targets are the tokens one to the left; scored where the target is y or EOS;
                                            provides "separator", 1 at SEP
    SEQ2SEQ         x . . | BOS y . .       an encoder reads x, a decoder BOS y; targets are y EOS, all of them scored;
                                            both sequences are padded to one length

A prompt or answer array narrower than its length repeats its last column: one column stands for a repeated symbol.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from posenc.lab.tasks.draw import INT, gather
from posenc.lab.tasks.task import Batch, Task

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
    """TAG and CLASSIFY: `p` tokens of the prompt, then `m` empty slots for the answer.

    The loss includes every slot; the metric counts the first `score` of them, or all.
    """
    i = _indices(n, length)
    is_prompt, valid = i < p[:, None], i < (p + m)[:, None]
    is_slot = valid & ~is_prompt
    tokens = jnp.where(is_prompt, gather(prompt, i), jnp.where(is_slot, task.special("EMPTY"), task.special("PAD")))
    targets = jnp.where(is_slot, gather(answer, i - p[:, None]), 0)
    scored = is_slot if score is None else is_slot & (i < (p + score)[:, None])
    return _batch(n, tokens, targets, scored, is_slot, valid, is_prompt, strata)


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
    """Lay out as TAG: `k` classes, then the last class as an end, then 0s up to `m` slots. Only the loss includes the
    0s."""
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
    """TOKENS: the first `p` tokens of x, with a target at each that is scored or has a weight in the loss."""
    valid = jnp.arange(x.shape[1], dtype=INT)[None, :] < p[:, None]
    score = score & valid
    weight = score if weight is None else jnp.where(valid, weight, 0.0)
    targets = jnp.where(score | (weight > 0), targets, 0)
    return _batch(n, jnp.where(valid, x, task.special("PAD")), targets, score, weight, valid, valid, strata)


def continued(task: Task, n: Int[Array, " B"], text: Int[Array, "B T+1"]) -> Batch:
    """Lay out as TOKENS: n tokens of a source, each with the next one as its target. All are scored."""
    return tagged(task, n, text[:, :-1], n, text[:, 1:], jnp.ones_like(text[:, 1:], bool))


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
    i = _indices(n, length + 1)  # one column more than the longest example, so that every row ends in padding
    sep, eos = p[:, None] + 1, (p + m)[:, None] + 2
    text = jnp.select(
        [i == 0, i < sep, i == sep, i < eos, i == eos],
        [
            jnp.full_like(i, task.special("BOS")),
            gather(prompt, i - 1),
            jnp.full_like(i, task.special("SEP")),
            gather(answer, i - sep - 1),
            jnp.full_like(i, task.special("EOS")),
        ],
        jnp.full_like(i, task.special("PAD")),
    )
    i = i[:, :length]
    score = (i >= sep) & (i < eos)
    batch = _batch(n, text[:, :length], text[:, 1:], score, score, i <= eos, i <= sep, strata)
    return batch._replace(coords={"separator": (i == sep).astype(INT)})


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
    """Lay out as SEQ2SEQ: an encoder reads `s` tokens of the source. A decoder reads BOS and `m` tokens and predicts
    them."""
    i = _indices(n, length)
    read, score, end, pad = i < s[:, None], i <= m[:, None], m[:, None], task.special("PAD")
    text = jnp.where(i == 0, task.special("BOS"), gather(answer, i - 1))
    following = jnp.where(i == end, task.special("EOS"), gather(answer, i))
    tokens, targets = jnp.where(score, text, pad), jnp.where(score, following, pad)
    batch = _batch(n, tokens, targets, score, score, score, i == 0, strata)
    return batch._replace(source=jnp.where(read, gather(source, i), pad).astype(INT), source_valid=read)


def _indices(n, length):
    """[B, length]: 0 … length-1 in every row."""
    return jnp.broadcast_to(jnp.arange(length, dtype=INT)[None, :], (n.shape[0], length))


def _batch(n, tokens, targets, score, weight, valid, prompt, strata):
    """The fields that every layout fills, in the dtypes of a batch, without coordinates or a source."""
    tokens, targets, weight = tokens.astype(INT), targets.astype(INT), weight.astype(jnp.float32)
    return Batch(tokens, targets, score, weight, valid, n, prompt, {}, strata or {})
