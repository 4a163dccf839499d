"""The attention weights of a scheme beside those of a model, from the same queries and keys.

Neither torch nor transformers is needed here.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.core.compose import normal_form, parts
from posenc.schemes.alibi import ALiBi
from posenc.schemes.learned import Learned
from posenc.schemes.sinusoidal import Sinusoidal
from posenc.schemes.t5 import T5
from posenc.schemes.vo_rope import VORoPE

TOLERANCE = 1e-5
ROWS = [20, -1]
"""The queries whose weights are stored: one in the middle, and the last."""
HIDDEN = -1e4
"""A logit below this is that of a masked pair."""


@dataclass(frozen=True)
class Layer:
    """What one attention of a model computes with: queries and keys before rotation, and its weights."""

    q: np.ndarray
    """`[heads, features]`, the same at every token."""
    k: np.ndarray
    scale: float
    cap: float | None
    causal: bool
    weights: np.ndarray
    """`[heads, queries, keys]`; of the queries all, or `ROWS`."""
    table: np.ndarray | None = None
    """A learned number for each head and bucket."""
    positions: np.ndarray | None = None
    """Positions of three axes; the index, if None."""
    chunk: int | None = None
    """How many tokens see each other alone, one such chunk after another."""


def weights(scheme: Any, layer: Layer) -> np.ndarray:
    """The weights `[heads, L, L]` of `posenc.attend` under a scheme, for these queries and keys at every token."""
    kinds = tuple(type(s) for s in parts(scheme))
    biased = ALiBi in kinds or T5 in kinds  # what q·k adds is the same at every pair
    q, k = (np.zeros_like(a) if biased else a for a in (layer.q, layer.k))
    options = (None, None) if biased else (layer.scale, layer.cap)
    scheme = (
        posenc.parse("nope") if kinds in ((Learned,), (Sinusoidal,)) else scheme
    )  # nothing of it is left in a layer
    table = None if T5 not in kinds else jnp.asarray(layer.table.T)
    length, at = layer.weights.shape[-1], layer.positions
    if normal_form(scheme).coordinates:
        at = posenc.place(scheme, jax.random.key(0), {"index": np.arange(length), "length": length}, train=False)
    return np.asarray(_weights(scheme, (*options, layer.chunk), layer.causal, length, q, k, table, at))


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _weights(scheme: Any, options: Any, causal: bool, length: int, q: Any, k: Any, table: Any, at: Any) -> Any:
    heads, width = q.shape
    dims = posenc.Dims(width * heads, heads, width, length, causal=causal)
    scheme = posenc.bind(scheme, dims)
    params = posenc.init(scheme, jax.random.key(0), dims)
    if table is not None:
        params = {"layer": {}, "heads": {"table": table}}
    q, k = (jnp.broadcast_to(a, (length, *a.shape)) for a in (q, k))
    plain = _plain_share(scheme)  # values of which a part turns have the weights in the other one
    v = jnp.eye(length, length if plain == 1 else 64 * math.ceil(length / 64 / plain), dtype=q.dtype)
    v = jnp.broadcast_to(v[:, None], (length, k.shape[1], v.shape[-1]))
    (scale, cap, chunk), mask = options, "causal" if causal else "full"
    if chunk is not None:
        own = np.arange(length) // chunk
        mask = mask, own[:, None] == own
    out = posenc.attend(scheme, params, q, k, v, positions=at, mask=mask, kernel="dense", scale=scale, cap=cap)
    return out[..., :length].swapaxes(0, 1)


def _plain_share(scheme: Any) -> float:
    """The share of a value's features, the first ones, that the scheme leaves as they are."""
    return min([1 - one.fraction for one in parts(scheme) if isinstance(one, VORoPE)], default=1.0)


def difference(scheme: Any, layer: Layer) -> float:
    """The largest difference of any weight."""
    ours = weights(scheme, layer)
    if layer.weights.shape[1] == len(ROWS):
        ours = ours[:, ROWS]
    return float(np.abs(ours - layer.weights).max())


def input_difference(scheme: Any, table: np.ndarray) -> float:
    """The largest difference of what a scheme without parameters adds to the input from a model's table."""
    return float(np.abs(np.asarray(posenc.embed(scheme, None, np.zeros_like(table))) - table).max())


def layer_of(scheme: Any, n: int) -> Any:
    """The scheme of layer n, without what acts on the input."""
    return normal_form(posenc.layer(scheme, n))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Weights in float64; 0 where a pair is masked, and for a row with none that is seen."""
    seen = logits > HIDDEN
    top = np.where(seen, logits, -np.inf).max(-1, keepdims=True)
    e = np.where(seen, np.exp(logits.astype(np.float64) - np.where(np.isfinite(top), top, 0)), 0)
    total = e.sum(-1, keepdims=True)
    return e / np.where(total > 0, total, 1)
