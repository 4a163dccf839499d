"""Both models without posenc: their published definitions in NumPy, in float64.

Position stands in the one function `mixed`, written after each scheme's paper. Layers are written out, one after the
other.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def rotated(x: Any) -> Any:
    """Pairs (i, i + d/2) of every head turned by position · 10000^(-2i/d) (Su et al., 2021, eq. 34)."""
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[1])[:, None] * 10000.0 ** (-np.arange(half) / half)
    turn = np.exp(1j * angle)[None, :, None, :]
    turned = (x[..., :half] + 1j * x[..., half:]) * turn
    return np.concatenate([turned.real, turned.imag], -1)


def bias(scheme: str, position: Any, x: Any, heads: int) -> Any:
    """What a scheme adds to the scores, `[B or 1, H, L, L]`; `x` is the input of attention."""
    distance = np.arange(x.shape[1])[:, None] - np.arange(x.shape[1])[None, :]
    if scheme == "alibi":  # Press et al., 2022, §3
        return -(2.0 ** (-8 * np.arange(1, heads + 1) / heads))[None, :, None, None] * distance
    if scheme == "t5":  # Raffel et al., 2020, §2.1: 32 buckets, half of them exact, the last from distance 128 on
        far = 16 + np.log(np.maximum(distance, 1) / 16) / np.log(128 / 16) * 16
        bucket = np.where(distance < 16, np.maximum(distance, 0), np.minimum(far.astype(int), 31))
        return position["heads"]["table"][:, bucket][None]
    if scheme == "fox":  # Lin et al., 2025, §3
        gate = np.einsum("blw,hw->bhl", x, position["heads"]["w"]) + position["heads"]["b"][:, None]
        total = -np.cumsum(np.log1p(np.exp(-gate)), -1)
        return total[..., :, None] - total[..., None, :]
    return np.zeros((1, 1, 1, 1))


def mixed(scheme: str, position: Any, q: Any, k: Any, v: Any, x: Any, scale: Any = None, cap: Any = None) -> Any:
    """Causal attention under a sum of schemes (Vaswani et al., 2017, §3.2.1), perhaps in a window and with a soft cap
    (Gemma Team, 2024, Gemma 2, §2)."""
    (scheme, _, keys), heads = scheme.partition(" + window="), q.shape[2]
    schemes, visible = scheme.split(" + "), np.tri(x.shape[1])
    if keys:
        visible = visible - np.tri(x.shape[1], k=-int(keys))
    positions = position if len(schemes) > 1 else (position,)
    if "rope" in schemes:
        q, k = rotated(q), rotated(k)
    k, v = (np.repeat(a, heads // a.shape[2], 2) for a in (k, v))
    usual = 1.0 if "t5" in schemes else q.shape[-1] ** -0.5
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * (scale or usual)
    scores = scores + sum(bias(one, own, x, heads) for one, own in zip(schemes, positions, strict=True))
    weights = np.exp(cap * np.tanh(scores / cap) if cap else scores) * visible
    return np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)


def layers(periods: Any, pattern: list[str], depth: int):
    """Each layer's scheme, its number within a period, and which period it is in."""
    for n in range(depth):
        within, period = n % len(pattern), n // len(pattern)
        yield pattern[within], within, jax.tree.map(lambda a, at=period: a[at], periods)


def decoder(params: Any, tokens: Any, pattern: list[str], depth: int) -> Any:
    """The Linen model."""
    params = jax.tree.map(np.float64, params)
    x = params["tokens"]["embedding"][tokens]
    if "position" in params:  # a learned table, as in nanodo
        x = x + params["position"]["layer"]["table"][: tokens.shape[1]]
    for scheme, within, period in layers(params["periods"], pattern, depth):
        own = period[f"layer_{within}"]
        h = layer_norm(x, own["LayerNorm_0"]["scale"])
        q, k, v = (np.einsum("blw,whd->blhd", h, own[name]["kernel"]) for name in ("query", "key", "value"))
        x = x + np.einsum("blhd,hdw->blw", mixed(scheme, own["position"], q, k, v, h), own["out"]["kernel"])
        h = layer_norm(x, own["LayerNorm_1"]["scale"])
        x = x + gelu(h @ own["up"]["kernel"]) @ own["down"]["kernel"]
    return layer_norm(x, params["norm"]["scale"]) @ params["tokens"]["embedding"].T


def gemma(params: Any, tokens: Any, pattern: list[str], depth: int, heads: int, head: int, **weighting: Any) -> Any:
    """The NNX model."""
    params = jax.tree.map(np.float64, params)
    embedding = params["embedding"]["embedding"]
    x = embedding[tokens] * embedding.shape[1] ** 0.5
    for scheme, within, period in layers(params["periods"]["blocks"], pattern, depth):
        own = period[within]
        h, weights = rms_norm(x, own["before_attention"]["scale"]), own["attention"]
        cut = lambda a: a.reshape(*a.shape[:2], -1, head)  # noqa: E731
        q, k, v = cut(h @ weights["query"]), *map(cut, np.split(h @ weights["key_value"], 2, axis=-1))
        position = params["tied"][within] if scheme == "t5" else weights.get("position")
        position = (None, None) if scheme == "rope + alibi" else position
        o = mixed(scheme, position, q, k, v, h, **weighting)
        x = x + o.reshape(*o.shape[:2], heads * head) @ weights["out"]
        h = rms_norm(x, own["before_mlp"]["scale"])
        x = x + (gelu(h @ own["gate"]["kernel"]) * (h @ own["up"]["kernel"])) @ own["down"]["kernel"]
    return rms_norm(x, params["norm"]["scale"]) @ embedding.T


def gelu(x: Any) -> Any:
    return x * 0.5 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))


def layer_norm(x: Any, scale: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6) * scale


def rms_norm(x: Any, scale: Any) -> Any:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale
