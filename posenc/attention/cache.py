"""The cache of decoding: encoded keys, and what `locate` carries on, so that decoding equals the full forward.

It counts slots (where to write, what the mask compares), never positions. A ring uses its slots again, and so keeps
the index of the token in each.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jaxtyping import Array, Float, Int, Num, PyTree

from posenc.attention import kernels
from posenc.attention.encode import (
    Keys,
    encode_keys,
    encode_queries,
    first_carry,
    locate,
    lookup,
    paired,
    with_neighbours,
)
from posenc.attention.kernels import Encoded, Form, Side
from posenc.attention.shares import of_share, sizes
from posenc.attention.tokens import Tokens, began, describe, placed, zero_padding
from posenc.core.compose import Chain, Shares, imply, normal_form, pick, spread
from posenc.core.masks import Window, as_integer, documents, since_start
from posenc.core.parameters import bound, complete
from posenc.core.scheme import At, Dims, Scheme, check_dims
from posenc.core.shapes import KnownSizes, check_params, label
from posenc.language.echo import echoed
from posenc.numerics.sizes import FAR, check_memory


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Written:
    """The scheme by which the keys of a cache were encoded; no array, so that it is known inside `jit` too."""

    name: str
    settings: str

    @classmethod
    def by(cls, scheme: Scheme) -> Written:
        """Return what a cache keeps of its scheme."""
        return cls(label(scheme), repr(scheme))


class Cache(NamedTuple):
    """Keys and values of one layer, `capacity` slots for each sequence of the batch. `G` is the number of key heads,
    or of query heads where a scheme makes keys differ per query head. Where heads are shared among schemes, `k`, `v`,
    `key_info`, `carry` and `past` are tuples, with an entry for each share."""

    k: Float[Array, "B G C e"]
    v: Float[Array, "B G C d"]
    key_info: PyTree
    """The info of each key that `score` reads."""
    position: PyTree[Num[Array, "B C"]]
    segment: Int[Array, "B C"]
    carry: PyTree
    """The carry of `locate`."""
    past: PyTree
    """The carry of `neighbours`."""
    document: Int[Array, " B"]
    """The document of the last token, padding left out; 0 before the first."""
    began: Int[Array, " B"]
    """The index at which that document began. Its first token may be overwritten, so this is kept."""
    length: Int[Array, ""]
    """The index of the next token, and its slot where there is no ring."""
    index: Int[Array, " C"] | None
    """The index of the token in each slot of a ring; None where slots are never used again."""
    written: Written
    """No other scheme goes on with it."""

    def flatten(self) -> dict[str, Array]:
        """Its arrays by name, for files and for frameworks that keep named arrays: "k", "key_info.0", "length" …"""
        named = jax.tree_util.tree_leaves_with_path(self)
        return {jax.tree_util.keystr(path, simple=True, separator="."): a for path, a in named}

    def unflatten(self, arrays: Mapping[str, Any]) -> Cache:
        """A cache of the form of this one, such as an empty one, that holds the arrays that `flatten` gave.

        Raises `ValueError` where a name is missing or unknown, and where a shape or a type is another.
        """
        ours = self.flatten()
        if odd := sorted(ours.keys() ^ arrays.keys()):
            raise ValueError(f"The arrays of a cache are {', '.join(ours)}; {odd[0]!r} is in one of the two alone.")
        for name, a in ours.items():
            other = arrays[name]
            if (np.shape(other), jnp.result_type(other)) != (a.shape, a.dtype):
                raise ValueError(
                    f"{name!r} is {jnp.result_type(other)} of the shape {np.shape(other)}, and this cache has {a.dtype}"
                    f" of {a.shape}; make it with posenc.Cache.empty of the same sizes."
                )
        leaves = [jnp.asarray(arrays[name]) for name in ours]
        return jax.tree.unflatten(jax.tree.structure(self), leaves)

    @classmethod
    def empty(
        cls,
        scheme: Any,
        params: Any,
        dims: Dims,
        *,
        batch: int,
        capacity: int,
        dtype: Any = jnp.float32,
        positions: Any = jnp.int32,
        ring: bool = False,
    ) -> Cache:
        """A cache with nothing in it: `batch` sequences of at most `capacity` tokens.

        `dtype` is that of the queries, keys and values to come, and `positions` that of their positions, of 32 bits or
        more; it holds the index where a call passes no positions. A tuple has a type for each scheme of a sum. `params`
        are one layer's, whole. Where info of keys becomes stale as the text grows (the limit "reencoded"), keys are
        stored as they are given, and a call gives what the whole text so far gives its last tokens.

        With `ring`, token n is written to slot n mod `capacity`, for as long as decoding goes on; that serves
        attention in a window only: with `left` neighbours seen before a token, `capacity` is at least `left` and the
        new tokens of a call.

        Raises `ValueError` where the sizes do not fit or are not causal, for a scheme that no cache serves
        (the limit "cache"), and for a ring where a scheme reads whole rows or encodes the whole text again; `TypeError`
        for a type that does not serve as `dtype` or `positions`, and for a `ring` that is neither True nor False.
        """
        form = normal_form(scheme)
        scheme = bound(form.scheme)
        params = complete(scheme, params)
        check_dims(dims)
        check_params(scheme, params, KnownSizes(dims.width, dims.heads, dims.head, dims.key_heads))
        dtype, positions = _kind("dtype", dtype, jnp.floating), _position_types(scheme, positions)
        if why := scheme.limits.get("cache"):
            raise ValueError(f"{label(scheme)} has no cache: {why}; run the whole sequence at each step.")
        if not dims.causal:
            raise ValueError("A cache serves decoding, where tokens see what came before them; make dims causal=True.")
        for name, value in (("batch", batch), ("capacity", capacity)):
            if (count := as_integer(value)) is None or count < 1:
                raise ValueError(f"{name} is {echoed(value)}; it is a whole number of at least 1.")
            if count >= FAR:
                raise ValueError(f"{name} is {echoed(count)}; it is below {FAR}.")
        if not isinstance(ring, bool | np.bool_):
            raise TypeError(f"ring is {ring!r}; it is True or False.")
        if ring:
            window = Window(0, 0) if form.window is None else form.narrow(Window(None, 0))
            check_ring(scheme, window, int(capacity), 1)
        parts = pick(params, "layer"), pick(params, "heads")
        scheme.check_positions(parts[0], _implied(scheme, np.zeros(1), positions))
        cuts = sizes(scheme, dims)
        shares = [(cut.scheme, of_share_parts(scheme, cut, parts), size) for cut, size in cuts]
        types = [of_share(scheme, cut, positions) for cut, _ in cuts]
        shapes = [stored_shapes(*share, capacity, dtype, kinds)[:2] for share, kinds in zip(shares, types, strict=True)]
        check_memory(f"{batch} sequences of {capacity} slots", shapes, "batch or capacity", copies=batch)
        zeros = lambda a: jnp.zeros((batch, *a.shape), a.dtype)  # noqa: E731

        def empty_share(share: Any, stored: Any) -> Cache:
            own, own_parts, size = share
            carried = first_carry(own, own_parts, size), own.neighbour_carry(size)
            first, past = jax.tree.map(lambda a: jnp.broadcast_to(a, (batch, *jnp.shape(a))), carried)
            (k, v, key_info), position = jax.tree.map(zeros, stored)
            return cls(
                k,
                v,
                key_info,
                position,
                zeros(jnp.zeros(capacity, jnp.int32)),
                first,
                past,
                jnp.zeros(batch, jnp.int32),
                jnp.zeros(batch, jnp.int32),
                jnp.int32(0),
                jnp.zeros(capacity, jnp.int32) if ring else None,
                Written.by(scheme),
            )

        return joined(scheme, [empty_share(*pair) for pair in zip(shares, shapes, strict=True)])


# `jax.export` writes the structure of arguments into its files
export.register_namedtuple_serialization(Cache, serialized_name="posenc.Cache")
export.register_pytree_node_serialization(
    Written,
    serialized_name="posenc.Written",
    serialize_auxdata=lambda written: json.dumps(dataclasses.astuple(written)).encode(),
    deserialize_auxdata=lambda data: Written(*json.loads(data)),
    from_children=lambda aux_data, children: aux_data,
)

AXES = cast(Any, Cache)(0, 0, 0, 0, 0, 0, 0, document=0, began=0, length=None, index=None, written=None)
"""The axis of the batch in each field, for `jax.vmap`; all sequences share `length` and `index`."""


OF_SHARE = ("k", "v", "key_info", "carry", "past")
"""The fields that hold an entry for each share of the heads, where there are several."""


def parted(scheme: Scheme, cache: Cache) -> list[Cache]:
    """The cache of each share of the heads; the cache itself where all heads have one scheme."""
    if not isinstance(scheme, Shares):
        return [cache]
    each = []
    for n, cut in enumerate(scheme.cuts(sum(scheme.counts), sum(scheme.counts))):
        own: dict[str, Any] = {name: getattr(cache, name)[n] for name in OF_SHARE}
        each.append(cache._replace(position=cut.of_parts(cache.position), **own))
    return each


def joined(scheme: Scheme, caches: list[Cache]) -> Cache:
    """The cache of all heads from those of each share."""
    if not isinstance(scheme, Shares):
        return caches[0]
    own: dict[str, Any] = {name: tuple(getattr(cache, name) for cache in caches) for name in OF_SHARE}
    position = tuple(a for cache, s in zip(caches, scheme.each, strict=True) for a in _each(s, cache.position))
    return caches[0]._replace(position=position, **own)


def _each(scheme: Scheme, position: Any) -> tuple[Any, ...]:
    """The positions of each plain scheme of a share."""
    return position if isinstance(scheme, Chain) else (position,)


def of_share_parts(scheme: Scheme, cut: Any, parts: Any) -> Any:
    """The parameters of a share, those that its heads have in common and those of each."""
    return of_share(scheme, cut, parts[0]), of_share(scheme, cut, parts[1])


def _kind(name: str, dtype: Any, kind: Any) -> Any:
    """The type that jax keeps of `dtype`, if it is of this kind."""
    try:
        canonical = None if dtype is None else jax.dtypes.canonicalize_dtype(dtype)
    except TypeError:
        canonical = None
    wrong = canonical is None or not jnp.issubdtype(canonical, kind) or jnp.issubdtype(canonical, jnp.complexfloating)
    if canonical is None or wrong or canonical.itemsize < (2 if kind is jnp.floating else 4) or canonical.kind == "u":
        floating = "a floating type of 16 bits or more, such as jnp.float32"
        least = floating if kind is jnp.floating else "jnp.int32 or a floating type of 32 bits or more"
        raise TypeError(f"{name} is {dtype!r}; it is {least}.")
    return canonical


def _position_types(scheme: Scheme, positions: Any) -> Any:
    """The type of positions; of several schemes, that of each."""
    each = spread(scheme, positions)
    types = tuple(_kind("positions", kind, jnp.number) for kind in (each if isinstance(each, tuple) else (each,)))
    return types if isinstance(each, tuple) else types[0]


def _implied(scheme: Scheme, index: Any, types: Any) -> Any:
    """The index as positions of these types."""
    return jax.tree.map(lambda a, kind: a.astype(kind), imply(scheme, index), spread(scheme, types))


def stored_shapes(scheme: Scheme, parts: Any, dims: Dims, capacity: int, dtype: Any, positions: Any) -> Any:
    """The shapes and types of what one sequence of `capacity` tokens stores, wherever its parameters lie."""
    shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a), a.dtype), parts)
    return jax.eval_shape(lambda parts: _blank(scheme, parts, dims, capacity, dtype, positions), shapes)


def _blank(scheme: Scheme, parts: Any, dims: Dims, capacity: int, dtype: Any, positions: Any) -> Any:
    """Return what one sequence of `capacity` tokens would store."""
    none = jnp.zeros(capacity, jnp.int32)
    position = _implied(scheme, none, positions)
    at = At(position, none, none, none, jnp.int32(0), dims.heads)
    x = jnp.zeros((capacity, dims.width), dtype)
    info, carry = locate(scheme, parts, x, at, first_carry(scheme, parts, dims))
    k = jnp.zeros((capacity, dims.key_heads or dims.heads, dims.head), dtype)
    return keep(scheme, parts, k, k, info, dims.heads), position, (carry, scheme.neighbour_carry(dims))


def keep(scheme: Scheme, parts: Any, k: Array, v: Array, info: PyTree, heads: int) -> Keys:
    """Return what is stored of new keys: encoded ones, or plain ones if they are encoded again in each call."""
    if "reencoded" in scheme.limits:
        return Keys(k.swapaxes(0, 1), v.swapaxes(0, 1), ())
    return encode_keys(scheme, parts, k, v, info, heads)


def check_ring(scheme: Scheme, window: Window, capacity: int, new: int) -> None:
    """Refuse a ring where a query would still need a key that was overwritten."""
    if scheme.reads in ("row", "heads"):
        raise ValueError(
            f"{label(scheme)} reads whole rows of scores, all keys in the order of their indices, and a ring overwrites"
            " them; leave ring out."
        )
    if why := scheme.limits.get("reencoded"):
        raise ValueError(
            f"{label(scheme)} encodes the whole text again in each call, since {why}, and a ring"
            " overwrites its beginning; leave ring out."
        )
    if window.of_positions:
        raise ValueError(
            "A ring overwrites old tokens by their index, and this window keeps keys by their positions; leave ring"
            " out."
        )
    if window.sinks:
        raise ValueError(
            f"A ring overwrites the first tokens, of which this window keeps {window.sinks} in view; leave ring out."
        )
    if window.left is None:
        raise ValueError(
            "A ring overwrites what no query needs any more, and under this mask each needs all before it; use"
            " mask=posenc.Window(left, 0), a scheme with window(n), or a cache without ring."
        )
    if window.left + new > capacity:
        raise ValueError(
            f"A ring of {capacity} slots was given {new} new tokens that see {window.left} before them, which takes"
            f" {window.left + new}; pass fewer tokens at a time, or make it larger."
        )


def free(cache: Cache, new: int) -> Int[Array, " new"]:
    """The slots that new tokens of one sequence are written to."""
    slots = cache.length + jnp.arange(new, dtype=jnp.int32)
    return slots if cache.index is None else slots % cache.segment.size


def write(stored: PyTree, new: PyTree, slots: Int[Array, " new"], axis: int) -> PyTree:
    """Write new entries to their slots. An entry that does not fit is dropped; `attend` then returns NaN."""

    def put(old, new):
        return old.at[(slice(None),) * axis + (slots,)].set(new.astype(old.dtype), mode="drop")

    return jax.tree.map(put, stored, new)


def last(cache: Cache, index: Int[Array, " new"], segment: Int[Array, " new"]) -> tuple[Array, Array]:
    """The document of the last of one sequence's new tokens, padding left out, and the index at which it began."""
    since = since_start(index, segment, cache.document, cache.began)
    now = documents(jnp.concatenate([cache.document[None], segment.astype(cache.document.dtype)]))[-1]
    return now, (index - since)[-1].astype(cache.began.dtype)


