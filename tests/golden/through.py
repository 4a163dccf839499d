"""The way from a golden case to posenc: scores and outputs by the hooks, with gradients for a given cotangent."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Case, Check


def scheme(text: str, **dims: Any) -> Any:
    """The scheme of a name, its open settings filled."""
    sizes = {"width": 1, "heads": 1, "head": 1, "trained": 1} | dims
    return posenc.bind(posenc.parse(text), posenc.Dims(**sizes))


def told(scheme: Any, p: Any, positions: Any) -> Any:
    """What `locate` tells tokens at these positions, for `query` and `key`."""
    index = jnp.arange(len(positions), dtype=jnp.int32)
    at = posenc.At(jnp.asarray(positions), index, jnp.ones_like(index), index + 1, jnp.int32(0), 1)
    return scheme.locate(p, None, at, ())[0]


def scores(
    scheme: Any, params: Any, q: Any, k: Any, *, positions: Any = None, key_positions: Any = None, scale: Any = None
) -> jax.Array:
    """The scores of one sequence, `[H, Q, K]`, before any mask: the hooks query, key and score on `[L, H, d]`.

    Keys stand at 0, 1, … and queries at the last of them, unless positions are given. Keys of all heads are given.
    `scale` takes the place of the scheme's own.
    """
    queries, keys = q.shape[0], k.shape[0]
    j = jnp.arange(keys, dtype=jnp.int32) if key_positions is None else jnp.asarray(key_positions)
    i = j[keys - queries :] if positions is None else jnp.asarray(positions, j.dtype)
    return _scores(scheme, params, q, k, i, j, scheme.scale(q.shape[-1]) if scale is None else scale)


@functools.partial(jax.jit, static_argnums=(0, 6))  # one compilation is quicker than many small ones
def _scores(scheme, params, q, k, i, j, scale):
    (queries, heads, _), keys = q.shape, k.shape[0]
    qi, ki = jnp.arange(keys - queries, keys, dtype=jnp.int32), jnp.arange(keys, dtype=jnp.int32)

    def one(own, head, q, k):
        p = params["layer"] | own
        q, asked = scheme.query(p, q, told(scheme, p, i))
        k, said = scheme.key(p, k, told(scheme, p, j))
        raw = q @ k.T * scale
        seen = jnp.ones(raw.shape, bool)
        tile = posenc.Tile(asked, said, i[:, None] - j[None, :], raw, scale, seen, qi, ki, head, heads)
        return scheme.score(p, raw, tile)

    return jax.vmap(one, (0, 0, 1, 1))(params["heads"], jnp.arange(heads, dtype=jnp.int32), q, k)


def scored(scheme: Any, params: Any, raw: Any) -> jax.Array:
    """Scores `[B, H, Q, K]` after the scheme, for schemes whose `score` reads positions alone."""
    heads, index = raw.shape[1], jnp.arange(raw.shape[-1], dtype=jnp.int32)

    def one(own, head, s):
        distance = index[:, None] - index[None, :]
        seen = jnp.ones(s.shape, bool)
        tile = posenc.Tile(index, index, distance, s, 1.0, seen, index, index, head, heads)
        return scheme.score(params["layer"] | own, s, tile)

    every = jax.vmap(one, (0, 0, 0))
    return jax.vmap(lambda s: every(params["heads"], jnp.arange(heads), s))(raw)


def bias(scheme: Any, params: Any, heads: int, queries: int, keys: int, dtype: Any = None, **where: Any) -> jax.Array:
    """What is added to the scores, `[H, Q, K]`: the score of empty queries and keys."""
    q, k = (jnp.zeros((length, heads, 1), dtype or float) for length in (queries, keys))
    return scores(scheme, params, q, k, **where)


def run(f: Callable[..., Any], cotangent: np.ndarray | None, *given: Any) -> tuple[Any, tuple[Any, ...]]:
    """`f(*given)`, and the gradients of `sum(f(*given) * cotangent)` with respect to everything given.

    Where there is no cotangent there are no gradients; where `f` returns a tuple, the cotangent is that of its first.
    """
    given = jax.tree.map(jnp.asarray, given)
    if cotangent is None:
        return jax.jit(f)(*given), ()

    def both(*xs):
        out, back = jax.vjp(lambda *xs: _first(f(*xs)), *xs)
        return f(*xs), back(jnp.asarray(cotangent, out.dtype))

    return jax.jit(both)(*given)


def _first(out: Any) -> jax.Array:
    return out[0] if isinstance(out, tuple) else out


def checks(case: Case, names: Iterable[str], out: Any, back: tuple[Any, ...]) -> Iterator[Check]:
    """The output and each recorded gradient of a case; `names` are those of what was given to `run`."""
    yield Check("out", out, case.arrays["out"], case.forward)
    yield from gradients(case, names, back)


def gradients(
    case: Case, names: Iterable[str], back: tuple[Any, ...], tolerance: float | None = None
) -> Iterator[Check]:
    """Yield a check of each gradient that a case recorded. `back` holds ours, in the order of `names`."""
    for name, ours in zip(names, back, strict=False):
        if f"grad_{name}" in case.arrays:
            theirs = case.arrays[f"grad_{name}"]
            yield Check(f"grad_{name}", ours, theirs, case.backward if tolerance is None else tolerance)


def cotangent(case: Case) -> np.ndarray | None:
    """The cotangent of a case, if gradients were recorded."""
    return case.arrays["cotangent"] if "cotangent" in case.arrays else None
