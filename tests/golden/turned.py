"""What a scheme makes of queries and keys, hook by hook: `[batch, heads, length, features]` in and out."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import posenc


@partial(jax.jit, static_argnums=(0, 1))
def turned(scheme: Any, side: str, x: Any, positions: Any) -> jax.Array:
    """The "query" or "key" hook on every head of every sequence; positions are `[length]` or `[batch, length]`."""
    positions = jnp.broadcast_to(jnp.asarray(positions), (x.shape[0], x.shape[2]))
    one = lambda x, position: getattr(scheme, side)({}, x, position)[0]  # noqa: E731
    return jax.vmap(jax.vmap(one, (0, None)))(jnp.asarray(x), positions)


def pull(f: Any, x: Any, cotangent: Any) -> jax.Array:
    """The gradient of sum(f(x) · cotangent) with respect to x."""
    return jax.jit(lambda x, cotangent: jax.vjp(f, x)[1](cotangent)[0])(x, cotangent)


def reach(positions: Any) -> float:
    """How far float32 angles of the references are off at these positions (golden/README, "Tolerances")."""
    return 2e-6 + 1.5e-7 * float(np.max(positions))


def rope(args: dict[str, Any], head: int) -> Any:
    """The rotary scheme that a case's arguments describe."""
    fraction = args.get("rotary_dim", head) / head
    return posenc.parse(f"rope(base={args['rope_theta']!r}, layout={args['layout']!r}, fraction={fraction!r})")
