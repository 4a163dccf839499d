"""Relative logits for given positions, and the attention between projections and output, a window or none."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.contextual import bias, sides, weights
from tests.golden.through import gradients, run

schemes = ("inkling",)


def compare(case):
    yield from _attention(case) if "out" in case.arrays else _logits(case)


def _logits(case):
    a = case.arrays
    scheme = _scheme(case.args, 0.0, 1)
    where = a["query_positions"], a["key_positions"]
    f = lambda r, proj: bias(scheme, _params(proj, r), _features(r), *where)  # noqa: E731
    ours, back = run(f, a["cotangent"], a["r"], a["proj"])
    yield Check("bias", ours, a["bias"], case.forward)
    yield from gradients(case, ("r", "proj"), back)


def _attention(case):
    args, a = case.args, case.arrays
    floor = args["log_scaling_n_floor"]
    scheme = _scheme(args, args["log_scaling_alpha"] if floor else 0.0, floor or 1)
    whole = scheme if args["layer"] == "global" else scheme + posenc.parse(f"nope + window({args['extent']})")
    p, x = _params(a["proj"], a["r"]), _features(jnp.asarray(a["r"]))
    p_whole = p if args["layer"] == "global" else (p, {"layer": {}, "heads": {}})
    q, k, v = (a[name].swapaxes(1, 2) for name in "qkv")
    attend = jax.jit(lambda v: posenc.attend(whole, p_whole, q, k, v, x=x))
    yield Check("out", attend(v), a["out"], case.forward)
    yield Check("weights", weights(attend, v), a["weights"], case.forward)
    yield Check("bias_scaled", bias(scheme, p, x), a["bias_scaled"], case.forward)
    ones = jnp.ones_like(a["q"])
    _, asked, _ = sides(scheme, p, x, ones, ones)
    yield Check("tau", asked[0, 0, :, 0], a["tau"], case.forward)


def _scheme(args, strength, floor):
    return posenc.parse(f"inkling(rank={args['d_rel']}, extent={args['extent']}, strength={strength}, floor={floor})")


def _features(r):
    """What all heads ask for, one after another, as features of the token."""
    return r.reshape(*r.shape[:2], -1)


def _params(proj, r):
    """Each head picks its own from the features."""
    heads, rank = r.shape[2:]
    pick = np.eye(heads * rank, dtype=r.dtype).reshape(heads, rank, heads * rank)
    return {"layer": {"profiles": proj}, "heads": {"w": pick}}
