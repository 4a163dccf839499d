"""A scheme inside the attention of another library: functions for the places that libraries leave open.

A hook that such a place cannot run is refused by name, so that no scheme runs in part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posenc.attention.attend import attend, weights
from posenc.attention.kernels.form import CapOf
from posenc.attention.positions import numbers
from posenc.attention.rotate import left_out, rotate
from posenc.attention.validation import check_arrays
from posenc.core.compose import normal_form, parts
from posenc.core.masks import Mask, Window, window
from posenc.core.parameters import bound, complete, init
from posenc.core.scheme import Dims, Scheme
from posenc.core.shapes import label
from posenc.naming import scheme_of
from posenc.numerics.token_numbers import concrete

Heads = Float[Array, "L H d"]


def attention_fn(
    scheme: Any,
    params: Any = None,
    *,
    mask: Mask = "causal",
    positions: Any = None,
    segments: Any = None,
    scale: float | None = None,
    cap: float | None = None,
    sinks: Any = None,
    cap_of: CapOf = "sum",
    sown: Any = "intermediates",
) -> Callable[..., Array]:
    """The `attention_fn` of Flax's own multi-head attention: `posenc.attend` under this scheme.

    `scheme` may be a text where no setting depends on the sizes of a model; `posenc.bind` fills those. `params` are
    what `posenc.init` gives, and may be left out where a scheme learns nothing. All other arguments are `attend`'s and
    stand for every call. A mask that the layer is called with, `[..., 1, Q, K]`, narrows `mask` to the keys at which it
    is not 0; a query that sees nothing receives zeros. `input_positions` of the layer are the positions of that call.
    The layer's dropout is `attend`'s. A layer that is called with `sow_weights` keeps the weights, `[..., H, Q, K]`, as
    "attention_weights" of the collection `sown`.

    Raises `ValueError` for a scheme that acts on the input or reads the features of tokens, which this place does not
    see; and in a call, for what `attend` cannot do as Flax means it: a bias, a precision, weights that shall be made by
    other functions, dropout that all sequences share, `is_causal` under another mask, and a mask for each head
    or of a cache.
    """
    scheme = scheme_of(scheme)
    hooks = _hooks(scheme)
    if hooks.overrides("embed") or hooks.contextual:
        raise ValueError(
            f"{label(hooks)} needs the input of attention, which attention_fn does not see; use an Attention of posenc."
        )
    fixed: dict[str, Any] = {"positions": positions, "segments": segments, "scale": scale, "cap": cap, "sinks": sinks}
    fixed["cap_of"] = cap_of
    own_mask = mask

    def attention(
        query: Array,
        key: Array,
        value: Array,
        *,
        mask: Any = None,
        dropout_rng: Any = None,
        dropout_rate: float = 0.0,
        broadcast_dropout: bool = True,
        deterministic: bool = True,
        dtype: Any = None,
        is_causal: bool = False,
        input_positions: Any = None,
        module: Any = None,
        **others: Any,
    ) -> Array:
        for name, passed in others.items():
            if passed is not None:
                raise ValueError(f"attention_fn cannot heed {name}, which the layer passes on; leave it out there.")
        if is_causal and not (isinstance(own_mask, str) and own_mask == "causal"):
            shown = repr(own_mask) if isinstance(own_mask, str) else f"a {type(own_mask).__name__}"
            raise ValueError(f"is_causal contradicts mask={shown}; give one of them.")
        arguments: dict[str, Any] = fixed | {"mask": own_mask}
        if input_positions is not None:
            if positions is not None:
                raise ValueError("The layer passes input_positions, and attention_fn has positions; give one of them.")
            arguments["positions"] = input_positions
        if dropout_rate and not deterministic:
            if broadcast_dropout:
                raise ValueError(
                    "Flax drops the same weights in all sequences and heads unless broadcast_dropout=False, and posenc"
                    " drops others in each; give the layer broadcast_dropout=False."
                )
            arguments |= {"dropout": dropout_rate, "dropout_key": dropout_rng}
        made = _made(hooks, params, *query.shape[-2:])
        if mask is not None:
            arguments["mask"] = _layer_mask(own_mask, mask, query, key)
        if module is not None:
            without_dropout = {name: a for name, a in arguments.items() if name not in ("dropout", "dropout_key")}
            module.sow(sown, "attention_weights", weights(scheme, made, query, key, value, **without_dropout))
        return attend(scheme, made, query, key, value, **arguments)

    return attention


def _layer_mask(own_mask: Mask, mask: Any, query: Array, key: Array) -> Mask:
    """The mask that a layer is called with, beside the one given to `attention_fn`, which it narrows."""
    (*lead, queries, heads, _), keys = query.shape, key.shape[-3]
    if queries != keys:
        raise ValueError(
            f"The layer passed a mask for {queries} queries and {keys} keys, and attention_fn cannot know where these"
            " queries stand among the keys; decode with an Attention of posenc and its cache, or leave the mask out."
        )
    if not isinstance(own_mask, str | Window):
        raise ValueError("A mask of the layer narrows 'causal', 'full' or a Window; give one mask.")
    mask, square = numbers("mask", mask), (*lead, queries, keys)
    shape, values = mask.shape, concrete(mask)
    if values is not None and not np.isin(values, (0, 1)).all():
        raise ValueError(
            "The layer passed a mask of other numbers than 0 and 1; a mask says which keys are seen, and is not added"
            " to scores: pass booleans."
        )
    if mask.ndim > 2:
        if mask.shape[-3] != 1:
            raise ValueError(
                f"The layer passed a mask of the shape {shape}, with one for each of {heads} heads; posenc.attend"
                " has one for all heads: [..., 1, Q, K]."
            )
        mask = mask[..., 0, :, :]
    if mask.ndim > len(square) or any(n not in (1, m) for n, m in zip(mask.shape[::-1], square[::-1], strict=False)):
        raise ValueError(
            f"The layer passed a mask of the shape {shape}, for {queries} queries and {keys} keys and the batch {lead};"
            " it is [..., 1, Q, K], or smaller where it is the same for all."
        )
    return own_mask, jnp.broadcast_to(mask != 0, square)


def process_heads(
    scheme: Any, params: Any = None, *, positions: Any = None, mask: Mask = "full"
) -> Callable[..., tuple[Heads, ...]]:
    """The `process_heads` of `equinox.nn.MultiheadAttention`: one sequence's heads through a scheme.

    That place stands before the product of queries and keys, so it serves schemes that change these alone, such as
    rotations and temperatures; others are refused by a `ValueError` that names what they do. `scheme` is as in
    `attention_fn`, `params` and `positions` as in `posenc.attend`. The library's own mask and scale stay in force:
    `mask` says which mask it is given, so that a scheme which is undefined under it, or a window, is refused.
    """
    scheme, seen = scheme_of(scheme), window(mask)
    hooks = _hooks(scheme)
    if (keys := normal_form(scheme).window) is not None:
        raise ValueError(f"window({keys}) narrows a mask, which is Equinox's here; give Equinox a mask of that width.")
    if (why := hooks.limits.get("bidirectional")) and not seen.causal:
        raise ValueError(
            f"{label(hooks)} is causal only: {why}; give Equinox a causal mask, and say so here with mask='causal'."
        )
    met = [f"acts on {hook!r}" for hook in left_out(hooks)] + ["reads the features of tokens"] * hooks.contextual
    met += ["gives queries and keys more features"] * any(s.precedence == "last" for s in parts(hooks))
    if met:
        raise ValueError(
            f"{label(hooks)} {met[0]}, which process_heads does not see; use posenc.equinox.Attention, or"
            " posenc.attend."
        )

    def process(query: Heads, key: Heads, value: Heads) -> tuple[Heads, ...]:
        check_arrays(query, key, value)
        if key.shape != query.shape:
            raise ValueError(f"process_heads serves self-attention; keys are {key.shape}, queries {query.shape}.")
        made = _made(hooks, params, *query.shape[-2:])
        return *rotate(scheme, made, query, key, positions, mask=mask), value

    return process


def _hooks(scheme: Any) -> Scheme:
    """The scheme whose hooks run."""
    form = normal_form(scheme)
    if form.coordinates:
        raise ValueError("This scheme has coordinates; give the scheme alone, and positions that posenc.place drew.")
    return bound(form.scheme)


def _made(hooks: Scheme, params: Any, heads: int, head: int) -> Any:
    """The parameters that were passed, or those of a scheme that learns nothing."""
    if params is not None:
        return complete(hooks, params)
    dims = Dims(heads * head, heads, head, trained=1)
    made = jax.eval_shape(lambda: init(hooks, jax.random.key(0), dims))
    if jax.tree.leaves(made):
        raise ValueError(f"{label(hooks)} has parameters; make them with posenc.init and pass them.")
    return made
