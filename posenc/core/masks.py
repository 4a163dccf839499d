"""Masks: who sees whom, by index and segment, never by position."""

from __future__ import annotations

import dataclasses
import functools
import operator
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Num

from posenc.language.echo import echoed
from posenc.numerics.sizes import FAR


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Window:
    """Neighbours that a query sees beside itself, `left` before it and `right` after it; `None` is unbounded.

    Neighbours are counted by index, so padding between tokens counts, whatever the positions; `back` and `ahead` bound
    positions instead. With `sinks`, the first tokens of a document are never too far back (Xiao et al., 2024,
    StreamingLLM, §3.2).
    """

    left: int | None = None
    right: int | None = None
    sinks: int = 0
    back: int | None = None
    ahead: int | None = None
    """How far before the query, or after it, a key's position may be, beside its index; None is unbounded."""

    def __post_init__(self):
        sinks = as_integer(self.sinks)
        if sinks is None or sinks < 0:
            raise ValueError(f"sinks is {self.sinks!r}; it is a number of first tokens, at least 0.")
        check_far("sinks", sinks, "leave them out")
        object.__setattr__(self, "sinks", sinks)
        for name in ("left", "right", "back", "ahead"):
            value = getattr(self, name)
            if value is None:
                continue
            count = as_integer(value)
            if count is None or count < 0:
                raise ValueError(f"{name} is {value!r}; it is a number of neighbours, at least 0, or None for all.")
            check_far(name, count, "None for all")
            object.__setattr__(self, name, count)
        left = self.left if self.back is None else self.back
        if sinks and left is None:
            raise ValueError(f"A window that sees all before it needs no sinks; {sinks} were given: leave them out.")
        if left is not None and sinks > left + 1:
            raise ValueError(f"A window of {left + 1} tokens was given {sinks} sinks; give at most as many as it sees.")

    @property
    def causal(self) -> bool:
        """Tell whether queries see nothing after them."""
        return self.right == 0

    @property
    def of_positions(self) -> bool:
        """Tell whether it reads positions, beside indices."""
        return self.back is not None or self.ahead is not None

    def by_index(self) -> Window:
        """Return the window for positions that are indices."""
        return Window(lesser(self.left, self.back), lesser(self.right, self.ahead), self.sinks)


def lesser(a: int | None, b: int | None) -> int | None:
    """Return the narrower of two bounds; None means unbounded."""
    return a if b is None else b if a is None else min(a, b)


def check_far(name: str, count: int, otherwise: str) -> None:
    """Refuse a window that 32 bits cannot count from the last index."""
    if count >= FAR // 2:
        raise ValueError(f"{name} is {echoed(count)}; it is below {FAR // 2}: give fewer, or {otherwise}.")


def check_keys(keys: Any) -> None:
    """Refuse what `window(keys)` cannot take."""
    if keys is not None and (not isinstance(keys, int) or isinstance(keys, bool) or keys < 1):
        raise ValueError(f"window takes a whole number of keys of at least 1, not {echoed(keys)}.")
    check_far("window", keys or 0, "leave it out")


def as_integer(value: Any) -> int | None:
    """A whole number of any library as Python's; None for anything else, True and False among it."""
    try:
        return None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        return None


@functools.partial(jax.tree_util.register_dataclass, data_fields=["length"], meta_fields=[])
@dataclasses.dataclass(frozen=True, eq=False)
class Prefix:
    """Causal after a prefix that every token sees, the tokens of the prefix too (Raffel et al., 2020, §3.2.1).

    `length` is how many first tokens of each document are its prefix: a whole number, or an array with one for each
    sequence of the batch.
    """

    length: Any


Named = Literal["causal", "full"] | Window
Mask = Named | Prefix | Bool[Array, "*batch Q K"] | tuple[Named, Bool[Array, "*batch Q K"]]


def window(mask: Mask) -> Window:
    """The window that the name of a mask stands for, or a window as it is."""
    if (bounds := _window(mask)) is None:
        raise ValueError(f"mask is {_shown(mask)}; it is 'causal', 'full' or a posenc.Window(left, right).")
    return bounds


def split(mask: Mask) -> tuple[Window, Any, Any]:
    """The window of a mask, and beside it a prefix, or an array that says of each pair whether it is seen."""
    if isinstance(mask, Prefix):
        if mask.length is None:
            raise TypeError("The length of a prefix is None; it is a whole number, or an array of them.")
        return Window(None, 0), mask.length, None
    if _is_array(mask):
        return Window(), None, mask
    if isinstance(mask, tuple) and len(mask) == 2 and _is_array(mask[1]):
        return window(mask[0]), None, mask[1]
    if (bounds := _window(mask)) is None:
        raise ValueError(
            f"mask is {_shown(mask)}; it is 'causal', 'full', a posenc.Window(left, right), a posenc.Prefix(length), an"
            " array of booleans, [..., queries, keys], or such an array behind a name or a window: ('causal', array)."
        )
    return bounds, None, None


def _is_array(mask: Any) -> bool:
    return hasattr(mask, "shape") and hasattr(mask, "dtype")


def _window(mask: Any) -> Window | None:
    if mask is None:
        raise ValueError(
            "mask is None, which elsewhere says that there is no mask; write mask='full' for that, or mask='causal' to"
            " hide what comes after a token."
        )
    if isinstance(mask, str):
        return {"causal": Window(None, 0), "full": Window()}.get(mask)
    return mask if isinstance(mask, Window) else None


def _shown(mask: Any) -> str:
    return repr(mask) if isinstance(mask, str) else f"of type {type(mask).__name__}"


def sees(
    window: Window,
    qi: Int[Array, " Q"],
    ki: Int[Array, " K"],
    qs: Int[Array, " Q"] | None,
    ks: Int[Array, " K"] | None,
    began: Int[Array, " Q"] | None = None,
    prefix: Int[Array, ""] | None = None,
    apart: Num[Array, "Q K"] | None = None,
) -> Bool[Array, "Q K"]:
    """Return where query `i` may look at key `j`: inside the window, in the same document, and at no padding.

    `began` is the index at which each query's document began, from which sinks and `prefix` are counted, and `apart`
    the query's position minus the key's, if the window reads it.
    """
    ahead = ki[None, :] - qi[:, None]
    since = cast(Array, None if began is None else ki[None, :] - began[:, None])  # only what counts from there reads it
    visible = jnp.ones(ahead.shape, bool)
    if window.left is not None:
        visible &= ahead >= -window.left if not window.sinks else (ahead >= -window.left) | (since < window.sinks)
    if window.back is not None:
        near = cast(Array, apart) <= window.back
        visible &= near if not window.sinks else near | (since < window.sinks)
    if window.ahead is not None:
        visible &= cast(Array, apart) >= -window.ahead
    if window.right is not None:
        visible &= ahead <= window.right if prefix is None else (ahead <= window.right) | (since < prefix)
    if ks is not None:
        visible &= (cast(Array, qs)[:, None] == ks[None, :]) & (ks > 0)[None, :]
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
