"""Distances that no positions have: a number for each gap between tokens, where it is distances that are drawn.

Positions p give the distance p_i - p_j. Sorted random *distances* (Ruoss et al., 2023, §3) depend on the gap i - j
alone and are not differences of positions, so they are passed instead of positions, and looked up by index.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Num


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Distances:
    """How far a key is from the query, by the number of tokens between their indices; the past is positive."""

    past: Num[Array, "*batch L"]
    """Distances of a key 0, 1, … tokens before the query."""
    future: Num[Array, "*batch L"]
    """Distances of a key 0, 1, … tokens after it; the first is never read."""

    def between(self, qi: Int[Array, " Q"], ki: Int[Array, " K"]) -> Num[Array, "Q K"]:
        """The distance of each pair."""
        gap = qi[:, None] - ki[None, :]
        return jnp.where(gap >= 0, self.past[jnp.abs(gap)], self.future[jnp.abs(gap)])


def is_sampled(positions: Any) -> bool:
    """Tell whether any of these positions are distances."""
    return any(map(_are, jax.tree.leaves(positions, is_leaf=_are)))


def pasts(positions: Any) -> Any:
    """Return the positions, with the distances of the past for sampled distances."""
    return jax.tree.map(lambda a: a.past if _are(a) else a, positions, is_leaf=_are)


def _are(a: Any) -> bool:
    return isinstance(a, Distances)
