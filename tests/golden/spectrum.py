"""What a rotary scheme does to pairs (1, 0): the frequency of each, its size, and cosines and sines at positions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import posenc


def said(name: str, head: int, **settings: Any) -> Any:
    """The scheme of a name with these settings, those left None out, and the rest filled."""
    given = ", ".join(f"{key}={value!r}" for key, value in settings.items() if value is not None)
    return posenc.bind(posenc.parse(f"{name}({given})"), posenc.Dims(head, 1, head, 16))


def circle(scheme: Any, positions: Any, head: int, length: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of the pairs of the "half" layout, `[L, n]`, in a document of at least this length.

    Its last position is given to a token of its own, which is left out again.
    """
    positions = np.concatenate([positions, [length - 1]])
    width = round(scheme.fraction * head)
    unit = np.zeros((len(positions), head))
    unit[:, : width // 2] = 1

    @jax.jit
    def turned(x, positions):
        index = jnp.arange(len(positions), dtype=jnp.int32)
        at = posenc.At(positions, index, jnp.ones_like(index), index + 1, jnp.int32(0), 1)
        told, _ = scheme.locate({}, None, at, scheme.carry(posenc.Dims(head, 1, head, 16)))
        return scheme.query({}, x, told)[0], scheme.key({}, x, told)[0]

    by_query, by_key = turned(jnp.asarray(unit, jnp.asarray(0.0).dtype), jnp.asarray(positions))
    np.testing.assert_array_equal(by_query, by_key)
    out = np.asarray(by_query)[:-1, :width]
    return out[:, : width // 2], out[:, width // 2 :]


def spectrum(scheme: Any, head: int, length: int = 1, position: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The angle of each pair between a position and the one before it, and the size there, exactly: in float64."""
    with jax.enable_x64(True):
        cos, sin = circle(scheme, np.array([position - 1, position], np.int32), head, length)
        z = cos + 1j * sin
        return np.angle(z[1] / z[0]), np.abs(z[1])
