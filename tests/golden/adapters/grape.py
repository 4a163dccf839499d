"""The biases of the gated forms, and the authors' whole layer where a penalty is gathered on the way."""

import jax
import jax.numpy as jnp

import posenc
from tests.golden.adapters import _grape_m
from tests.golden.case import Check, NotCovered
from tests.golden.contextual import bias
from tests.golden.through import gradients, run, scores

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
    yield from gradients(case, names, back, 1e-4)


def _path(case):
    args, a = case.args, case.arrays
    heads, d, features = args["heads"], args["head_dim"], args["p_head_dim"]
    source = _source(args["p_from"], "q_rms.weight" in a)
    text = f"grape_ap(source={source!r})" if source in ("key", "value") else f"grape_ap(features={features})"
    scheme = posenc.parse(text)
    names = [n for n in ("x", *(f"c_{n}.weight" for n in "qkvp"), "q_rms.weight", "k_rms.weight") if n in a]

    def f(*given):
        t = dict(zip(names, given, strict=True))
        x, w = t["x"], t.get({"input": "c_p.weight", "query": "c_q.weight"}.get(source))
        p = {"layer": {}, "heads": {} if w is None else {"w": w.reshape(heads, features, -1)}}
        q, k, v = ((x @ t[f"c_{n}.weight"].T).reshape(*x.shape[:2], heads, d) for n in "qkv")
        q, k = (_normal(b, t.get(f"{n}_rms.weight")) for n, b in (("q", q), ("k", k)))
        out = posenc.attend(scheme, p, q, k, v, x=x)
        return out.reshape(*x.shape[:2], -1) @ a["c_proj.weight"].T, bias(scheme, p, x, k=k, v=v)

    (out, added), back = run(f, a["cotangent"], *(a[n] for n in names))
    yield Check("bias", added, a["bias"], 1e-5)
    yield Check("out", out, a["out"], 2e-5)
    yield from gradients(case, names, back, 1e-4)


def _source(p_from, normed):
    """What their p is made of, in our words; from queries without a norm it is the input, by the query weights."""
    found = [ours for ours, theirs in SOURCES.items() if p_from.lower() in theirs]
    if not found or found == ["query"] and normed:
        raise NotCovered(f"GRAPE-AP with p from {p_from}{' with a norm' * normed}")
    return found[0]


SOURCES = {
    "input": ("c_p", "none"),
    "query": ("the queries", "queries", "query", "q", "c_q", "pq", "pqtie"),
    "key": ("the keys", "keys", "key", "k", "c_k", "pk", "pktie"),
    "value": ("the values", "values", "value", "v", "c_v", "pv", "pvtie"),
}
"""How they write what p is made of: in golden data, and as their setting p_tie_mode."""


def _normal(t, weight):
    return t if weight is None else t / jnp.sqrt((t * t).mean(-1, keepdims=True) + 1e-5) * weight[None, None, None]
