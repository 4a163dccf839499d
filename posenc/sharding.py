"""One attention over several devices, where the compiler alone would not spread the work.

Under `jax.jit`, `posenc.attend` takes arrays that a `jax.sharding.NamedSharding` cuts over batch or heads, with
`params["heads"]` cut over its first axis. It needs nothing of this file: each device does its share, and heads keep
their numbers. Along the length, whole squares of scores (`kernel="dense"`) are spread too, but tiles are not. The
compiler would gather all tokens on every device. Along one axis of the mesh, `queries` keeps whole keys on every
device, and `ring` keeps only a part of them. Other axes of the mesh, of batch or heads, stay the compiler's.

`posenc.attend` and `posenc.embed` take axes of either type, explicit as `jax.make_mesh` makes them or automatic as
those of `jax.sharding.Mesh`. Within, the compiler spreads the work. The results lie as the queries do, and the cache as
it was given. The mesh of `queries` and `ring` has `jax.sharding.AxisType.Auto`.

Inside a `jax.shard_map` of your own, leave heads to the compiler too (`axis_names` without their axis). A device that
holds some heads cannot know which they are.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, Mesh
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, PyTree

from posenc.attention import kernels
from posenc.attention.attend import attend
from posenc.attention.encode import (
    each_head,
    encode_keys,
    encode_queries,
    finish,
    first_carry,
    first_past,
    locate,
    with_neighbours,
)
from posenc.attention.kernels import Encoded, Form, Side
from posenc.attention.kernels import ring as around
from posenc.attention.kernels.form import CapOf
from posenc.attention.kernels.parting import is_sampled_distance
from posenc.attention.options import Options
from posenc.attention.shares import shares
from posenc.attention.tokens import Tokens, describe, fold_tokens, placed, ranks, sizes, zero_padding
from posenc.attention.unknown import marking, unknown
from posenc.attention.validation import array, validate
from posenc.core.compose import axes, imply, normal_form
from posenc.core.masks import Mask, since_start
from posenc.core.shapes import label


def ring(
    scheme: Any,
    params: Any,
    q: Float[Array, "*batch L H d"],
    k: Float[Array, "*batch L G d"],
    v: Float[Array, "*batch L G d"],
    *,
    mesh: Any,
    axis: str,
    x: Float[Array, "*batch L width"] | None = None,
    positions: Any = None,
    mask: Mask = "causal",
    segments: Any = None,
    scale: float | None = None,
    cap: float | None = None,
    cap_of: CapOf = "sum",
) -> Float[Array, "*batch L H d"]:
    """`posenc.attend` over a sequence longer than one device holds (Liu et al., 2023, Ring Attention).

    The tokens of q, k and v, `[..., L, H, d]`, lie along one `axis` of a `mesh` of devices, and so does what is
    returned. Each device keeps its queries; keys, values and the info of keys go round, and come by once more for the
    gradient. A device holds tiles and its own tokens; what hooks read of tokens (`x` of a contextual scheme, the
    band of a scheme of distances) is all that it may hold of the whole length. Under a causal or windowed mask a device
    passes on what its queries may not see without computing it; the first devices then wait for the last.

    >>> import jax, numpy as np, posenc
    >>> from posenc import sharding
    >>> rope, dims = posenc.parse("rope"), posenc.Dims(width=16, heads=2, head=8, trained=64)
    >>> params, q = posenc.init(rope, jax.random.key(0), dims), jax.random.normal(jax.random.key(1), (64, 2, 8))
    >>> mesh = jax.sharding.Mesh(jax.devices(), ("length",))
    >>> out = sharding.ring(rope, params, q, q, q, mesh=mesh, axis="length")
    >>> bool(np.allclose(out, posenc.attend(rope, params, q, q, q), atol=1e-5))
    True

    The numbers are those of `posenc.attend`, for every scheme that tiles serve; the arguments are as there, and
    `queries` takes sinks and dropout too. Raises `ValueError` where the axis is not of the mesh, the length no multiple
    of its devices, or the scheme reads whole rows or all heads.
    """
    count = _devices(mesh, axis, q)
    plain, q, k, v = normal_form(scheme).scheme, *(array(n, a) for n, a in zip("qkv", (q, k, v), strict=True))
    if why := kernels.serves(plain)["tiled"]:
        raise ValueError(f"{label(plain)} {why}, and a ring is made of tiles; use posenc.sharding.queries.")
    if q.shape[-3] != k.shape[-3]:
        raise ValueError(
            f"A ring holds one sequence, and {q.shape[-3]} queries and {k.shape[-3]} keys were given; use"
            " posenc.sharding.queries."
        )
    t = Tokens(q, k, v, x, None, positions, None, segments)
    form, t, _ = validate(scheme, params, t, None, Options(mask, scale, cap, cap_of=cap_of), "tiled", None)
    if form.window.sinks or any(part is not None for part in t.pairs):
        raise ValueError("A ring takes a causal, full or windowed mask without sinks; use posenc.sharding.queries.")
    if 0 in (*q.shape[:-3], q.shape[-3]):
        return jnp.zeros((*q.shape[:-1], v.shape[-1]), v.dtype)
    return jnp.concatenate([_round(*share, mesh, (axis, count)) for share in shares(form, t)], -2)


def _round(form: Form, t: Tokens, mesh: Any, ring: around.Ring) -> Float[Array, "*batch L H d"]:
    """All heads of one scheme, their keys passed round the devices of a mesh."""
    (axis, _), lead = ring, t.q.shape[:-3]
    late, t = unknown(t, 0), jax.tree.map(jnp.asarray, t)
    flat, mapped = fold_tokens(t, lead, axes(form.scheme))
    if not lead:
        flat, mapped = jax.tree.map(lambda a: a[None], flat), jax.tree.map(lambda a: 0, flat)
    params = jax.tree.map(jnp.asarray, form.params)
    located = lambda t: _located(form._replace(params=params), t)  # noqa: E731
    tokens, position, info = jax.vmap(located, (mapped,))(flat)

    def here(params, qkv, segments, position, info):
        run_part = lambda *a: _part(form._replace(params=params), ring, *a)  # noqa: E731
        return jax.vmap(run_part)(qkv, segments, position, info)

    cut, each = P(None, axis), each_head(form.scheme, params[1])
    spec = jax.tree.map(lambda a: P() if is_sampled_distance(a) else cut, position, is_leaf=is_sampled_distance)
    specs = P(), cut, cut, spec, P(None, None, axis) if each else cut
    spread = jax.shard_map(here, mesh=mesh, in_specs=specs, out_specs=cut, axis_names={axis}, check_vma=False)
    out = jax.jit(spread)(params, (tokens.q, tokens.k, tokens.v), tokens.segments, position, info)
    out = jax.vmap(marking(lambda t, out: out, late), (mapped, 0))(flat, out)
    return out.reshape(*lead, *out.shape[-3:])


def queries(
    scheme: Any,
    params: Any,
    q: Float[Array, "*batch Q H d"],
    k: Float[Array, "*batch K G d"],
    v: Float[Array, "*batch K G d"],
    *,
    mesh: Any,
    axis: str,
    x: Float[Array, "*batch Q width"] | None = None,
    key_x: Float[Array, "*batch K width"] | None = None,
    positions: Any = None,
    key_positions: Any = None,
    query_start: Any = None,
    mask: Mask = "causal",
    segments: Any = None,
    key_segments: Any = None,
    kernel: str = "auto",
    scale: float | None = None,
    cap: float | None = None,
    sinks: Float[Array, " H"] | None = None,
    dropout: float = 0.0,
    dropout_key: Any = None,
    cap_of: CapOf = "sum",
) -> Float[Array, "*batch Q H d"]:
    """`posenc.attend` with queries along one `axis` of a `mesh` of devices, and whole keys on every device.

    For every scheme and kernel. The arguments are those of `posenc.attend`, and so are the numbers. Raises
    `ValueError` where the axis is not of the mesh, or the number of queries no multiple of its devices.
    """
    count = _devices(mesh, axis, q)
    q, k, v = (array(n, a) for n, a in zip("qkv", (q, k, v), strict=True))
    t = Tokens(q, k, v, x, key_x, positions, key_positions, segments, key_segments)
    options = Options(mask, scale, cap, sinks, dropout, dropout_key, cap_of)
    form, t, start = validate(scheme, params, t, query_start, options, kernel, None)
    if form.self_attention:
        t = t._replace(key_x=t.x, key_positions=t.positions, key_segments=t.segments)
    if t.positions is None and t.segments is not None:
        t = t._replace(
            **{
                side + "positions": _implied_positions(form.scheme, getattr(t, side + "segments"))
                for side in ("", "key_")
            }
        )
    rows = q.shape[-3] // count

    def here(params, sinks, start, t):
        arguments = {name: getattr(t, name) for name in Tokens._fields[3:-1]}
        arguments |= options._replace(mask=mask if t.pairs.allowed is None else t.pairs.allowed, sinks=sinks)._asdict()
        start = start + jax.lax.axis_index(axis) * rows
        return attend(scheme, params, t.q, t.k, t.v, query_start=start, kernel=kernel, **arguments)

    lead = len(q.shape[:-3])
    spec = jax.tree.map(lambda a: P(), t)
    cut = lambda a, n: jax.tree.map(lambda a: P(*[None] * (a.ndim - n), axis), a)  # noqa: E731
    spec = spec._replace(q=cut(t.q, 3), x=cut(t.x, 2), segments=cut(t.segments, 1))
    spec = spec._replace(pairs=spec.pairs._replace(allowed=cut(t.pairs.allowed, 2)))
    deep = ranks(axes(form.scheme))
    spec = spec._replace(positions=_along(t.positions, deep, axis))
    spread = jax.shard_map(here, mesh=mesh, in_specs=(P(), P(), P(), spec), out_specs=P(*[None] * lead, axis),
                           axis_names={axis}, check_vma=False)  # fmt: skip
    return jax.jit(spread)(params, form.sinks, jnp.asarray(start, jnp.int32), jax.tree.map(jnp.asarray, t))


def _implied_positions(scheme: Any, segments: Array) -> Any:
    """The positions that segments imply."""
    index = jnp.broadcast_to(jnp.arange(segments.shape[-1], dtype=jnp.int32), segments.shape)
    return imply(scheme, since_start(index, jnp.asarray(segments)))


def _along(positions: Any, deep: Any, axis: str) -> Any:
    """Return the layout of the tokens of positions, for each part of a sum; `deep` is how many axes one sequence's
    have."""
    if positions is None:
        return None
    if isinstance(positions, tuple):
        return tuple(_along(a, n, axis) for a, n in zip(positions, deep, strict=True))
    return P(*[None] * (positions.ndim - jax.tree.leaves(deep)[0]), axis)


def _located(form: Form, t: Tokens) -> tuple[Tokens, PyTree, PyTree]:
    """Return one whole sequence: its tokens without padding, their positions, which have no place, and their info."""
    t = zero_padding(t._replace(key_segments=t.segments))
    index = jnp.arange(t.q.shape[0], dtype=jnp.int32)
    at = describe(form.scheme, index, t.segments, t.positions, jnp.zeros_like(index), t.q.shape[1])
    at, unplaced = placed(at, form.unplaced)
    side = Side(at.position, index, t.segments, None, unplaced)
    count = kernels.count_visible(form.window, side, side, kernels.block(index.size, index.size), kernels.Pairs())
    at = at._replace(visible=count)
    info, _ = locate(form.scheme, form.params, t.x, at, first_carry(form.scheme, form.params, sizes(t)))
    t, _ = with_neighbours(form.scheme, form.params, t, at, first_past(form.scheme, t))
    return t, (at.position, unplaced), info


def _part(form: Form, ring: around.Ring, qkv, segments, position, info) -> Array:
    """One sequence's tokens on this device, and the keys of all."""
    (q, k, v), scheme, params = qkv, form.scheme, form.params
    index = jax.lax.axis_index(ring[0]) * q.shape[0] + jnp.arange(q.shape[0], dtype=jnp.int32)
    side = Side(position[0], index, segments, None, position[1])
    keys = encode_keys(scheme, params, k, v, info, q.shape[1])
    encoded = Encoded(*encode_queries(scheme, params, q, info), *keys, side, side)
    mixed = around.mix(form, encoded, kernels.block(q.shape[0], q.shape[0]), ring)
    return finish(scheme, params, mixed, info)


def _devices(mesh: Any, axis: str, q: Any) -> int:
    """How many devices share the length, which they divide."""
    if not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(f"mesh is of type {type(mesh).__name__}; make it with jax.sharding.Mesh(devices, names).")
    if set(mesh.axis_types) - {AxisType.Auto}:
        raise ValueError(
            f"The axes {', '.join(map(repr, mesh.shape))} of this mesh are not all the compiler's; make it with"
            " axis_types=(jax.sharding.AxisType.Auto,) for each."
        )
    if axis not in mesh.shape:
        raise ValueError(f"axis is {axis!r}; the axes of this mesh are {', '.join(map(repr, mesh.shape))}.")
    count, length = mesh.shape[axis], jnp.shape(q)[-3] if jnp.ndim(q) > 2 else 0
    if length % count:
        raise ValueError(
            f"{length} queries do not divide among the {count} devices of {axis!r}; pad them to a multiple, with"
            " segments of 0."
        )
    return count
