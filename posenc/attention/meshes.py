"""Attention under a mesh with explicit axes, as `jax.make_mesh` makes them: inside, the compiler spreads the work.

Explicit axes are part of each array's type, and every step must say where its result lies. Attention turns, repeats and
folds heads and batches, so it leaves these axes to the compiler, as under an automatic mesh, and says once, at its end,
where the result lies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxtyping import PyTree


def compiled_axes(f: Callable[..., Any], args: PyTree, out: PyTree) -> Any:
    """`f(*args)`, with explicit axes of the mesh left to the compiler; the results lie as the arrays `out` do.

    `out` is a prefix of the result's tree. Without explicit axes it is `f(*args)` itself.
    """
    meshes = [mesh for a in jax.tree.leaves((args, out)) if _explicit(mesh := jax.typeof(a).sharding.mesh)]
    if not meshes:
        return f(*args)
    return jax.sharding.auto_axes(f, out_sharding=jax.tree.map(lambda a: _lies(a, meshes[0]), out))(*args)


def _explicit(mesh: Any) -> bool:
    return AxisType.Explicit in mesh.axis_types


def _lies(a: Any, mesh: Any) -> NamedSharding:
    """Where an array lies; whole on each device where its type does not say."""
    of = jax.typeof(a).sharding
    return of if _explicit(of.mesh) else NamedSharding(mesh, PartitionSpec())
