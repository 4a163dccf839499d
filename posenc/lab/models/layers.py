"""Layers stacked by period and run by one scan, with the positions and the cache of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from posenc.adapters.multihead import MIXED
from posenc.attention.cache import Cache
from posenc.coordinates import place
from posenc.core.compose import Pattern, axes, normal_form, spread
from posenc.core.distances import is_sampled
from posenc.core.masks import Window
from posenc.lab.models.interface import Inputs, coordinate_inputs
from posenc.lab.models.parts import WIDENED
from posenc.naming import spec

UNROLLED = 8
"""Periods up to which the scan is written out."""


def schemes(scheme: Any) -> tuple[Any, ...]:
    """The schemes of one period of layers."""
    return scheme.layers if isinstance(scheme, Pattern) else (scheme,)


def periods(scheme: Any, depth: int) -> int:
    """The number of periods in a model of this depth; raises `ValueError` unless the depth is a multiple of one."""
    many, left = divmod(depth, len(schemes(scheme)))
    if left:
        layers = len(schemes(scheme))
        raise ValueError(f"depth={depth} must be a multiple of the pattern's {layers} layers ({spec(scheme)}).")
    return many


def scan_layers(
    layer: Callable[..., tuple[Array, Any]],
    x: Float[Array, "B T D"],
    blocks: Sequence[Any],
    states: Sequence[Any] | None = None,
    anew: bool = False,
) -> tuple[Float[Array, "B T D"], tuple[Any, ...]]:
    """x after all layers in order, and each layer's new state (such as its cache), stacked as the blocks are.

    `layer(x, n, i, block, state)` is layer n of the model and layer i of its period; it returns x and the new state.
    With `anew` a gradient keeps of each layer its products wider than their input and what attention mixed. It makes
    the rest again, one period after another (Chen et al., 2016): written out, XLA would hold copies for all layers at
    once.
    """
    many = jax.tree.leaves(blocks[0])[0].shape[0]

    def period(x, turn):
        n, blocks, states = turn
        new = []
        for i, (block, state) in enumerate(zip(blocks, states, strict=True)):
            x, state = layer(x, n * len(blocks) + i, i, block, state)
            new.append(state)
        return x, tuple(new)

    turns = jnp.arange(many), tuple(blocks), (None,) * len(blocks) if states is None else tuple(states)
    if anew:
        policy = jax.checkpoint_policies.save_only_these_names(WIDENED, MIXED)
        period = jax.checkpoint(period, policy=policy, prevent_cse=False)
    return jax.lax.scan(period, x, turns, unroll=1 if anew else min(many, UNROLLED))


def attention_arguments(
    s: Any,
    n: int | Int[Array, ""],
    inputs: Inputs,
    key: PRNGKeyArray,
    *,
    train: bool = False,
    new: tuple[Any, int] | None = None,
) -> dict[str, Any]:
    """Positions and segments for attention under scheme s in layer n: of all tokens, or with `new = (first, number)`
    of those tokens alone."""
    positions = place(s, key, coordinate_inputs(inputs), layer=n, train=train)
    segments = inputs.valid
    if new is not None:
        positions, segments = slice_positions(s, positions, *new), jax.lax.dynamic_slice_in_dim(segments, *new, 1)
    return {"positions": positions, "segments": segments}


def slice_positions(scheme: Any, positions: Any, first: int | Int[Array, ""], new: int) -> Any:
    """The positions of `new` tokens from `first` on, out of those that `posenc.place` returned for the whole text."""
    if is_sampled(positions):
        raise ValueError(
            "Sampled distances are drawn for a whole sequence, so generating token by token is impossible; take another"
            " coordinate."
        )

    def slice_part(a, many):
        if isinstance(many, tuple):
            return tuple(slice_part(*pair) for pair in zip(a, many, strict=True))
        a = jnp.asarray(a)
        return jax.lax.dynamic_slice_in_dim(a, first, new, a.ndim - (1 if many == 1 else 2))

    plain = normal_form(scheme).scheme
    return slice_part(spread(plain, positions), axes(plain))


def empty_caches(
    scheme: Any, attention: Any, positions: Any, *, batch: int, length: int, most: int, dtype: Any, tied: Any
) -> Cache:
    """Empty caches for one layer of the period, stacked as its blocks are; a ring where a window forgets old keys."""
    form = normal_form(scheme)
    plain, left = form.scheme, form.narrow(Window(None, 0)).left
    keeps = left is None or form.sinks > 0 or "reencoded" in plain.limits or plain.reads in ("row", "heads")
    capacity = length if keeps else min(length, left + most)
    kind = jnp.result_type(*jax.tree.leaves(positions)) if jax.tree.leaves(positions) else jnp.int32
    layer = jax.tree.map(lambda a: a[0], attention)
    ring = capacity < length
    cache = layer.empty(batch=batch, capacity=capacity, dtype=dtype, positions=kind, ring=ring, tied=tied)
    layers = jax.tree.leaves(attention)[0].shape[0]
    return jax.tree.map(lambda a: jnp.broadcast_to(a, (layers, *a.shape)), cache)
