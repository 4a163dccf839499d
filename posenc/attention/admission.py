"""Whether a scheme, and a cache, take what attention was given; each refusal is one sentence with the numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from posenc.attention.arguments import concrete
from posenc.attention.cache import Cache, blank, check_ring
from posenc.attention.tokens import Tokens
from posenc.core.compose import Chain, Composed, imply, pick, spread
from posenc.core.distances import drawn, pasts
from posenc.core.masks import Window, since_start
from posenc.core.scheme import Dims, Scheme
from posenc.core.shapes import label


def check_scheme(form: Composed, window: Window, positions: Any, x: Any) -> None:
    """Refuse what this scheme cannot do."""
    scheme = form.scheme
    if (why := scheme.limits.get("bidirectional")) and not window.causal:
        raise ValueError(f"{label(scheme)} is causal only: {why}; use mask='causal'.")
    if scheme.contextual and x is None:
        raise ValueError(f"{label(scheme)} reads the features of tokens; pass x, the input of this attention.")
    if positions is None and form.coordinates:
        raise ValueError("This scheme has coordinates; draw positions with posenc.place and pass them.")


def check_distances(scheme: Scheme, positions: Any, whole: bool) -> None:
    """Refuse distances in the place of positions where anything is told where a token stands."""
    if not drawn(positions):
        return
    if not whole:
        raise ValueError("Drawn distances are those of one whole sequence; pass all its tokens at once, or positions.")
    if isinstance(scheme, Chain):
        for s, own in zip(scheme.parts, spread(scheme, positions), strict=True):
            check_distances(s, own, whole)
    elif (
        scheme.positional
        or scheme.overrides("embed", "value", "output")
        or scheme.reads == "positions"
        or (scheme.reads in ("nothing", "distance") and scheme.overrides("query", "key"))
    ):
        raise ValueError(
            f"{label(scheme)} is told where tokens stand, and drawn distances say only how far apart they are; use"
            " positions, or a scheme of distances such as 'alibi'."
        )


def admit(scheme: Scheme, p: Any, t: Tokens, start: Any, cached: bool) -> None:
    """Let the scheme refuse the positions that it will be told, those of padding left out."""
    if not scheme.overrides("check_positions"):
        return
    sides = [(t.positions, t.segments)] + [(t.key_positions, t.key_segments)] * (t.key_positions is not None)
    for positions, segments in sides:
        real = None if segments is None else concrete(segments)
        if positions is None:
            if segments is not None and (cached or real is None):
                continue  # where documents start is not known before the program runs
            positions = start + np.arange(t.q.shape[-3], dtype=np.int32)
            positions = positions if real is None else since_start(positions, real)
            positions = imply(scheme, positions)
        numbers = spread(scheme, pasts(positions))
        scheme.check_positions(p, jax.tree.map(lambda a, real=real: _known(a, real), numbers))


def _known(positions: Any, segments: np.ndarray | None) -> Any:
    """Positions as NumPy's where they are concrete, those of padding set to zero, which every scheme has."""
    if isinstance(positions, jax.core.Tracer):
        return positions
    positions = np.asarray(positions)
    if segments is None:
        return positions
    real = segments > 0
    wide = positions.ndim > 1 and positions.shape[-2] == real.shape[-1] and positions.shape[-1] != real.shape[-1]
    return np.where(real[..., None] if wide else real, positions, np.zeros((), positions.dtype))


def check_cache(
    scheme: Scheme, params: Any, cache: Cache, t: Tokens, look: Window, query_start: Any, kernel: str
) -> str:
    """Refuse a cache that is full, of another batch, of another scheme or type, or asked to see the future.

    Returns the kernel to choose from: a ring has one.
    """
    if not isinstance(cache, Cache):
        raise TypeError(
            f"cache is of type {type(cache).__name__}; make it with posenc.Cache.empty(scheme, params, ...)."
        )
    (rows, capacity), new = cache.segment.shape, t.q.shape[-3]
    if t.q.shape[:-3] != (rows,):
        raise ValueError(f"This cache is of a batch of {rows}; q, k and v have the batch axes {t.q.shape[:-3]}.")
    if not look.causal:
        raise ValueError("A cache serves decoding, which sees no future; use mask='causal' or posenc.Window(left, 0).")
    if query_start is not None:
        raise ValueError("With a cache, the first query stands where the cache ends; leave query_start out.")
    _check_stored(scheme, params, cache, t)
    kinds = {a.dtype for a in jax.tree.leaves(t.positions)} - {a.dtype for a in jax.tree.leaves(cache.position)}
    if kinds:
        raise TypeError(
            f"Positions are {kinds.pop()}, the cache's are not; make it with posenc.Cache.empty(positions=...)."
        )
    if cache.index is not None:
        check_ring(scheme, look, capacity, new)
        if kernel in ("tiled", "rows"):
            raise ValueError(f"A ring is computed by kernel='dense', not {kernel!r}: leave kernel out, or ring.")
        return "dense" if kernel == "auto" else kernel
    length = concrete(cache.length)
    if length is not None and length + new > capacity:
        raise ValueError(
            f"The cache holds {int(length)} of {capacity} slots and {new} more were given; make it larger."
        )
    return kernel


def _check_stored(scheme: Scheme, params: Any, cache: Cache, t: Tokens) -> None:
    """Refuse a cache whose arrays are not those that the new tokens will be written to."""
    for name in ("k", "v"):
        if getattr(cache, name).dtype != t.q.dtype:
            raise TypeError(
                f"The cache holds {getattr(cache, name).dtype}, but q, k and v are {t.q.dtype}; make it with"
                f" dtype={t.q.dtype}."
            )
    (rows, capacity), (heads, head) = cache.segment.shape, t.q.shape[-2:]
    if t.v.shape[-1] != head:
        raise ValueError(f"A cache holds values as wide as keys; v has {t.v.shape[-1]} features, and k {head}.")
    width = heads * head if t.x is None else t.x.shape[-1]
    dims = Dims(width, heads, head, capacity, key_heads=t.k.shape[-2])
    parts = pick(params, "layer"), pick(params, "heads")
    keys, place, carry = jax.eval_shape(lambda: blank(scheme, parts, dims, capacity, t.q.dtype, jnp.int32))
    mine, theirs = ((*keys, place, carry), (cache.k, cache.v, cache.key_info, cache.position, cache.carry))
    shapes = lambda tree: jax.tree.map(lambda a: str(np.shape(a)), tree)  # noqa: E731
    expected = jax.tree.map(lambda a: str((rows, *a.shape)), mine)
    if jax.tree.structure(mine) != jax.tree.structure(theirs) or shapes(theirs) != expected:
        raise ValueError(
            f"This cache, with keys of the shape {cache.k.shape}, is not one of {label(scheme)} with {t.k.shape[-2]}"
            f" key heads of {head} features; make it with posenc.Cache.empty for this scheme and these sizes."
        )
