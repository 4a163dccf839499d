"""Facts about tokens that only the running program knows: inside `jit`, what validation would have refused gives NaN.

Such are positions whose differences 32 bits do not hold, and documents that return or have a number below 0. A start or
a prefix out of range is another. Facts known before tracing were validated, and cost nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from posenc.attention.tokens import Tokens
from posenc.core.distances import Distances
from posenc.core.masks import documents
from posenc.numerics.sizes import FAR


class Unknown(NamedTuple):
    """Arguments of one call that have no values yet."""

    positions: bool
    segments: bool
    counts: bool
    """The index of the first query, or the length of the prefix."""


def unknown(t: Tokens, start: Any) -> Unknown:
    """Return what is being traced. Segments decide which positions are padding's, so theirs are unknown with them."""
    segments = [a for a in (t.segments, t.key_segments) if _traced(a)]
    placed = t.positions is not None or t.key_positions is not None
    positions = placed and (bool(segments) or _traced((t.positions, t.key_positions)))
    numbered = any(a.dtype != bool for a in segments)  # what tells padding alone has no document that could come again
    return Unknown(positions, numbered, _traced((start, t.pairs.prefix)))


def _traced(tree: Any) -> bool:
    return any(isinstance(a, jax.core.Tracer) for a in jax.tree.leaves(tree))


def marking(run: Callable[..., Array], late: Unknown, start: Any = 0) -> Callable[..., Array]:
    """`run` of one sequence's tokens, and of more; its output is NaN as a whole where these tokens are faulty."""

    def run_marked(t: Tokens, *more: Any) -> Array:
        out = run(t, *more)
        return marked(out, faulty(t, start, late))

    return run_marked


def marked(out: Array, faulty: Bool[Array, ""] | None) -> Array:
    """One sequence's output, NaN as a whole where something of it was faulty."""
    return out if faulty is None else jnp.where(faulty, jnp.nan, out)


def faulty(t: Tokens, start: Any, unknown: Unknown) -> Bool[Array, ""] | None:
    """Tell whether one sequence's tokens hold what validation refuses if it is known; None if nothing is unknown."""
    faults = []
    for positions, segments in ((t.positions, t.segments), (t.key_positions, t.key_segments)):
        if unknown.positions:
            each = jax.tree.leaves(positions, is_leaf=lambda a: isinstance(a, Distances))
            faults += [_far_apart(a, segments) for a in each]
        if unknown.segments and segments is not None:
            faults.append(torn(segments))
    if unknown.counts:
        faults.append((start < 0) | (start > FAR - t.q.shape[0]))
        faults += [(n < 0) | (n >= FAR) for n in jax.tree.leaves(t.pairs.prefix)]
    return jnp.stack(faults).any() if faults else None


def farthest(dtype: Any) -> int | float:
    """The bound of positions of this type: below it differences fit, and angles are exact."""
    return 2.0**31 if jnp.issubdtype(dtype, jnp.floating) else 2**30 if dtype == jnp.int32 else 2**31


def _far_apart(positions: Any, segments: Any) -> Bool[Array, ""]:
    if isinstance(positions, Distances):  # of gaps, so that no padding is among them
        return _far_apart(positions.past, None) | _far_apart(positions.future, None)
    limit = farthest(positions.dtype)
    far = ~((positions < limit) & (positions > -limit))  # nan is neither
    far = far.any(-1) if far.ndim == 2 else far
    return (far if segments is None else far & (segments > 0)).any()


def uncounted(index: Any) -> Bool[Array, ""] | None:
    """Tell whether an index is too large for the floating type that a cache keeps it in; None if it keeps integers."""
    held = [a for a in jax.tree.leaves(index) if jnp.issubdtype(a.dtype, jnp.floating)]
    return jnp.stack([(a >= 2 ** (jnp.finfo(a.dtype).nmant + 1)).any() for a in held]).any() if held else None


def torn(segments: Int[Array, " L"]) -> Bool[Array, ""]:
    """Tell whether a document returns after another one, or has a number below 0."""
    document = documents(segments)
    pieces, names = (_steps(a).sum() for a in (document, jnp.sort(document)))
    return (pieces != names) | (segments < 0).any()


def returned(segments: Int[Array, " new"], last: Int[Array, ""], before: Int[Array, " C"]) -> Bool[Array, ""]:
    """Tell whether new tokens begin a document that is among those `before`, the latest of which is `last`."""
    document = documents(jnp.concatenate([last[None], segments.astype(last.dtype)]))
    begins = document[1:] != document[:-1]
    return (begins[:, None] & (document[1:, None] == before[None, :])).any()


def _steps(document: Int[Array, " L"]) -> Bool[Array, " L"]:
    """Return where the number changes; before the first token it is 0."""
    return document != jnp.concatenate([jnp.zeros_like(document[:1]), document[:-1]])
