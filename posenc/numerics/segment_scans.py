"""Scans along each document: running sums that restart with it, and the few tokens before each one.

For `locate` hooks, which receive a sequence whole or in chunks and must give each token the same info. Padding adds
nothing, does not end a document and is skipped. `start` and `none` give the carry before the first chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from posenc.numerics.sizes import are_numbers

Sum = tuple[Float[Array, "..."], Int[Array, ""]]
Past = tuple[Float[Array, "n d"], Int[Array, " n"]]


def start(*shape: int) -> Sum:
    """The carry of `total` before the first token: a sum of this shape, and document 0."""
    return jnp.zeros(shape), jnp.zeros((), jnp.int32)


def total(steps: Float[Array, "L ..."], segment: Int[Array, " L"], carry: Sum) -> tuple[Float[Array, "L ..."], Sum]:
    """The sum of the steps of a document up to and including each token, and the carry.

    Differences of sums lose digits as the sums grow: they are accurate to the sum's size times the type's precision.
    """
    so_far, document = carry
    shaped = lambda mask: mask.reshape(-1, *[1] * (steps.ndim - 1))  # noqa: E731
    documents = _documents(segment, document)
    begins = shaped(documents[1:] != documents[:-1])
    sums, begun = _scan(_add, (jnp.where(shaped(segment > 0), steps, 0), begins))
    sums = jnp.where(begun, sums, sums + so_far.astype(sums.dtype)[None])
    return sums, (sums[-1].astype(so_far.dtype), documents[-1].astype(document.dtype))


def none(tokens: int, features: int) -> Past:
    """The carry of `recent` before the first token, where each token sees `tokens` earlier ones."""
    return jnp.zeros((tokens, features)), jnp.zeros(tokens, jnp.int32)


def recent(x: Float[Array, "L d"], segment: Int[Array, " L"], carry: Past) -> tuple[Float[Array, "L n+1 d"], Past]:
    """Each token after the n before it in its document, zeros where there are fewer, and the carry."""
    before, documents = carry
    n, length = documents.size, segment.size
    real = segment > 0
    indices = jnp.nonzero(real, size=length, fill_value=length)[0]
    take = lambda a: a.at[indices].get(mode="fill", fill_value=0)  # noqa: E731
    rows = jnp.concatenate([before.astype(x.dtype), take(x)])  # real tokens, those carried first
    documents = jnp.concatenate([documents.astype(segment.dtype), take(segment)])
    last = n + jnp.cumsum(real) - 1  # the row of each token; of padding, that of the real one before it
    window = jnp.maximum(last[:, None] - jnp.arange(n, -1, -1)[None, :], 0)
    same = (documents[window] == segment[:, None]) & real[:, None]
    kept = real.sum() + jnp.arange(n)
    past = rows[kept].astype(before.dtype), documents[kept].astype(carry[1].dtype)
    return jnp.where(same[..., None], rows[window], 0), past


def _documents(segment: Int[Array, " L"], before: Int[Array, ""]) -> Int[Array, " L+1"]:
    """The document of the token before the first, then of each token, carried forward through padding."""
    segments = jnp.concatenate([before[None].astype(segment.dtype), segment])
    return _scan(lambda a, b: jnp.where(b > 0, b, a), segments)


def _scan(merge: Callable[[Any, Any], Any], a: PyTree) -> PyTree:
    """All that stands up to and including each token, merged.

    Where the length is a symbol, stretches are doubled as often as any length needs (Hillis & Steele, 1986). Token by
    token, sums would lose more digits than those of a known length.
    """
    length = jax.tree.leaves(a)[0].shape[0]
    if are_numbers(length):
        return jax.lax.associative_scan(merge, a)
    index = jnp.arange(length, dtype=jnp.int32)

    def double(a: PyTree, stretch: Int[Array, ""]) -> tuple[PyTree, None]:
        both = merge(jax.tree.map(lambda b: b[jnp.maximum(index - stretch, 0)], a), a)
        begun = lambda b: (index >= stretch).reshape(-1, *[1] * (b.ndim - 1))  # noqa: E731
        return jax.tree.map(lambda both, alone: jnp.where(begun(alone), both, alone), both, a), None

    return jax.lax.scan(double, a, 2 ** jnp.arange(31, dtype=jnp.int32))[0]


def _add(a: tuple[Array, Bool[Array, "*n"]], b: tuple[Array, Bool[Array, "*n"]]) -> tuple[Array, Array]:
    """Two stretches of steps as one: the sum so far, and whether a document began within."""
    return jnp.where(b[1], b[0], a[0] + b[0]), a[1] | b[1]
