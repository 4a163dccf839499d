"""Who sees whom: by index and segment, never by position."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Window:
    """Which neighbours a query sees beside itself: `left` before it, `right` after it; `None` is no bound."""

    left: int | None = None
    right: int | None = None

    def __post_init__(self):
        for name in ("left", "right"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
                raise ValueError(f"{name} is {value!r}; it is a number of neighbours, at least 0, or None for all.")

    @property
    def causal(self) -> bool:
        """Whether nothing after the query is seen."""
        return self.right == 0


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
    seen = jnp.ones(ahead.shape, bool)
    if window.left is not None:
        seen &= ahead >= -window.left
    if window.right is not None:
        seen &= ahead <= window.right
    if ks is not None:
        seen &= (qs[:, None] == ks[None, :]) & (ks > 0)[None, :]
    return seen


def since_start(
    index: Int[Array, " L"], segment: Int[Array, " L"], before: Int[Array, ""], start: Int[Array, ""]
) -> Int[Array, " L"]:
    """The index counted from the start of each token's segment.

    `before` is the segment of the token before the first, and `start` the index at which that one began.
    """
    first = segment != jnp.concatenate([before[None], segment[:-1]])
    return index - jax.lax.cummax(jnp.where(first, index, start))
