"""Biases by distance: logarithmic buckets with integer thresholds computed on the host, and the slopes of heads.

The bucket of a distance is a logarithm rounded down. Devices round logarithms differently, so that a distance on a
border would fall into different buckets on different devices; integers compare alike everywhere.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

REACH = 2**24
"""The longest reach, since `thresholds` looks at every distance up to it."""


def check_reach(name: str, reach: int) -> None:
    """Refuse a reach of too many distances."""
    if reach > REACH:
        raise ValueError(f"The setting 'reach' of {name!r} is {reach}; it is at most {REACH}.")


def thresholds(buckets: int, reach: int) -> np.ndarray:
    """The smallest distance of each bucket but the first (Raffel et al., 2020, §2.1; the authors' code).

    Half of the buckets hold one distance each; the others grow logarithmically up to `reach`; all longer
    distances share the last one.
    """
    exact = buckets // 2
    distance = np.arange(1, reach + 1)
    share = np.log(np.maximum(distance, exact) / exact) / np.log(reach / exact)
    bucket = np.where(distance < exact, distance, exact + (share * (buckets - exact)).astype(int))
    bucket = np.minimum(bucket, buckets - 1)
    return 1 + np.searchsorted(bucket, np.arange(1, buckets))


def bucket(distance: Int[Array, ...], buckets: int, reach: int, bidirectional: bool) -> Int[Array, ...]:
    """The bucket of a query's distance from a key. Keys after the query have the upper half, or share bucket 0."""
    if not bidirectional:
        return _bucket(jnp.maximum(distance, 0), buckets, reach)
    half = buckets // 2
    return _bucket(jnp.abs(distance), half, reach) + jnp.where(distance < 0, half, 0)


def _bucket(distance: Int[Array, ...], buckets: int, reach: int) -> Int[Array, ...]:
    edges = jnp.asarray(thresholds(buckets, reach), distance.dtype)
    return jnp.searchsorted(edges, distance, side="right").astype(jnp.int32)


def disentangled(distance: Int[Array, "Q K"], buckets: int, reach: int) -> Int[Array, "Q K"]:
    """The row of a query's distance from a key in a table of 2 · buckets rows, keys after the query first (He et al.,
    2021, §3.1; their v2 code).

    On either side, distances of `reach` and more share the outermost row. With as many buckets as the reach each holds
    one distance; with fewer, half of them do, and the others grow logarithmically.
    """
    size = jnp.minimum(jnp.abs(distance), reach)
    if buckets < reach:
        edges = jnp.asarray(disentangled_thresholds(buckets, reach), distance.dtype)
        size = jnp.searchsorted(edges, size, side="right").astype(distance.dtype)
    return buckets + jnp.where(distance < 0, -size, jnp.minimum(size, buckets - 1))


def disentangled_thresholds(buckets: int, reach: int) -> np.ndarray:
    """The smallest distance of each bucket but the first, and finally the reach; the logarithm is rounded up."""
    exact = buckets // 2
    distance = np.arange(1, reach + 1)
    share = np.log(np.maximum(distance, exact) / exact) / np.log((reach - 1) / exact)
    far = exact + np.ceil(share * (exact - 1) - 1e-9)  # rounding may put an integer slightly above itself
    return 1 + np.searchsorted(np.where(distance <= exact, distance, far), np.arange(1, buckets + 1))


def slope(head: Int[Array, ...], heads: int) -> Float[Array, ...]:
    """The slope of a head, counted from 0 (Press et al., 2022, §3; the authors' `get_slopes`)."""
    power = 1 << (heads.bit_length() - 1)
    head = jnp.asarray(head, jnp.result_type(float))
    octave = jnp.where(head < power, head + 1, head - power + 0.5) * 8 / power
    return 2.0**-octave
