"""Tables with a row for each position: never clamped, never wrapped.

JAX reads past the end of an array without an error: the last row, or with a negative index a row from the end.
"""

from __future__ import annotations

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

LARGER = "give a larger longest, the size of tables"
"""`longest` is the name in `posenc.Dims`, in a run and on the command line."""


def check_rows(name: str, position: Num[Array, " *any"], rows: int, hint: str = LARGER) -> None:
    """Refuse positions that are not integers, and, where they are concrete, those without a row."""
    if not jnp.issubdtype(position.dtype, jnp.integer):
        raise TypeError(f"{name!r} looks positions up in a table, so they must be integers, not {position.dtype}.")
    if isinstance(position, jax.core.Tracer) or not position.size:
        return
    low, high = int(np.min(position)), int(np.max(position))
    if low < 0 or high >= rows:
        worst, advice = (low, "count from 0") if low < 0 else (high, hint)
        raise ValueError(
            f"Position {worst} has no row in the table of {name!r}, whose {rows} rows serve 0 to {rows - 1}; {advice}."
        )


def inside(position: Int[Array, " L"], rows: int) -> Array:
    """True where a position has a row."""
    return (position >= 0) & (position < rows)


def rows_at(table: Float[Array, "N D"], position: Int[Array, " L"]) -> Float[Array, "L D"]:
    """The row of each position, and NaN where there is none."""
    here = jnp.where(position < 0, table.shape[0], position)
    return table.at[here].get(mode="fill", fill_value=jnp.nan)
