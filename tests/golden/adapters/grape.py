"""The biases of the gated forms, and the authors' whole layer where a penalty is gathered on the way."""

import jax
import jax.numpy as jnp

import posenc
from tests.golden.adapters import _grape_m
from tests.golden.case import Check
from tests.golden.contextual import bias
from tests.golden.through import run, scores

schemes = ("grape_a", "grape_ap", *_grape_m.schemes)


def compare(case):
    if case.id.startswith("m"):
        yield from _grape_m.compare(case)
    else:
        yield from _path(case) if "x" in case.arrays else _gated(case)


def _gated(case):
    args, a = case.args, case.arrays
    gate = {"querykey": "both"}.get(args["gate"], args["gate"])
    scheme = posenc.parse(f"grape_a(gate={gate!r}, unit={args['unit_vectors']})")
    sides = [name for name in "qk" if name in a]
    own = [name for name in ("omega", "u", "v") if name in a]

    def f(*given):
        tokens = dict(zip(sides, given, strict=False))
        q, k = (tokens.get(name, jnp.zeros_like(given[0])) for name in "qk")
        p = {"layer": {}, "heads": dict(zip(own, given[len(sides) :], strict=True))}
        return jax.vmap(lambda q, k: scores(scheme, p, q, k, scale=0.0))(q, k)

    names = [*sides, *own]
    ours, back = run(f, a["cotangent"], *(a[name] for name in names))
    yield Check("bias", ours, a["bias"], 1e-5)
    for name, gradient in zip(names, back, strict=True):
        yield Check(f"grad_{name}", gradient, a[f"grad_{name}"], 1e-4)


def _path(case):
    args, a = case.args, case.arrays
    heads, d, features = args["heads"], args["head_dim"], args["p_head_dim"]
    scheme = posenc.parse(f"grape_ap(features={features})")
    source = "c_p.weight" if "c_p.weight" in a else "c_q.weight"
    norms = [a[name] if name in a else None for name in ("q_rms.weight", "k_rms.weight")]

    def f(x, w):
        p = {"layer": {}, "heads": {"w": w.reshape(heads, features, -1)}}
        q_weight = w if source == "c_q.weight" else a["c_q.weight"]
        q, k, v = ((x @ one.T).reshape(*x.shape[:2], heads, d) for one in (q_weight, a["c_k.weight"], a["c_v.weight"]))
        q, k = (_normal(t, norm) for t, norm in zip((q, k), norms, strict=True))
        out = posenc.attend(scheme, p, q, k, v, x=x)
        return out.reshape(*x.shape[:2], -1) @ a["c_proj.weight"].T, bias(scheme, p, x)

    (out, added), back = run(f, a["cotangent"], a["x"], a[source])
    yield Check("bias", added, a["bias"], 1e-5)
    yield Check("out", out, a["out"], 2e-5)
    for name, gradient in zip(("x", source), back, strict=True):
        if f"grad_{name}" in a:
            yield Check(f"grad_{name}", gradient, a[f"grad_{name}"], 1e-4)


def _normal(t, weight):
    return t if weight is None else t / jnp.sqrt((t * t).mean(-1, keepdims=True) + 1e-5) * weight[None, None, None]
