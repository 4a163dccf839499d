"""Numbers of tokens, such as positions and documents: their values, a type that holds them, and the rows of tables.

JAX reads past the end of an array without an error: the last row, or with a negative index a row from the end. Rows
here are neither clamped nor wrapped.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

LARGER = "give a larger longest, the size of tables"
"""`longest` is the name in `posenc.Dims`, in a run and on the command line."""


def concrete(a: Any) -> np.ndarray | None:
    """The values of an array, where they are known before tracing."""
    return None if isinstance(a, jax.core.Tracer) else np.asarray(a)


def exact(name: str, a: Any) -> Any:
    """Numbers in the type that attention computes with: 32 bits, or 64 where they come so and jax keeps 64.

    NumPy's stay NumPy's. Raises `TypeError` for floating types of 16 bits or fewer, which lose whole numbers, and
    `ValueError` for integers that do not fit. Where integers are traced and do not fit, the least of the type stands
    for them, which attention marks as NaN.
    """
    floating = jnp.issubdtype(a.dtype, jnp.floating)
    if floating and a.dtype.itemsize < 4:
        largest = 2 ** (jnp.finfo(a.dtype).nmant + 1)
        raise TypeError(
            f"{name} is of type {a.dtype}, which holds every whole number only up to {largest}; give whole numbers, or"
            " real ones of 32 bits."
        )
    wide = np.promote_types(a.dtype, np.float32) if floating else np.int64 if a.dtype == np.int64 else np.int32
    kind = jax.dtypes.canonicalize_dtype(wide)
    if a.dtype == kind and not floating:
        return a
    values, most = concrete(a), 2**31 if floating else jnp.iinfo(kind).max + 1
    if values is None:
        over = not floating and jnp.iinfo(a.dtype).max >= most
        return (
            jnp.where(a >= np.asarray(most, a.dtype), jnp.iinfo(kind).min, a.astype(kind)) if over else a.astype(kind)
        )
    if values.size and (float(values.max()) >= most or float(values.min()) < -most):
        worst = values.max() if float(values.max()) >= most else values.min()
        raise ValueError(f"{name} holds {worst}; numbers of tokens lie between -{most} and {most - 1}.")
    return a.astype(kind)


def check_rows(name: str, position: Num[Array, " *any"], rows: int, hint: str = LARGER) -> None:
    """Refuse positions that are not integers, and, where they are concrete, those without a row."""
    if not jnp.issubdtype(position.dtype, jnp.integer):
        raise TypeError(f"{name!r} looks positions up in a table, so they must be integers, not {position.dtype}.")
    numbers = concrete(position)
    if numbers is None or not numbers.size:
        return
    low, high = int(numbers.min()), int(numbers.max())
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
