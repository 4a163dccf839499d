"""One attention made ready: what was given, once nothing can be refused any more, and what is known of each token.

`posenc.attention.attend` computes with it on one device, and `posenc.sharding` on many.
"""

from __future__ import annotations

from typing import Any

from posenc.attention import admission, arguments, kernels
from posenc.attention.cache import Cache
from posenc.attention.encode import Layer
from posenc.attention.tokens import Tokens
from posenc.core.compose import normal_form, pick
from posenc.core.masks import Mask, window
from posenc.core.parameters import bound
from posenc.core.shapes import KnownSizes, check_params, plain


def prepare(
    given: Any, params: Any, t: Tokens, query_start: Any, mask: Mask, kernel: str, cache: Cache | None
) -> tuple[Layer, Tokens, Any]:
    """What `attend` computes with: a layer, its tokens in their final types, and the index of the first query.

    All that can be refused is refused here. Of queries, keys and values only shapes and types are looked at.
    """
    form = normal_form(given)
    scheme, look, params = bound(form.scheme), form.narrow(window(mask)), plain(params)
    arguments.check_arrays(t.q, t.k, t.v)
    admission.check_scheme(form, look, t.positions, t.x)
    own = [a for a in (t.key_x, t.key_positions, t.key_segments) if a is not None]
    one = t.q.shape[-3] == t.k.shape[-3] and query_start is None
    admission.check_distances(scheme, t.positions, one and cache is None and t.key_positions is None)
    t = arguments.check_tokens(t, scheme, query_start, cache is not None)
    width = None if t.x is None else t.x.shape[-1]
    check_params(scheme, params, KnownSizes(width, *t.q.shape[-2:], t.k.shape[-2]))
    if cache is not None:
        kernel = admission.check_cache(scheme, params, cache, t, look, query_start, kernel)
    start = cache.length if cache is not None else 0 if query_start is None else query_start
    kernel = kernels.choose(scheme, kernel, t.q, t.k.shape[-3] if cache is None else cache.segment.shape[1])
    layer = Layer(scheme, (pick(params, "layer"), pick(params, "heads")), look, one and not own, kernel)
    admission.admit(scheme, layer.params[0], t, start, cache is not None)
    return layer, t, start