def extend(form: Form, t: Tokens, cache: Cache) -> tuple[Encoded, PyTree, Cache]:
    """One sequence's new tokens and all keys so far, ready for a kernel; the info of its queries, and the new cache."""
    scheme, params, (new, heads, _), length = form.scheme, form.params, t.q.shape, cache.length
    segments = jnp.ones(new, jnp.int32) if t.segments is None else t.segments
    t = zero_padding(t._replace(segments=segments, key_segments=segments))
    capacity = cache.segment.shape[0]
    qi, slots = length + jnp.arange(new, dtype=jnp.int32), free(cache, new)
    index = None if cache.index is None else write(cache.index, qi, slots, 0)
    ki = jnp.arange(capacity, dtype=jnp.int32) if index is None else index
    segment = write(cache.segment, t.segments, slots, 0)
    rows = kernels.block(new, capacity)
    first_index = began(form.counts(t.pairs), qi, t.segments, cache.document, cache.began)
    at = describe(scheme, qi, t.segments, t.positions, jnp.zeros_like(qi), heads, cache.document, cache.began)
    at = at._replace(position=jax.tree.map(lambda a, held: a.astype(held.dtype), at.position, cache.position))
    position = write(cache.position, at.position, slots, 0)
    at, unplaced = placed(at, form.unplaced)
    held, held_unplaced = placed(At(position, ki, segment, ki, jnp.int32(0), heads), form.unplaced)
    query = Side(at.position, qi, t.segments, first_index, unplaced)
    key = Side(held.position, ki, segment, None, held_unplaced)
    at = at._replace(visible=kernels.count_visible(form.window, query, key, rows, t.pairs))
    info, carry = locate(scheme, params, t.x, at, cache.carry)
    t, past = with_neighbours(scheme, params, t, at, cache.past)
    stored = keep(scheme, params, t.k, t.v, info, heads)
    keys = stored = Keys(*write((cache.k, cache.v, cache.key_info), tuple(stored), slots, 1))
    if "reencoded" in scheme.limits:
        info, keys = _reencoded(form, info, stored, query, key, carry)
    encoded = paired(scheme, Encoded(*encode_queries(scheme, params, t.q, info), *keys, query, key, t.pairs))
    document = last(cache, qi, t.segments)
    longer = Cache(*stored, position, segment, carry, past, *document, length + new, index, cache.written)
    return encoded, info, longer


def _reencoded(form: Form, info: Any, stored: Keys, query: Side, key: Side, carry: Any) -> tuple[Any, Keys]:
    """The info of queries, and all keys through their hooks, now that the text is longer."""
    scheme, params = form.scheme, form.params
    assert key.segment is not None
    at = At(key.position, key.index, key.segment, jnp.zeros_like(key.index), jnp.int32(0), form.heads)
    key_info, _ = locate(scheme, params, None, at, carry)
    k, v = stored.k.swapaxes(0, 1), stored.v.swapaxes(0, 1)
    info = lookup(scheme, params, info, key_info, query.index)
    return info, encode_keys(scheme, params, k, v, key_info, form.heads)
