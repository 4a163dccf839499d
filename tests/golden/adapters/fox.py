"""Gates given as logits, and CABLE's whole layer, whose gate has the opposite sign and whose scores are unscaled."""

import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import NotCovered
from tests.golden.through import checks, cotangent, run, scheme

schemes = ("fox",)


def compare(case):
    if not case.args.get("causal", True):
        raise NotCovered("forgetting towards the future")
    yield from _cable(case) if "x" in case.arrays else _fox(case)


def _fox(case):
    a, heads = case.arrays, case.args["q_heads"]
    window = case.args["window"]
    fox = scheme("fox" if window is None else f"fox + window({window})", width=heads, heads=heads)

    def f(q, k, v, logits):  # each head's gate reads the feature that is its logit
        p = {"layer": {}, "heads": {"w": jnp.eye(heads, dtype=q.dtype), "b": jnp.zeros(heads, q.dtype)}}
        return posenc.attend(fox, p, q, k, v, x=logits)

    names = ["q", "k", "v", "gate_logits"]
    np.testing.assert_allclose(np.log1p(np.exp(-a["gate_logits"])), -a["log_forget"], atol=1e-5)
    yield from checks(case, names, *run(f, cotangent(case), *(a[n] for n in names)))


def _cable(case):
    a, heads, d = case.arrays, case.args["heads"], case.args["head_dim"]
    fox = scheme("fox", heads=heads)
    proj, proj_bias = a["c_proj.weight"], a["c_proj.bias"]

    def f(x, w, b, gate_w, gate_b):
        q, k, v = (t.reshape(*t.shape[:2], heads, d) for t in jnp.split(x @ w.T + b[None, None], 3, -1))
        p = {"layer": {}, "heads": {"w": -gate_w, "b": -gate_b}}
        out = posenc.attend(fox, p, q * d**0.5, k, v, x=x)
        return out.reshape(*x.shape[:2], heads * d) @ proj.T + proj_bias[None, None]

    names = ["x", "c_attn.weight", "c_attn.bias", "h_attn.weight", "h_attn.bias"]
    for check in checks(case, names, *run(f, cotangent(case), *(a[n] for n in names))):
        # finite differences reach this far in float64
        yield check._replace(tolerance=max(check.tolerance, case.tolerance(0, 1e-9))) if "grad" in check.name else check
