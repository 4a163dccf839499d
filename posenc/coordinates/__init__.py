"""Which position a token gets: its index, random numbers, a shifted or scaled index, or what the task gives.

A second small registry of frozen dataclasses. Each is a function `(key, given, train) -> positions`, where `given`
holds `index` (`[L]` or `[batch, L]`), the true `length` (traced; `[]` or `[batch]`) and whatever the task offers.
Real tokens come first and padding after them. Kinds that draw do so in evaluation too unless their paper does not;
padding never changes a token's position.
"""

from __future__ import annotations

from typing import Any

import jax
from jaxtyping import Array, PRNGKeyArray

from posenc.coordinates import augmented as _augmented  # noqa: F401
from posenc.coordinates import drawn as _drawn  # noqa: F401
from posenc.coordinates import fixed as _fixed  # noqa: F401
from posenc.coordinates.base import COORDINATES as COORDINATES
from posenc.coordinates.base import Coordinates as Coordinates
from posenc.coordinates.base import Given, check_given
from posenc.core.compose import Chain, Pattern, Placed, Windowed, leaves
from posenc.core.scheme import Dims, Scheme


def place(scheme: Any, key: PRNGKeyArray, given: Given, *, layer: int | Array = 0, train: bool = False) -> Any:
    """The positions of every part of a scheme, as `attend(positions=...)` takes them.

    `given` has `index`, `[L]` or `[batch, L]`, and the true `length`, `[]` or `[batch]`, beside what the task offers.
    Real tokens come first, padding after them. Returns an array like `index`, or what stands for one where distances
    are drawn, and for a sum a tuple of one for each part. Each part draws with a key of its own, folded by its place in
    the sum and, where it draws anew in each layer, by the layer. A part without coordinates gets the index. Raises
    `ValueError` where `given` does not serve, and `TypeError` for numbers of a wrong kind, a list of schemes or what is
    no scheme.
    """
    if isinstance(scheme, Pattern):
        raise TypeError("A list of schemes is a pattern of layers; place one layer's scheme at a time.")
    check_given(given)
    return _place(scheme, key, given, layer, train)


def _place(scheme: Any, key: PRNGKeyArray, given: Given, layer: int | Array, train: bool) -> Any:
    if isinstance(scheme, Windowed):
        return _place(scheme.scheme, key, given, layer, train)
    if isinstance(scheme, Chain):
        keys = [jax.random.fold_in(key, n) for n in range(len(scheme.parts))]
        return tuple(_place(s, k, given, layer, train) for s, k in zip(scheme.parts, keys, strict=True))
    if isinstance(scheme, Placed):
        c = scheme.coordinates
        return c(jax.random.fold_in(key, layer) if c.resample == "layer" else key, given, train)
    if isinstance(scheme, Scheme):
        return given["index"]
    raise TypeError(f"A scheme was expected, such as posenc.parse('rope'), not {scheme!r}.")


def check_reach(scheme: Any, dims: Dims, given: Given, train: bool) -> None:
    """Refuse, by the schemes' `check_positions`, the largest positions that coordinates draw for concrete tokens."""
    if isinstance(scheme, Placed):
        largest = scheme.coordinates.largest(given, train)
        for s in leaves(scheme) if largest is not None else ():
            s.check_positions(jax.eval_shape(lambda s=s: s.init(jax.random.key(0), dims)), largest)
        return
    for part in _inside(scheme):
        check_reach(part, dims, given, train)


def check_told(scheme: Any) -> None:
    """Refuse a scheme that was left to the index although its positions are something that tasks tell."""
    if isinstance(scheme, Scheme) and not isinstance(scheme, Chain) and scheme.coordinate:
        told = f"given({scheme.coordinate!r})" if scheme.axes == 1 else f"axes('index', {scheme.coordinate!r})"
        raise ValueError(
            f"{scheme.name!r} reads what a task tells as {scheme.coordinate!r}, and the index is something else;"
            f" put @ {told} behind it."
        )
    for part in _inside(scheme):
        check_told(part)


def _inside(scheme: Any) -> tuple[Any, ...]:
    """What a sum, a window or a pattern holds; of coordinates nothing, since they serve all under them."""
    inner = {Windowed: lambda s: (s.scheme,), Chain: lambda s: s.parts, Pattern: lambda s: (s.input, *s.layers)}
    return inner.get(type(scheme), lambda s: ())(scheme)
