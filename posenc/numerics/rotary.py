"""The hooks that RoPE and its relatives share, written once: such a scheme states the frequencies of its pairs.

    class Slow(Scheme, name="slow"):
        base: float = 10000.0
        layout: Layout = "half"
        fraction: float = 1.0
        at: End = "start"

        def angular_frequencies(self, width):
            return frequencies(width, self.base) / 2

        bind = rotary.bind
        query = rotary.query
        key = rotary.key

`width` is the number of rotated features, `fraction` of the head, the last ones of the head with `at="end"`. A setting
`original` or `trained` that is left open is filled with the training length. Learned frequencies are the parameter
"frequency".
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Protocol

import numpy as np
from jaxtyping import Array, Float, Num

from posenc.numerics.precision import widened
from posenc.numerics.rotation import Layout, angles, rotate, turned_width


class Rotary(Protocol):
    """A scheme with the settings and the method that these hooks read."""

    name: ClassVar[str]

    @property
    def layout(self) -> Layout: ...

    @property
    def fraction(self) -> float: ...

    def angular_frequencies(self, width: int) -> np.ndarray: ...


def bind(self: Any, dims: Any) -> Any:
    """The hook `bind`: raises `ValueError` where a head of `dims.head` features cannot be cut into pairs."""
    bound = filled(self, dims)
    frequencies_of(bound, dims.head)
    return bound


def query(self: Any, p: dict, q: Float[Array, "L d"], info: Num[Array, " L"]) -> tuple[Array, Array]:
    """The hook `query`: features rotated by position times frequency, and the position as info."""
    return rotate(q, angles_of(self, p, q, info), self.layout, getattr(self, "at", "start")), info


def key(self: Any, p: dict, k: Float[Array, "L d"], info: Num[Array, " L"]) -> tuple[Array, Array]:
    """The hook `key`, the same."""
    return query(self, p, k, info)


def angles_of(scheme: Rotary, p: dict, x: Float[Array, "L d"], position: Num[Array, " L"]) -> Float[Array, "L n"]:
    """The angle of each pair at each position."""
    frequency = p.get("frequency", frequencies_of(scheme, x.shape[-1]))
    return angles(position, frequency, widened(x.dtype))


def frequencies_of(scheme: Rotary, head: int) -> np.ndarray:
    """The frequencies of a head of this width."""
    return scheme.angular_frequencies(turned_width(scheme.name, scheme.fraction, head))


def filled(scheme: Any, dims: Any) -> Any:
    """Return the scheme with `original` or `trained` at the training length if it was left open."""
    left_open = [name for name in ("original", "trained") if getattr(scheme, name, 0) is None]
    return dataclasses.replace(scheme, **dict.fromkeys(left_open, dims.trained)) if left_open else scheme
