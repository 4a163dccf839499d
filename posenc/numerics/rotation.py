"""Rotations of pairs of features: frequencies from the host, angles that keep their precision, and both layouts."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num, UInt

Layout = Literal["half", "interleaved"]
End = Literal["start", "end"]
"""Place of the turned features in a head, if it has others."""
Frequencies = np.ndarray | Array


REACH = 2.0**31
"""Angles are computed for positions between -2^31 and 2^31, as a 32-bit integer and a fraction."""


def frequencies(width: int, base: float, first: int = 0) -> np.ndarray:
    """ω_i = base^(-2i / width) for the pairs of `width` features, in float64; i counts from `first` (Su et al., 2021,
    eq. 15)."""
    return float(base) ** (-np.arange(2 * first, width + 2 * first, 2) / width)


def angles(position: Num[Array, " L"], frequency: Frequencies, dtype: jnp.dtype) -> Float[Array, "L n"]:
    """Position times frequency, up to whole turns, at the same precision for every position.

    A float32 product is off by 6e-8 p: a hundredth of a radian at p = 131072. Here an integer position is multiplied by
    the fraction of a turn per step, held as 64 bits in two 32-bit integers, whose overflow removes exactly the whole
    turns: float32 angles are accurate to 3e-7 between -2^31 and 2^31, and NaN beyond.
    Float64 and traced frequencies use the plain product.
    """
    if dtype == jnp.float64 or not isinstance(frequency, np.ndarray):
        return jnp.outer(position.astype(dtype), jnp.asarray(frequency, dtype))
    if position.dtype == jnp.int32:
        return _reduced(position, frequency).astype(dtype)
    here = (position >= -REACH) & (position < REACH)  # beyond, int32 saturates or wraps without a warning
    if jnp.issubdtype(position.dtype, jnp.integer):
        angle = _reduced(jnp.where(here, position, 0).astype(jnp.int32), frequency).astype(dtype)
        return jnp.where(here[:, None], angle, jnp.nan)
    position = jnp.where(here, position, jnp.nan)
    integer = jax.lax.stop_gradient(jnp.floor(position))
    rest = jnp.outer((position - integer).astype(dtype), jnp.asarray(frequency, dtype))
    return _reduced(integer.astype(jnp.int32), frequency).astype(dtype) + rest


def rotate(
    x: Float[Array, "L d"], angle: Float[Array, "L n"], layout: Layout, at: End = "start"
) -> Float[Array, "L d"]:
    """The first or last 2n features of x, rotated pair by pair; the others unchanged. Computed in the type of the
    angles."""
    return turn(x, jnp.cos(angle), jnp.sin(angle), layout, at)


def turn(
    x: Float[Array, "L d"], cos: Float[Array, "L n"], sin: Float[Array, "L n"], layout: Layout, at: End = "start"
) -> Float[Array, "L d"]:
    """As `rotate`, from cosines and sines. "half" pairs feature i with i + n, "interleaved" 2i with 2i + 1."""
    n = cos.shape[-1]
    border = 2 * n if at == "start" else x.shape[-1] - 2 * n
    rotated, rest = (x[:, :border], x[:, border:]) if at == "start" else (x[:, border:], x[:, :border])
    rotated = rotated.astype(cos.dtype)
    a, b = (rotated[:, :n], rotated[:, n:]) if layout == "half" else (rotated[:, ::2], rotated[:, 1::2])
    pair = a * cos - b * sin, b * cos + a * sin
    rotated = jnp.concatenate(pair, -1) if layout == "half" else jnp.stack(pair, -1).reshape(rotated.shape)
    rotated = rotated.astype(x.dtype)
    return jnp.concatenate([rotated, rest] if at == "start" else [rest, rotated], -1)


def check_base(name: str, base: float) -> None:
    """Refuse a base that gives no frequencies, or the same one to every pair."""
    if base <= 0 or base == 1:
        raise ValueError(f"The base of {name!r} is {base}; it must be above 0 and not 1, such as 10000.")


def check_pairs(name: str, width: int) -> None:
    """Refuse a head that cannot be cut into pairs."""
    if width < 2 or width % 2:
        near = f"{width - 1} or {width + 1}" if width > 2 else "2"
        raise ValueError(f"{name!r} turns pairs of features, and a head has {width}; take an even width, {near}.")


def check_share(name: str, setting: str, share: float) -> None:
    """Refuse a share of a head outside (0, 1]."""
    if not 0 < share <= 1:
        raise ValueError(f"The setting {setting!r} of {name!r} is {share}; it must be above 0 and at most 1.")


def turned_width(name: str, fraction: float, head: int) -> int:
    """The number of rotated features of a head; a `ValueError` where they cannot be cut into pairs."""
    check_pairs(name, head)
    width = round(fraction * head)
    if abs(width - fraction * head) > 1e-6 or width % 2 or not width:
        below = max(2, int(fraction * head) // 2 * 2)
        near = " or ".join(f"{w / head:.6g}" for w in sorted({below, min(below + 2, head)}))
        raise ValueError(
            f"{name!r} turns fraction={fraction} of {head} features, and that must be an even number; take"
            f" fraction={near}."
        )
    return width


def _reduced(position: Int[Array, " L"], frequency: np.ndarray) -> Float[Array, "L n"]:
    """Position times frequency in (-π, π], with whole turns removed exactly."""
    share = np.mod(frequency / (2 * np.pi), 1.0) * 2.0**32
    high, low = (np.floor(a).astype(np.uint32)[None, :] for a in (share, np.mod(share, 1.0) * 2.0**32))
    steps = jnp.abs(position).astype(jnp.uint32)[:, None]
    phase = steps * high + _upper(steps, low)
    angle = jax.lax.bitcast_convert_type(phase, jnp.int32).astype(jnp.float32) * np.float32(np.pi / 2**31)
    return jnp.where((position < 0)[:, None], -angle, angle)


def _upper(a: UInt[Array, "L 1"], b: np.ndarray) -> UInt[Array, "L n"]:
    """The upper 32 bits of the product of two 32-bit integers, in halves of 16 bits so that nothing is lost."""
    a1, a0, b1, b0 = a >> 16, a & 0xFFFF, b >> 16, b & 0xFFFF
    middle = a1 * b0 + (a0 * b0 >> 16)
    return a1 * b1 + (middle >> 16) + (a0 * b1 + (middle & 0xFFFF) >> 16)
