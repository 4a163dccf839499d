"""Before and after the kernel: the hooks that see tokens alone, and not pairs of them.

    encode:  neighbours and locate, then query, key and value, once for each token and head
    kernel:  score, normalize, value_bias
    finish:  output

Keys of grouped queries stay few unless a scheme makes them differ per query head; then they are repeated before the
hook. `params` are a pair: the parameters that all heads share, and those of each head.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from posenc.attention import kernels
from posenc.attention.kernels import Encoded, Form, Side
from posenc.attention.tokens import Tokens, began, describe, placed, sizes, zero_padding
from posenc.core.compose import Chain, merge
from posenc.core.scheme import At, Role, Scheme
from posenc.core.shapes import label


class Keys(NamedTuple):
    """The keys of one sequence after their hooks, heads first, as a cache stores them."""

    k: Float[Array, "G K e"]
    v: Float[Array, "G K d"]
    info: PyTree


def encode(form: Form, t: Tokens, start: Array) -> tuple[Encoded, PyTree]:
    """One whole sequence, ready for a kernel, and what `locate` says of its queries, for `finish`."""
    scheme, params, (queries, heads, _) = form.scheme, form.params, t.q.shape
    t = zero_padding(t._replace(key_segments=t.segments) if form.self_attention else t)
    qi, ki = start + jnp.arange(queries, dtype=jnp.int32), jnp.arange(t.k.shape[0], dtype=jnp.int32)
    rows, first = kernels.block(queries, ki.size), first_carry(scheme, params, sizes(t))
    first_index = began(form.counts(t.pairs), qi, t.segments)
    at = describe(scheme, qi, t.segments, t.positions, jnp.zeros_like(qi), heads)
    at, unplaced = placed(at, form.unplaced)
    key_at, keys_unplaced = at, unplaced
    if not form.self_attention:
        key_at = describe(scheme, ki, t.key_segments, t.key_positions, jnp.zeros_like(ki), heads)
        key_at, keys_unplaced = placed(key_at, form.unplaced)
    query = Side(at.position, qi, t.segments, first_index, unplaced)
    sides = query, Side(key_at.position, ki, t.key_segments, None, keys_unplaced)
    at = at._replace(visible=kernels.count_visible(form.window, *sides, rows, t.pairs))
    info, _ = locate(scheme, params, t.x, at, first)
    key_info = info
    if form.self_attention:
        key_at = at
    else:
        key_info, _ = locate(scheme, params, t.key_x, key_at, first)
        info = lookup(scheme, params, info, key_info, qi)
    t, _ = with_neighbours(scheme, params, t, key_at, first_past(scheme, t))
    keys = encode_keys(scheme, params, t.k, t.v, key_info, heads)
    return paired(scheme, Encoded(*encode_queries(scheme, params, t.q, info), *keys, *sides, t.pairs)), info


def paired(scheme: Scheme, encoded: Encoded) -> Encoded:
    """Return the encoded tokens, or refuse queries and keys with different numbers of features."""
    q, k = encoded.q.shape[-1], encoded.k.shape[-1]
    if q != k:
        raise ValueError(
            f"The hooks 'query' and 'key' of {label(scheme)} return {q} and {k} features; they must return as many."
        )
    return encoded


def first_past(scheme: Scheme, t: Tokens) -> dict[Role, PyTree]:
    """Return the carry of `neighbours` before the first token; values may be wider than keys."""
    dims = sizes(t)
    past = scheme.neighbour_carry(dims)
    if "value" in past:
        past["value"] = scheme.neighbour_carry(dataclasses.replace(dims, head=t.v.shape[-1]))["value"]
    return past


def with_neighbours(scheme: Scheme, params: tuple[Any, Any], t: Tokens, at: At, past: PyTree) -> tuple[Tokens, PyTree]:
    """The tokens whose queries, keys and values were changed by those before them, and what is carried on."""
    roles: dict[Role, Any] = {"query": t.q, "key": t.k, "value": t.v}
    done = dict(past)
    for role, before in past.items():
        roles[role], done[role] = scheme.neighbours(params[0], role, roles[role], at, before)
    return t._replace(q=roles["query"], k=roles["key"], v=roles["value"]), done


def each_head(scheme: Scheme, head_params: PyTree) -> bool:
    """Tell whether keys differ from query head to query head."""
    return bool(jax.tree.leaves(head_params)) and (scheme.contextual or scheme.overrides("key", "value"))


def locate(scheme: Scheme, params: tuple[Any, Any], x: Any, at: At, carry: PyTree) -> tuple[PyTree, PyTree]:
    """The info of each token, and the carry for the tokens to come; per head where keys are."""
    layer, head_params = params
    if not each_head(scheme, head_params):
        return scheme.locate(layer, x, at, carry)

    def locate_head(own, head, carry):
        return scheme.locate(merge(layer, own), x, at._replace(head=head), carry)

    return jax.vmap(locate_head)(head_params, jnp.arange(at.heads), carry)


def first_carry(scheme: Scheme, params: tuple[Any, Any], dims: Any) -> PyTree:
    """The carry before the first token, of the shape that `locate` takes."""
    carry = scheme.carry(dims)
    if not each_head(scheme, params[1]):
        return carry
    return jax.tree.map(lambda a: jnp.broadcast_to(a, (dims.heads, *jnp.shape(a))), carry)


def lookup(scheme: Scheme, params: tuple[Any, Any], info: PyTree, key_info: PyTree, rows: Array) -> PyTree:
    """The info of queries where they are rows of a longer sequence of keys."""
    lookup_head = lambda info, key_info: scheme.lookup(info, key_info, rows)  # noqa: E731
    return jax.vmap(lookup_head)(info, key_info) if each_head(scheme, params[1]) else lookup_head(info, key_info)


def encode_keys(
    scheme: Scheme, params: tuple[Any, Any], k: Float[Array, "K G d"], v: Any, info: PyTree, heads: int
) -> Keys:
    """Every key and value once, through its hooks."""
    layer, head_params = params
    k, v = k.swapaxes(0, 1), v.swapaxes(0, 1)

    def encode_head(p, k, v, info):
        k, key_info, v = scheme.pair(p, k, v, info)
        return Keys(k, v, key_info)

    if not each_head(scheme, head_params):
        return jax.vmap(lambda k, v: encode_head(layer, k, v, info))(k, v)
    k, v = (jnp.repeat(a, heads // k.shape[0], 0) for a in (k, v))
    return jax.vmap(lambda own, k, v, info: encode_head(merge(layer, own), k, v, info))(head_params, k, v, info)


def encode_queries(
    scheme: Scheme, params: tuple[Any, Any], q: Float[Array, "Q H d"], info: PyTree
) -> tuple[Float[Array, "H Q e"], PyTree]:
    """Every query of every head once, through its hook, and what `score` reads of it, heads first.

    Info that is equal for all heads is stored once, with a head axis of size 1: a scheme whose score works on positions
    alone is then computed once and not once for each head.
    """
    layer, head_params = params
    apart = each_head(scheme, head_params)
    query_head = lambda own, q, info: scheme.query(merge(layer, own), q, info)  # noqa: E731
    q, made = jax.vmap(query_head, (0, 0, 0 if apart else None))(head_params, q.swapaxes(0, 1), info)
    return q, _query_info(scheme, made, info if apart else jax.tree.map(lambda a: a[None], info))


def _query_info(scheme: Scheme, made: PyTree, located: PyTree) -> PyTree:
    """Return the info that `query` made, or the info itself if `query` passes it on; nothing if no hook reads it."""
    if isinstance(scheme, Chain):
        return tuple(_query_info(*part) for part in zip(scheme.parts, made, located, strict=True))
    if not scheme.overrides("score", "normalize", "value_bias"):
        return ()
    return made if scheme.overrides("query") and not scheme.passes_info else located


def finish(scheme: Scheme, params: tuple[Any, Any], o: Float[Array, "Q H d"], info: PyTree) -> Float[Array, "Q H d"]:
    """Return what each query receives: the mixed values through the output hook."""
    if not scheme.overrides("output"):
        return o
    layer, head_params = params
    output_head = lambda own, o, info: scheme.output(merge(layer, own), o, info)  # noqa: E731
    return jax.vmap(output_head, (0, 1, 0 if each_head(scheme, head_params) else None), 1)(head_params, o, info)
