"""Rotary frequencies for contexts longer than the training length: each rule is written once.

A rule takes the frequencies ω of all pairs, `[n]`, and a factor: how many times longer the context is. A Python number
gives one set of frequencies. A column of factors, `[L, 1]`, gives each token its own set, for lengths that are known
only when the program runs.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

BY_LENGTH = MappingProxyType({
    "cross": "its frequencies follow the length of one sequence",
    "reencoded": "its keys are turned by frequencies that change as the sequence grows, so stored keys would be stale",
})  # fmt: skip
"""The limits of a scheme whose frequencies follow the current length."""
ROTATIONS = 32.0, 1.0
"""YaRN keeps pairs that turn at least 32 times within the original length, and divides those that turn at most once."""
BLEND, KEEP = (1.25, 0.75), (16.0, 2.0)
"""The turns within the original length between which NTK-by-parts goes from NTK to divided, and from kept to either."""


def ntk(frequency: Any, factor: Any) -> Any:
    """ω_i · factor^(-2i / (d - 2)): a larger base, so that the fastest pair stays and the slowest turns 1 / factor."""
    pairs = frequency.shape[-1]
    return frequency * factor ** -_like(np.arange(pairs) / (pairs - 1), frequency)


def yarn(frequency: Any, factor: Any, spread: tuple[float, float], kept: float = 1.0) -> Any:
    """Pairs before the spread are kept (with the weight `kept`); those after it are divided by the factor."""
    keep = _keep(frequency, spread, kept)
    return frequency / factor * (1 - keep) + frequency * keep


def by_parts(
    frequency: Any, factor: Any, blend: tuple[float, float], keep: tuple[float, float], kept: tuple[float, float]
) -> Any:
    """From divided to `ntk` over one spread of pairs, from that to unchanged over another; `kept` are weights."""
    inner, outer = _keep(frequency, blend, kept[0]), _keep(frequency, keep, kept[1])
    mixed = frequency / factor * (1 - inner) + ntk(frequency, factor) * inner
    return mixed * (1 - outer) + frequency * outer


def llama3(frequency: np.ndarray, factor: float, low: float, high: float, original: int) -> np.ndarray:
    """ω / factor for pairs that turn less than `low` times within the original length, ω for `high` times and more."""
    turns = original * frequency / (2 * np.pi)
    keep = np.clip((turns - low) / (high - low), 0, 1)
    return frequency / factor * (1 - keep) + frequency * keep


def tapered(name: str, frequency: np.ndarray, share: float) -> np.ndarray:
    """The lowest frequencies, this share of all, times (1 + cos θ) / 2, with θ evenly spaced from 0 to π."""
    if not share:
        return frequency
    count = round(share * frequency.size)
    if not count:
        raise ValueError(
            f"{name!r} with taper={share} tapers none of {frequency.size} frequencies; take at least"
            f" taper={1 / frequency.size:.6g}, or leave it out."
        )
    factors = (1 + np.cos(np.linspace(0, np.pi, count))) / 2
    return np.concatenate([frequency[: frequency.size - count], frequency[frequency.size - count :] * factors])


def explicit(name: str, frequencies: tuple[float, ...], width: int) -> np.ndarray:
    """Frequencies that were given one by one, for the pairs of `width` features."""
    if len(frequencies) != width // 2:
        raise ValueError(
            f"{name!r} was given {len(frequencies)} frequencies, and turns {width} features; give {width // 2}, one for"
            " each pair, or another fraction."
        )
    return np.asarray(frequencies)


def spread(
    fast: float, slow: float, base: float, pairs: int, original: int, truncate: bool = True
) -> tuple[float, float]:
    """The pairs that turn `fast` and `slow` times within the original length, as real indices.

    They are rounded outwards if `truncate`, and clipped to 0 and d - 1, the last feature rather than the last pair, as
    the authors of YaRN do and everybody since. Where all pairs turn faster than `fast`, the clipped bounds are in the
    wrong order, so that the authors' ramp divides the fastest pairs; here all pairs are kept.
    """
    first, last = (pairs * math.log(original / (2 * math.pi * turns)) / math.log(base) for turns in (fast, slow))
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, 2 * pairs - 1)
    return first, max(last, first + 0.001)


def _keep(frequency: Any, spread: tuple[float, float], kept: float) -> np.ndarray:
    """The weight of each pair: `kept` before the spread, 0 after it, linear in the index of the pair between."""
    first, last = spread
    ramp = np.clip((np.arange(frequency.shape[-1]) - first) / (last - first), 0, 1)
    return _like((1 - ramp) * kept, frequency)


def _like(row: np.ndarray, frequency: Any) -> np.ndarray:
    """A number for each pair, with the shape and type of the frequencies."""
    return np.broadcast_to(row.astype(frequency.dtype), frequency.shape)


def magnitude(factor: Any, weight: float = 1.0) -> float:
    """0.1 · weight · log factor + 1, by which YaRN multiplies cosines and sines; 1 for a factor of 1."""
    return 0.1 * weight * math.log(factor) + 1 if factor > 1 else 1.0


def extent(position: Num[Array, " L"], segment: Int[Array, " L"]) -> Float[Array, " L"]:
    """The current length, for each token: the largest position of its document, plus one. Padding does not count.

    The whole document counts, tokens after this one included: only positions are read, never content.
    """
    real = segment > 0
    document = segment[jax.lax.cummax(jnp.where(real, jnp.arange(segment.size), 0))]  # padding does not end a document
    begins = jnp.concatenate([jnp.zeros(1, bool), document[1:] != document[:-1]])
    number = jnp.cumsum(begins)
    exact = position if jnp.issubdtype(position.dtype, jnp.floating) else position.astype(jnp.float32)
    far = jnp.where(real, exact, -jnp.inf)
    return jnp.full_like(exact, -jnp.inf).at[number].max(far)[number] + 1


def check_longer(name: str, factor: float) -> None:
    """Refuse a factor below 1."""
    if factor < 1:
        raise ValueError(f"The setting 'factor' of {name!r} is {factor}; it must be at least 1: how many times longer.")


def check_original(name: str, original: int | None, least: int = 1) -> None:
    """Refuse an original length below the least one."""
    if original is not None and original < least:
        raise ValueError(f"The setting 'original' of {name!r} is {original}; it must be a length of at least {least}.")


def check_falling(name: str, base: float) -> None:
    """Refuse a base that does not order pairs from fast to slow."""
    if base <= 1:
        raise ValueError(f"The base of {name!r} is {base}; it must be above 1, such as 10000.")


def check_turns(name: str, setting: Any, fast: float, slow: float) -> None:
    """Refuse a ramp that does not fall from many turns to few."""
    if not fast > slow > 0:
        settings = (
            f"{setting}=({fast}, {slow})" if isinstance(setting, str) else f"{setting[0]}={fast}, {setting[1]}={slow}"
        )
        raise ValueError(f"{name!r} has {settings}; these numbers of turns must be above 0, the larger one first.")


def check_part(name: str, setting: str, share: float) -> None:
    """Refuse a weight outside [0, 1]."""
    if not 0 <= share <= 1:
        raise ValueError(f"The setting {setting!r} of {name!r} is {share}; it must be between 0 and 1.")


def check_exponent(name: str, width: int) -> None:
    """Refuse the one width at which the base of NTK has no exponent."""
    if width == 2:
        raise ValueError(
            f"{name!r} has the exponent d / (d - 2), and 2 features are turned; turn at least 4, or take 'pi'."
        )
