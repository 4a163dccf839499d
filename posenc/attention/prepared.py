"""One attention made ready: what was given, once nothing can be refused any more, and what is known of each token.

`posenc.attention.attend` computes with it on one device, and `posenc.sharding` on many.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from posenc.attention import admission, arguments, kernels
from posenc.attention.arguments import Tokens
from posenc.attention.cache import Cache
from posenc.core.compose import Windowed, bare, imply, pick, spread
from posenc.core.masks import Mask, Window, since_start, window
from posenc.core.parameters import bound
from posenc.core.scheme import At, Dims, Scheme
from posenc.core.shapes import Sizes, check_params, plain


class Layer(NamedTuple):
    """An attention that nothing of what it was given forbids."""

    scheme: Scheme
    params: Any
    heads: Any
    look: Window
    same: bool
    """Whether queries and keys are the same tokens."""
    kernel: str

    @property
    def both(self):
        return self.params, self.heads


def prepare(
    given: Any, params: Any, t: Tokens, query_start: Any, mask: Mask, kernel: str, cache: Cache | None
) -> tuple[Layer, Tokens, Any]:
    """What `attend` computes with: a layer, its tokens in their final types, and the index of the first query.

    All that can be refused is refused here. Of queries, keys and values only shapes and types are looked at.
    """
    scheme, look, params = bound(bare(given)), _look(given, mask), plain(params)
    arguments.check_arrays(t.q, t.k, t.v)
    admission.check_scheme(scheme, given, look, t.positions, t.x)
    own = [a for a in (t.key_x, t.key_positions, t.key_segments) if a is not None]
    one = t.q.shape[-3] == t.k.shape[-3] and query_start is None
    admission.check_distances(scheme, t.positions, one and cache is None and t.key_positions is None)
    t = arguments.check_tokens(t, scheme, query_start, cache is not None)
    width = None if t.x is None else t.x.shape[-1]
    check_params(scheme, params, Sizes(width, *t.q.shape[-2:], t.k.shape[-2]))
    if cache is not None:
        kernel = admission.check_cache(scheme, params, cache, t, look, query_start, kernel)
    start = cache.length if cache is not None else 0 if query_start is None else query_start
    kernel = kernels.choose(scheme, kernel, t.q, t.k.shape[-3] if cache is None else cache.segment.shape[1])
    layer = Layer(scheme, pick(params, "layer"), pick(params, "heads"), look, one and not own, kernel)
    admission.admit(scheme, layer.params, t, start, cache is not None)
    return layer, t, start


def _look(scheme: Any, mask: Mask) -> Window:
    """The mask, narrowed where the scheme has a window of its own."""
    look = window(mask)
    return scheme.narrow(look) if isinstance(scheme, Windowed) else look


def known(scheme: Scheme, index, segment, position, visible, heads, before=0, began=0) -> At:
    """What is known of each token; a position that was not passed is the index counted from the document's start."""
    segments = jnp.ones_like(index) if segment is None else segment
    if position is None:
        position = index
        if segment is not None:
            position = since_start(index, segment, before, jnp.asarray(began, index.dtype))
        position = imply(scheme, position)
    return At(spread(scheme, position), index, segments, visible, jnp.int32(0), heads)


def silent(t: Tokens) -> Tokens:
    """The same tokens with padding set to zero: 0 · NaN is NaN, so what nobody may see must not be there at all."""

    def hush(a, segments):
        return a if a is None or segments is None else jnp.where((segments > 0).reshape(-1, *[1] * (a.ndim - 1)), a, 0)

    q, x = hush(t.q, t.segments), hush(t.x, t.segments)
    k, v, key_x = (hush(a, t.key_segments) for a in (t.k, t.v, t.key_x))
    return t._replace(q=q, x=x, k=k, v=v, key_x=key_x)


def sizes(t: Tokens) -> Dims:
    """The sizes of one sequence, as the start of a carry asks for them."""
    width = t.q.shape[1] * t.q.shape[2] if t.x is None else t.x.shape[-1]
    return Dims(width, t.q.shape[1], t.q.shape[2], max(t.k.shape[0], 1), key_heads=t.k.shape[1])
