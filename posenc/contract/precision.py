"""In a bfloat16 model only features lose digits; positions, angles, biases and distances do not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from posenc.attention import attend, embed
from posenc.contract.case import LONGEST, Case
from posenc.contract.report import Outcome, absent, at_most, error

BOUND = 2.0**-7
FAR = 2003 + 7 * np.arange(LONGEST, dtype=np.int32)
"""Far enough that neighbours are one number in bfloat16."""


def bfloat16_loses_no_position(case: Case) -> Outcome:
    """bfloat16 = float32 on the same rounded numbers, but for the rounding of features; far from the start too."""
    near = np.arange(LONGEST, dtype=np.int32)
    places = near if case.admits(FAR) else FAR
    half, single = (_run(case, dtype, places) for dtype in (jnp.bfloat16, jnp.float32))
    for name, a in half.items():
        if a.dtype != jnp.bfloat16:
            return Outcome(False, reason=f"{name} of a bfloat16 model is {a.dtype}")
    apart = {n: error(half[n], single[n]) for n in half}
    worst = max(apart, key=apart.get)
    return at_most(apart[worst], BOUND, "" if apart[worst] <= BOUND else f"{worst} is off by more than {BOUND:.1e}")


def _run(case: Case, dtype, places: np.ndarray) -> dict[str, jax.Array]:
    """The input and the attention, each from the same numbers, rounded to bfloat16 and no further."""
    cast = lambda tree: jax.tree.map(lambda a: np.asarray(a).astype(jnp.bfloat16).astype(dtype), tree)  # noqa: E731

    @case.jit
    def run(p, a, told):
        out = {"attention": attend(case.scheme, p, a.q, a.k, a.v, x=a.x, positions=told)}
        if case.scheme.overrides("embed"):
            out["the input"] = embed(case.scheme, p, a.x, positions=told)
        return out

    return jax.device_get(run(cast(case.params), cast(case.long), case.positions(places)))


def scores_are_single_precision(case: Case) -> Outcome:
    """`score` gets float32 from a bfloat16 model, and gives float32."""
    if not case.scheme.overrides("score") or case.scheme.reads == "heads":
        return absent("it has no score of its own" if case.scheme.reads != "heads" else "it reads all heads at once")
    half = lambda tree: jax.tree.map(lambda a: a.astype(jnp.bfloat16), tree)  # noqa: E731

    def score(a):
        p, tile = case.tile(a=half(a))
        s = tile.raw.astype(jnp.float32)
        return case.scheme.score(half(p), s, tile._replace(raw=s))

    given = jax.eval_shape(score, case.inputs).dtype
    return Outcome(given == jnp.float32, reason="" if given == jnp.float32 else f"it gives {given}")
