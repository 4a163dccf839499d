"""Layers stacked by period and run by one scan, and what each is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from posenc.coordinates import place
from posenc.core.compose import Pattern
from posenc.lab.models.decoding import part, placed
from posenc.lab.models.inputs import Inputs, told
from posenc.naming import spec

UNROLLED = 8
"""Periods up to which the scan is written out."""


def schemes(scheme: Any) -> tuple[Any, ...]:
    """The schemes of one period of layers."""
    return scheme.layers if isinstance(scheme, Pattern) else (scheme,)


def periods(scheme: Any, depth: int) -> int:
    """How many periods make this depth; refuses a depth that is no multiple."""
    many, left = divmod(depth, len(schemes(scheme)))
    if left:
        raise ValueError(f"A depth of {depth} is no multiple of the {len(schemes(scheme))} layers of {spec(scheme)}.")
    return many


def through(
    layer: Callable[..., tuple[Array, Any]],
    x: Float[Array, "B T D"],
    blocks: Sequence[Any],
    beside: Sequence[Any] | None = None,
) -> tuple[Float[Array, "B T D"], tuple[Any, ...]]:
    """What all layers make of x, in order, and what they give beside it, stacked as their blocks are.

    `layer(x, n, i, block, beside)` is the n-th of all and the i-th of its period.
    """
    many = jax.tree.leaves(blocks[0])[0].shape[0]

    def period(x, turn):
        n, blocks, beside = turn
        given = []
        for i, (block, own) in enumerate(zip(blocks, beside, strict=True)):
            x, more = layer(x, n * len(blocks) + i, i, block, own)
            given.append(more)
        return x, tuple(given)

    turns = jnp.arange(many), tuple(blocks), (None,) * len(blocks) if beside is None else tuple(beside)
    return jax.lax.scan(period, x, turns, unroll=min(many, UNROLLED))


def about(
    s: Any,
    n: int | Int[Array, ""],
    inputs: Inputs,
    key: PRNGKeyArray,
    *,
    train: bool = False,
    new: tuple[Any, int] | None = None,
) -> dict[str, Any]:
    """What attention under the scheme s is told of a sequence in the n-th layer: of all its tokens, or of `new` ones,
    the first and how many."""
    positions, segments = place(s, key, told(inputs), layer=n, train=train), inputs.valid.astype(jnp.int32)
    if new is not None:
        positions, segments = placed(s, positions, *new), part(segments, *new)
    return {"positions": positions, "segments": segments}
