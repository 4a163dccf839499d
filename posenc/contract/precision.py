"""In a bfloat16 model only features lose digits; positions, angles, biases and distances do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxprs_in_params

from posenc.attention.attend import attend, embed
from posenc.contract.case import LONGEST, Case, CaseInputs, rows
from posenc.contract.report import Outcome, absent, at_most, error, holds_if
from posenc.core.compose import merge, pick, spread
from posenc.core.scheme import GROUP_AXIS, REPEAT_AXIS, At, Tile

BOUND = 2.0**-7
FAR = 2003 + 7 * np.arange(LONGEST, dtype=np.int32)
"""Far enough that neighbours are one number in bfloat16."""


def bfloat16_loses_no_position(case: Case) -> Outcome:
    """bfloat16 = float32 on the same rounded numbers, but for the rounding of features; far from the start too."""
    half, single = (_run(case, dtype, _places(case)) for dtype in (jnp.bfloat16, jnp.float32))
    for name, a in half.items():
        if a.dtype != jnp.bfloat16:
            return Outcome(False, reason=f"{name} of a bfloat16 model is {a.dtype}")
    apart = {n: error(half[n], single[n]) for n in half}
    worst = max(apart, key=apart.__getitem__)
    return at_most(apart[worst], BOUND, "" if apart[worst] <= BOUND else f"{worst} is off by more than {BOUND:.1e}")


def _run(case: Case, dtype, places: np.ndarray) -> dict[str, jax.Array]:
    """The input and the attention, each from the same numbers, rounded to bfloat16 and no further."""

    @case.jit
    def run(p, a, positions):
        out = {"attention": attend(case.scheme, p, a.q, a.k, a.v, x=a.x, positions=positions)}
        if case.scheme.overrides("embed"):
            out["the input"] = embed(case.scheme, p, a.x, positions=positions)
        return out

    return jax.device_get(run(_cast(case.params, dtype), _cast(case.long, dtype), case.positions(places)))


def _cast(tree: Any, dtype: Any) -> Any:
    """Return the numbers, rounded to bfloat16, in another type."""
    return jax.tree.map(lambda a: np.asarray(a).astype(jnp.bfloat16).astype(dtype), tree)


def _places(case: Case) -> np.ndarray:
    """Positions far from the start, where the scheme has them."""
    return np.arange(LONGEST, dtype=np.int32) if case.admits(FAR) else FAR


def queries_and_keys_are_rounded_once(case: Case) -> Outcome:
    """`query` and `key` of a bfloat16 model = those of a float32 model on the same numbers, to one rounding."""
    if not case.scheme.overrides("query", "key"):
        return absent("it changes neither query nor key")
    places = spread(case.scheme, jnp.asarray(case.positions(_places(case))))

    @case.jit
    def hooks(p, a):
        index = jnp.arange(LONGEST, dtype=jnp.int32)
        at = At(places, index, jnp.ones_like(index), index + 1, jnp.int32(0), case.dims.heads)
        p = merge(pick(p, "layer"), rows(pick(p, "heads"), 0))
        c, _ = case.scheme.locate(p, a.x, at, case.scheme.carry(case.dims))
        return [case.scheme.query(p, a.q[:, 0], c)[0], case.scheme.key(p, a.k[:, 0], c)[0]]

    half, single = (hooks(_cast(case.params, dtype), _cast(case.long, dtype)) for dtype in (jnp.bfloat16, jnp.float32))
    apart = [error(a, b) / float(jnp.abs(b).max()) for a, b in zip(half, single, strict=True)]
    return at_most(max(apart), 2.0**-8)


def scores_are_single_precision(case: Case) -> Outcome:
    """`score` gets float32 from a bfloat16 model, and gives float32."""
    if not case.scheme.overrides("score") or case.scheme.reads == "heads":
        return absent("it has no score hook" if case.scheme.reads != "heads" else "it reads all heads at once")
    half = lambda tree: jax.tree.map(lambda a: a.astype(jnp.bfloat16), tree)  # noqa: E731

    def score(a):
        p, tile = case.tile(a=half(a))
        s = tile.logits.astype(jnp.float32)
        return case.scheme.score(half(p), s, tile._replace(logits=s))

    dtype = jax.eval_shape(score, case.inputs).dtype
    return Outcome(dtype == jnp.float32, reason="" if dtype == jnp.float32 else f"it gives {dtype}")


def products_keep_their_digits(case: Case) -> Outcome:
    """Hooks request float32 products at precision "highest", and so do their gradients: else an accelerator rounds the
    factors as it rounds features. `value_bias` is left out, for weights times values may round like attention's own."""
    arguments = pick(case.params, "layer"), pick(case.params, "heads"), case.inputs

    def total(layer, heads, a):
        sum_head = jax.vmap(
            lambda head_params: _sum(_outputs(case, merge(layer, head_params), a)), axis_name=REPEAT_AXIS, axis_size=1
        )
        sum_heads = jax.vmap(sum_head, axis_name=GROUP_AXIS, axis_size=case.dims.heads)
        return sum_heads(jax.tree.map(lambda b: b[:, None], heads)).sum()

    with jax.enable_x64(False):
        arguments = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), arguments)
        traced = jax.make_jaxpr(jax.value_and_grad(total, (0, 1, 2)))(*arguments)
    made = [e for e in _equations(traced.jaxpr) if e.primitive.name in ("dot_general", "conv_general_dilated")]
    single = jnp.float32, jnp.complex64
    rough = [e.invars for e in made if e.invars[0].aval.dtype in single and not _highest(e.params["precision"])]
    return holds_if(not rough, " times ".join(str(a.aval) for a in rough[0]) + " is rounded" if rough else "")


def _outputs(case: Case, p: Any, a: CaseInputs) -> Any:
    """The outputs of the hooks of one head, up to the weights; the product of queries and keys is exact too."""
    scheme, index, d = case.scheme, jnp.asarray(case.index), case.dims.head
    place = spread(scheme, jnp.asarray(case.positions(case.index)))
    at = At(place, index, jnp.ones_like(index), index + 1, jnp.int32(0), case.dims.heads)
    x = scheme.embed(p, a.x, at)
    c, _ = scheme.locate(p, x, at, scheme.carry(case.dims))
    (q, i), (k, j, _) = scheme.query(p, a.q[:, 0], c), scheme.pair(p, a.k[:, 0], a.v[:, 0], c)
    logits = jnp.matmul(q, k.T, precision="highest") * scheme.scale(d)
    distance = jax.tree.map(lambda b: b[:, None] - b[None, :], place)
    visible = index[None, :] <= index[:, None]
    tile = Tile(i, j, distance, logits, scheme.scale(d), visible, index, index, jnp.int32(0), case.dims.heads)
    s = scheme.score(p, logits, tile)
    return x, s, scheme.normalize(p, s, tile) if scheme.overrides("normalize") else ()


def _sum(tree: Any) -> Any:
    return sum(a.sum() for a in jax.tree.leaves(tree))


def _equations(jaxpr: Any) -> Iterator[Any]:
    """Every equation of a program, and of the programs within it."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in jaxprs_in_params(equation.params):
            yield from _equations(inner)


def _highest(precision: Any) -> bool:
    pair = precision if isinstance(precision, tuple) else (precision, precision)
    return all(factor == jax.lax.Precision.HIGHEST for factor in pair)
