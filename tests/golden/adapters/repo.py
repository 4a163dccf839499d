"""Positions from features, and queries and keys turned by them, in the three forms of the authors' code."""

import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.contextual import sides
from tests.golden.through import gradients, run

schemes = ("repo",)
MODES = {"swiglu": "swiglu", "linear per head": "linear", "linear": "shared"}


def compare(case):
    args, a = case.args, case.arrays
    mode = MODES[args["mode"]]
    scheme = posenc.parse(f"repo(mode={mode!r}, base={args['rope_theta']!r})")
    names = [f"{name}_map.weight" for name in ("gate", "content", "final", "dynamic") if f"{name}_map.weight" in a]

    def f(x, q, k, *weights):
        w = dict(zip(names, weights, strict=True))
        if mode == "swiglu":
            layer = {"gate": w["gate_map.weight"], "content": w["content_map.weight"]}
            own = {"w": w["final_map.weight"]}
        else:
            one = w["dynamic_map.weight"]
            layer, own = ({"w": one[0]}, {}) if mode == "shared" else ({}, {"w": one})
        c, q, k = sides(scheme, {"layer": layer, "heads": own}, x, q, k)
        return jnp.stack([q, k]), c

    given = ["x", "q", "k", *names]
    (out, positions), back = run(f, np.stack([a["cotangent"], a["cotangent_k"]]), *(a[name] for name in given))
    yield Check("positions", positions, a["positions"], 2e-5)
    yield Check("q_out", out[0], a["q_out"], 2e-5)
    yield Check("k_out", out[1], a["k_out"], 2e-5)
    yield from gradients(case, given, back, 1e-4)
