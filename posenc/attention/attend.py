"""One attention, under any scheme and by any kernel, and the input.

Three things are known of each token and never confused: its *index* (where it stands in the sequence; masks and windows
read this alone), its *segment* (its document; 0 is padding) and its *position* (what the scheme computes with).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, PyTree

from posenc.attention import kernels
from posenc.attention.cache import AXES, Cache, extend, joined, parted
from posenc.attention.encode import encode, finish
from posenc.attention.kernels import Form, dense
from posenc.attention.kernels.form import CapOf
from posenc.attention.options import Options
from posenc.attention.shares import beside, shares
from posenc.attention.tokens import Tokens, describe, fold, fold_tokens, numbered, placed, ranks
from posenc.attention.unknown import Unknown, faulty, marked, marking, returned, uncounted, unknown
from posenc.attention.validation import array, check_sequences, validate
from posenc.core.compose import axes, normal_form, pick
from posenc.core.masks import Mask
from posenc.core.parameters import bound, complete
from posenc.core.shapes import KnownSizes, check_params


def attend(
    scheme: Any,
    params: Any,
    q: Float[Array, "*batch Q H d"],
    k: Float[Array, "*batch K G d"],
    v: Float[Array, "*batch K G d"],
    *,
    x: Float[Array, "*batch Q width"] | None = None,
    key_x: Float[Array, "*batch K width"] | None = None,
    positions: Any = None,
    key_positions: Any = None,
    query_start: Any = None,
    mask: Mask = "causal",
    segments: Any = None,
    key_segments: Any = None,
    kernel: str = "auto",
    cache: Cache | None = None,
    scale: float | None = None,
    cap: float | None = None,
    sinks: Float[Array, " H"] | None = None,
    dropout: float = 0.0,
    dropout_key: Any = None,
    cap_of: CapOf = "sum",
) -> Any:
    """Attention under a scheme: softmax(score(q kᵀ · scale)) v, every hook in its place (Vaswani et al., 2017, §3.2).

    `q` is `[..., Q, H, d]`, `k` and `v` are `[..., K, G, d]`, of one floating type; `G` divides `H`. Returns
    `[..., Q, H, d]`; with a `cache`, that and the cache with the new tokens in it. A query that sees nothing receives
    zeros. `params` are what `posenc.init` gives for one layer; groups without arrays may be missing, so `None` serves a
    scheme that learns nothing.

    `x` and `key_x` are the features `[..., L, width]` of queries and keys, for schemes that read them. `positions` is
    `[L]` or `[..., L]`, a tuple of such for a sum, or None: the index counted from where the token's document began;
    `posenc.place` may give drawn distances in their place.
    `segments` likewise are whole numbers: a document's, above 0 and in one piece, and 0 for padding, which nobody sees;
    or booleans, True where no padding is, for sequences of one document, which is number 1.
    Padding does not end a document and advances the position; pass `positions` to avoid that. The keys' own default to
    the queries' where lengths agree.

    `mask` is "causal", "full", a `posenc.Window` or a `posenc.Prefix`, which compare indices and count padding too, or
    an array of booleans `[..., Q, K]`, which tiles do not take. `("causal", array)` is both, as are "full" or a window
    and an array; an array alone is narrowed to "causal" under a scheme that is causal only. `query_start` is the index
    of the first query among the keys, 0 unless given: where fewer queries than keys are the last of them, the causal
    mask needs it. A scheme that is undefined between two sequences (its limit "cross") takes different lengths only
    with it. A `cache` is what `posenc.Cache.empty` gives, and q, k, v and `x` are then the new tokens.

    `kernel` says how: "dense" makes all scores of a sequence at once, for any scheme; "tiled" makes them tile by tile,
    in memory that grows with the length and not its square, and refuses schemes that read whole rows or all heads;
    "rows" makes a block of queries at a time, for any scheme. "auto" is dense while scores are few; on a processor,
    from about 256 tokens on, it takes sequences and heads by a few, in less time and memory. Through tiles there is one
    gradient by `jax.grad` or `jax.vjp`, and `jax.hessian` goes forward over it. A gradient of a gradient, `jax.jvp` and
    `jax.jacfwd` end in jax's own messages about a while loop or a custom_vjp function, as "auto" may choose tiles for
    long texts: ask for "dense" or "rows" there.

    `scale` is the factor of q·k in place of the scheme's, 1/√d for most. `cap` bounds what the scheme's `score` gives,
    s → cap · tanh(s / cap) (Gemma 2), or with `cap_of="score"` q·k · scale before that `score` (ONNX, whose bias is
    not bounded). `sinks` is a score for each head of one more key, without a value (GPT-OSS). `dropout` is the share of
    weights that are dropped by `dropout_key`, the same ones under every kernel.

    Raises `ValueError` or `TypeError` where arguments do not fit. Inside `jit`, where values are unknown, positions
    that a scheme cannot serve or whose differences do not fit, documents that come again or are below 0, a cache that
    is full and a prefix that is not whole in its cache give NaN. So does a document that comes again in a cache.
    """
    options = Options(mask, scale, cap, sinks, dropout, dropout_key, cap_of)
    q, k, v = (array(name, a) for name, a in zip("qkv", (q, k, v), strict=True))
    t = Tokens(q, k, v, x, key_x, positions, key_positions, segments, key_segments)
    return compute(*validate(scheme, params, t, query_start, options, kernel, cache), cache)


def compute(form: Form, t: Tokens, start: Any, cache: Cache | None) -> Any:
    """Return what `attend` returns, for a call that was validated."""
    lead = t.q.shape[:-3]
    if 0 in (*lead, t.q.shape[-3], t.k.shape[-3]):
        nothing = jnp.zeros((*t.q.shape[:-1], t.v.shape[-1]), t.v.dtype)
        return nothing if cache is None else (nothing, cache)
    late = unknown(t, start if cache is None else 0)
    learned, t = jax.tree.map(jnp.asarray, ((form.params, form.sinks), numbered(t)))
    with_arrays = lambda params, sinks: form._replace(params=params, sinks=sinks)  # noqa: E731
    if cache is None:
        run = lambda learned, t, start: _full(with_arrays(*learned), t, start, lead, late)  # noqa: E731
        return compiled_axes(run, (learned, t, jnp.asarray(start, jnp.int32)), t.q)
    step = lambda learned, t, cache: _step(with_arrays(*learned), t, cache, lead, late)  # noqa: E731
    return compiled_axes(step, (learned, t, cache), (t.q, cache))


def weights(scheme: Any, params: Any, q: Array, k: Array, v: Array, **arguments: Any) -> Float[Array, "*batch H Q K"]:
    """The weights by which `attend` of these arguments mixes values, before any are dropped."""
    of_tokens = {name: arguments.pop(name, None) for name in Tokens._fields[3:-1]}
    start = arguments.pop("query_start", None)
    q, k, v = (array(name, a) for name, a in zip("qkv", (q, k, v), strict=True))
    form, t, start = validate(scheme, params, Tokens(q, k, v, **of_tokens), start, Options(**arguments), "dense", None)

    def weigh(form: Form, t: Tokens, start: Array) -> Float[Array, "H Q K"]:
        each = [dense.steps(share, encode(share, tokens, start)[0]).weights for share, tokens in shares(form, t)]
        return jnp.concatenate([a.reshape(-1, *a.shape[2:]) for a in each])

    return over_sequences(weigh, form, t, start, q)


def embed(scheme: Any, params: Any, x: Float[Array, "*batch L width"], *, positions: Any = None, segments: Any = None):
    """The input of the first layer under a scheme that acts on it, mostly x + e(position); x itself under the others.

    `x` is `[..., L, width]` and floating, and so is what is returned. `params` are what `posenc.init` gives, or the
    part that layers share. `positions` and `segments` are as in `posenc.attend`; `positions=None` counts from 0 in each
    document, so decoding must pass the positions of the new tokens. Raises `ValueError` or `TypeError` where arguments
    do not fit. Inside `jit`, where values are unknown, positions that a scheme cannot serve give NaN, as in
    `posenc.attend`.
    """
    composed = normal_form(scheme)
    if positions is None and composed.coordinates:
        raise ValueError("This scheme has coordinates; draw positions with posenc.place and pass them.")
    scheme, x = bound(composed.scheme), array("x", x)
    params = complete(scheme, params)
    if x.ndim < 2 or not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(f"x is {x.dtype} of the shape {x.shape}; it is floating numbers, [..., length, width].")
    check_params(scheme, params, KnownSizes(width=x.shape[-1]), shared=True)
    if not scheme.overrides("embed") or not x.size:
        return x
    lead, length, p = x.shape[:-2], x.shape[-2], jax.tree.map(jnp.asarray, pick(params, "layer"))
    tokens = Tokens(x[..., None], x, x, positions=positions, segments=segments)
    t = check_sequences(scheme, p, tokens, composed.unplaced)
    late = unknown(t, 0)
    positions, segments = jax.tree.map(jnp.asarray, (t.positions, numbered(t).segments))

    def embed_all(p, x, positions, segments):
        index = jnp.arange(length, dtype=jnp.int32)

        def embed_sequence(x, positions, segments):
            at = describe(scheme, index, segments, positions, index + 1, 1)
            at, unplaced = placed(at, composed.unplaced)

            def embed_tokens(t: Tokens) -> Array:
                made = scheme.embed(p, x, at)
                return made if unplaced is None else jnp.where(unplaced[:, None], x, made)

            return marking(embed_tokens, late)(Tokens(x, x, x, positions=positions, segments=segments))

        if not lead:
            return embed_sequence(x, positions, segments)
        pairs = [fold(a, lead, tail) for a, tail in ((x, 2), (positions, ranks(axes(scheme))), (segments, 1))]
        out = jax.vmap(embed_sequence, [axis for _, axis in pairs])(*(a for a, _ in pairs))
        return out.reshape(*lead, *out.shape[-2:])

    return compiled_axes(embed_all, (p, x, positions, segments), x)


def _full(form: Form, t: Tokens, start: Array, lead: tuple[int, ...], late: Unknown) -> Float[Array, "*lead Q H d"]:
    """Every sequence, all its tokens at once."""

    def attend_share(form: Form, t: Tokens) -> Float[Array, "Q h d"]:
        encoded, info = encode(form, t, start)
        return finish(form.scheme, form.params, (kernels.mix_mapped if lead else kernels.mix)(form, encoded), info)

    def attend_sequence(t: Tokens) -> Float[Array, "Q H d"]:
        return beside([attend_share(*share) for share in shares(form, t)])

    attend_marked = marking(attend_sequence, late, start)
    if not lead:
        return attend_marked(t)
    flat, mapped = fold_tokens(t, lead, axes(form.scheme))
    out = jax.vmap(attend_marked, (mapped,))(flat)
    return out.reshape(*lead, *out.shape[-3:])


def _step(
    form: Form, t: Tokens, cache: Cache, lead: tuple[int, ...], late: Unknown
) -> tuple[Float[Array, "B Q H d"], Cache]:
    """Every sequence's new tokens, after those in its cache."""

    def decode_sequence(t: Tokens, cache: Cache) -> tuple[Float[Array, "Q H d"], Cache]:
        wrong = faulty(t, 0, late)
        if t.segments is not None:
            again = returned(t.segments, cache.document, cache.segment)
            wrong = again if wrong is None else wrong | again
        t = t._replace(v=marked(t.v, wrong))  # what comes after it sees it
        each = zip(shares(form, t), parted(form.scheme, cache), strict=True)
        outputs, longer = zip(*(decode_share(*share, held) for share, held in each), strict=True)
        return marked(beside(list(outputs)), wrong), joined(form.scheme, list(longer))

    def decode_share(form: Form, t: Tokens, cache: Cache) -> tuple[Float[Array, "Q h d"], Cache]:
        encoded, info, longer = extend(form, t, cache)
        out = finish(form.scheme, form.params, kernels.mix_mapped(form, encoded), info)
        if t.positions is None:
            out = marked(out, uncounted(encoded.query.position))
        if cache.index is None:
            out = jnp.where(longer.length > cache.segment.shape[0], jnp.nan, out)
        if (prefix := encoded.pairs.prefix) is not None:
            query = encoded.query
            assert query.began is not None
            unseen = (query.segment == longer.document) & (longer.length - query.began < prefix)
            out = jnp.where(unseen[:, None, None], jnp.nan, out)
        return out, longer

    flat, mapped = fold_tokens(t, lead, axes(form.scheme))
    return jax.vmap(decode_sequence, (mapped, AXES), (0, AXES))(flat, cache)


