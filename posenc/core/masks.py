"""Who sees whom: by index and segment, never by position."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Window:
    """Which neighbours a query sees beside itself: `left` before it, `right` after it; `None` is unbounded."""

    left: int | None = None
    right: int | None = None

    def __post_init__(self):
        for name in ("left", "right"):
            value = getattr(self, name)
            if value is None:
                continue
            count = whole(value)
            if count is None or count < 0:
                raise ValueError(f"{name} is {value!r}; it is a number of neighbours, at least 0, or None for all.")
            object.__setattr__(self, name, count)

    @property
    def causal(self) -> bool:
        """Whether queries see nothing after them."""
        return self.right == 0


def whole(value: Any) -> int | None:
    """A whole number of any library as Python's; None for anything else, True and False among it."""
    try:
        return None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        return None


Mask = Literal["causal", "full"] | Window


def window(mask: Mask) -> Window:
    """The window that a mask's name stands for."""
    if isinstance(mask, Window):
        return mask
    if isinstance(mask, str) and mask in ("causal", "full"):
        return Window(None, 0 if mask == "causal" else None)
    shown = repr(mask) if isinstance(mask, str | None) else f"of type {type(mask).__name__}"
    raise ValueError(f"mask is {shown}; it is 'causal', 'full' or a posenc.Window(left, right).")


def sees(
    window: Window,
    qi: Int[Array, " Q"],
    ki: Int[Array, " K"],
    qs: Int[Array, " Q"] | None,
    ks: Int[Array, " K"] | None,
) -> Bool[Array, "Q K"]:
    """Where query `i` may look at key `j`: inside the window, in the same document, and that no padding."""
    ahead = ki[None, :] - qi[:, None]
    visible = jnp.ones(ahead.shape, bool)
    if window.left is not None:
        visible &= ahead >= -window.left
    if window.right is not None:
        visible &= ahead <= window.right
    if ks is not None:
        visible &= (qs[:, None] == ks[None, :]) & (ks > 0)[None, :]
    return visible


def documents(segment: Int[Any, "*batch L"]) -> Int[Any, "*batch L"]:
    """The document of each token, carried forward through padding.

    NumPy's stay NumPy's, so that the host can check with what attention computes.
    """
    xp, largest = _library(segment)
    last = largest(xp.where(segment > 0, xp.arange(segment.shape[-1]), 0), segment.ndim - 1)
    return xp.take_along_axis(segment, last, -1)


def since_start(index: Int[Any, " L"], segment: Int[Any, "*batch L"], before: Any = 0, start: Any = 0):
    """The index counted from the start of each token's document, `[*batch, L]`.

    `before` is the document of the token before the first, 0 for none, and `start` the index at which it began.
    """
    xp, largest = _library(segment)
    segments = xp.concatenate(
        [xp.broadcast_to(xp.asarray(before), (*segment.shape[:-1], 1)).astype(segment.dtype), segment], -1
    )
    document = documents(segments)
    first = document[..., 1:] != document[..., :-1]
    return index - largest(xp.where(first, index, start), segment.ndim - 1)


def _library(a: Any) -> tuple[Any, Any]:
    """NumPy or jax, whichever the array is of, and its running maximum."""
    return (np, np.maximum.accumulate) if isinstance(a, np.ndarray) else (jnp, jax.lax.cummax)
