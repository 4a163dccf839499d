"""Arrays for a kernel: a tree parted in two of the same shape and joined again, and tokens up to whole blocks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from posenc.core.distances import Distances
from posenc.numerics.sizes import are_numbers, round_up


def varies(a: Any) -> bool:
    """Tell whether an array has a gradient."""
    return jnp.issubdtype(a.dtype, jnp.inexact)


def is_sampled_distance(a: Any) -> bool:
    """Tell whether these are sampled distances, which stand for positions but belong to no single token."""
    return isinstance(a, Distances)


def part(tree: Any, predicate: Any) -> tuple[Any, Any]:
    """The leaves for which the predicate holds, and the others, each with None where the other has something.

    Sampled distances are one leaf where the predicate is of them.
    """
    is_leaf = is_sampled_distance if predicate is is_sampled_distance else None
    selected = jax.tree.map(lambda a: a if predicate(a) else None, tree, is_leaf=is_leaf)
    return selected, jax.tree.map(lambda a: None if predicate(a) else a, tree, is_leaf=is_leaf)


def join(selected: Any, rest: Any) -> Any:
    """Join what `part` parted; sampled distances as one leaf, or by what varies of them."""

    def join_leaves(a: Any, b: Any) -> Any:
        if is_sampled_distance(a) and is_sampled_distance(b):
            return Distances(join_leaves(a.past, b.past), join_leaves(a.future, b.future))
        return b if a is None else a

    return jax.tree.map(join_leaves, selected, rest, is_leaf=lambda a: a is None or is_sampled_distance(a))


def varying(tree: Any, of: Any) -> Any:
    """Return the arrays with the type of what differs from device to device as `of` does.

    Inside `jax.shard_map` a loop keeps the type it began with, and a gradient that devices share is summed over them.
    """
    kinds = [jax.typeof(a).manual_axis_type.varying for a in jax.tree.leaves(of)]
    axes = frozenset().union(*kinds)
    lift = lambda a: jax.lax.pcast(a, tuple(axes - jax.typeof(a).manual_axis_type.varying), to="varying")  # noqa: E731
    return jax.tree.map(lift, tree) if axes else tree


def lengthened(a: Array, axis: int, block: int) -> Array:
    """An array with the last token again until whole blocks are full: numbers that hooks know how to read."""
    count = a.shape[axis]
    more = round_up(count, block) - count
    if are_numbers(more) and not more:
        return a
    last = jax.lax.slice_in_dim(a, a.shape[axis] - 1, a.shape[axis], axis=axis)
    return jnp.concatenate([a, jnp.repeat(last, more, axis)], axis)