def over_sequences(run: Callable[..., PyTree], form: Form, t: Tokens, start: Any, out: PyTree) -> Any:
    """`run(form, t, start)` of each sequence of a call that was validated; NaN in the first of several results where
    its tokens are faulty. They lie as the arrays `out` do."""
    lead, late = t.q.shape[:-3], unknown(t, start)
    learned, t = jax.tree.map(jnp.asarray, ((form.params, form.sinks), numbered(t)))

    def run_all(learned: Any, t: Tokens, start: Array) -> PyTree:
        def run_sequence(t: Tokens) -> list[Array]:
            made = run(form._replace(params=learned[0], sinks=learned[1]), t, start)
            first, *rest = made if isinstance(made, tuple) else (made,)
            return [marked(first, faulty(t, start, late)), *rest]

        flat, mapped = fold_tokens(t, lead, axes(form.scheme)) if lead else (t, None)
        made = jax.vmap(run_sequence, (mapped,))(flat) if lead else run_sequence(flat)
        made = [a.reshape(*lead, *a.shape[1:]) for a in made] if lead else made
        return tuple(made) if isinstance(out, tuple) else made[0]

    return compiled_axes(run_all, (learned, t, jnp.asarray(start, jnp.int32)), out)


def compiled_axes(f: Callable[..., Any], args: PyTree, out: PyTree) -> Any:
    """`f(*args)`, with explicit axes of the mesh left to the compiler; the results lie as the arrays `out` do.

    Explicit axes, as `jax.make_mesh` makes them, are part of each array's type, and every step must say where its
    result lies. Attention turns, repeats and folds heads and batches, so it says so once, at its end. `out` is a prefix
    of the result's tree. Without explicit axes it is `f(*args)` itself.
    """
    meshes = [mesh for a in jax.tree.leaves((args, out)) if _explicit(mesh := jax.typeof(a).sharding.mesh)]
    if not meshes:
        return f(*args)
    return jax.sharding.auto_axes(f, out_sharding=jax.tree.map(lambda a: _lies(a, meshes[0]), out))(*args)


def _explicit(mesh: Any) -> bool:
    return AxisType.Explicit in mesh.axis_types


def _lies(a: Any, mesh: Any) -> NamedSharding:
    """Return the layout of an array; it is whole on each device if its type does not say."""
    of = jax.typeof(a).sharding
    return of if _explicit(of.mesh) else NamedSharding(mesh, PartitionSpec())
