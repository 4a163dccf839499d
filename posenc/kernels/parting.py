"""A tree of arrays in two of the same shape, what is chosen and the rest; None stands where the other has something."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from posenc.distances import Distances


def varies(a: Any) -> bool:
    """Whether an array has a gradient."""
    return jnp.issubdtype(a.dtype, jnp.inexact)


def drawn(a: Any) -> bool:
    """Whether this stands in the place of positions but is of no token."""
    return isinstance(a, Distances)


def part(tree: Any, chosen: Any) -> tuple[Any, Any]:
    """The leaves that are chosen, and the others; drawn distances are one leaf where they are what is chosen."""
    is_leaf = drawn if chosen is drawn else None
    mine = jax.tree.map(lambda a: a if chosen(a) else None, tree, is_leaf=is_leaf)
    return mine, jax.tree.map(lambda a: None if chosen(a) else a, tree, is_leaf=is_leaf)


def join(some: Any, rest: Any) -> Any:
    """What `part` parted."""
    return jax.tree.map(lambda a, b: b if a is None else a, some, rest, is_leaf=lambda a: a is None or drawn(a))
