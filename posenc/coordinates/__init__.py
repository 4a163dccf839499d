"""Positions of tokens: the index, random numbers, a shifted or scaled index, or what the task gives.

This is a second small registry of frozen dataclasses. Each is a function `(key, inputs, train) -> positions`. `inputs`
holds `index` (`[L]` or `[batch, L]`), the true `length` (traced; `[]` or `[batch]`) and whatever the task offers. Real
tokens come first and padding after them. Kinds that draw do so in evaluation too unless their paper does not; padding
never changes a token's position.
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
from posenc.coordinates.base import Given, checked
from posenc.core.compose import layers, normal_form
from posenc.core.scheme import Dims


def place(scheme: Any, key: PRNGKeyArray, given: Given, *, layer: int | Array = 0, train: bool = False) -> Any:
    """The positions of every part of a scheme, as `attend(positions=...)` takes them.

    `given` has `index`, `[L]` or `[batch, L]`, and the true `length`, `[]` or `[batch]`, beside what the task offers.
    Real tokens come first, padding after them. Returns an array like `index`, or what stands for one where distances
    are drawn, and for a sum a tuple of one for each part. Each part draws with a key of its own, folded by its place in
    the sum and, where each layer has a draw of its own, by the layer. A part without coordinates gets the index. Raises
    `ValueError` where `given` does not serve, and `TypeError` for numbers of a wrong kind, a list of schemes or what is
    no scheme.
    """
    draws = normal_form(scheme).draws
    given = checked(given)

    def place_part(coordinates: Coordinates | None, key: PRNGKeyArray) -> Any:
        if coordinates is None:
            return given["index"]
        return coordinates(jax.random.fold_in(key, layer) if coordinates.resample == "layer" else key, given, train)

    if len(draws) == 1:
        return place_part(draws[0][0], key)
    pairs = [(place_part(c, jax.random.fold_in(key, n)), schemes) for n, (c, schemes) in enumerate(draws)]
    return tuple(positions for positions, schemes in pairs for _ in schemes)


def check_reach(scheme: Any, dims: Dims, inputs: Given, train: bool) -> None:
    """Refuse, by the schemes' `check_positions`, the largest positions that coordinates draw for concrete tokens."""
    for coordinates, schemes in (draw for layer in layers(scheme) for draw in layer.draws):
        largest = None if coordinates is None else coordinates.largest(inputs, train)
        if largest is None:
            continue
        for s in schemes:
            s.check_positions(jax.eval_shape(lambda s=s: s.init(jax.random.key(0), dims)), largest)


def check_index(scheme: Any) -> None:
    """Refuse a scheme under the index that reads coordinates of a task, or several numbers for each token."""
    draws = [draw for layer in layers(scheme) for draw in layer.draws]
    for s in (s for coordinates, schemes in draws if coordinates is None for s in schemes):
        if s.coordinate:
            needed = f"given({s.coordinate!r})" if s.axes == 1 else f"axes('index', {s.coordinate!r})"
            raise ValueError(
                f"{s.name!r} reads the coordinates {s.coordinate!r} of a task, not the index; put @ {needed} behind it."
            )
        if s.axes > 1:
            plane = "@ grid or " if s.axes == 2 else ""
            raise ValueError(
                f"{s.name!r} reads {s.axes} numbers for each token, and the index is one; put {plane}@ axes(...) behind"
                f" it, with {s.axes} names of what the task offers."
            )
