"""Queries and keys after the authors' module, a plain convolution in place of their kernel."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.contextual import sides
from tests.golden.through import gradients, run

schemes = ("selective_rope",)
NAMES = ["temperature", "phi_proj.0.weight", "phi_proj.1.weight", "phi_proj.weight", "phi_proj.scalar"] + [
    "phi_conv1d.weight",
    "phi_bias",
    "phase_gate_proj.weight",
    "phase_gate_proj.bias",
]


def compare(case):
    args, a = case.args, case.arrays
    heads, pairs = args["heads"], args["head_dim"] // 2
    names = [name for name in NAMES if name in a]

    def f(x, q, k, *weights):
        p = _params(dict(zip(names, weights, strict=True)), heads, pairs)
        _, q, k = sides(_scheme(args, "learned"), p, x, q.swapaxes(1, 2), k.swapaxes(1, 2))
        return jnp.stack([q, k]).swapaxes(2, 3)

    given = ["x", "q", "k", *names]
    out, back = run(f, np.stack([a["cotangent"], a["cotangent_k"]]), *(a[name] for name in given))
    yield Check("q_out", out[0], a["q_out"], 2e-5)
    yield Check("k_out", out[1], a["k_out"], 2e-5)
    yield from gradients(case, given, back, 1e-4)
    dims = posenc.Dims(a["x"].shape[-1], heads, 2 * pairs, trained=8)
    start = posenc.init(_scheme(args, "learned"), jax.random.key(0), dims)
    yield Check("temperature", start["layer"]["temperature"], a["temperature"][0, 0, 0], 1e-6)


def _scheme(args, frequencies):
    low = args["projection"].startswith("low-rank")
    settings = {
        "rank": int(args["projection"].split()[-1]) if low else 0,
        "kernel": 4 if "kernel 4" in args["convolution"] else 0,
        "activation": args["activation"] or "none",
        "gate": args["gate"],
        "bias": args["bias"],
        "spectrum": args["temperature_type"],
        "base": args["temperature_theta"],
        "frequencies": frequencies,
    }
    return posenc.parse(f"selective_rope({', '.join(f'{name}={value!r}' for name, value in settings.items())})")


def _params(w, heads, pairs):
    layer, own = {"temperature": w["temperature"].reshape(pairs)}, {}
    if "phi_proj.weight" in w:
        own |= {"w": w["phi_proj.weight"].swapaxes(1, 2), "length": w["phi_proj.scalar"]}
    else:
        layer["down"] = w["phi_proj.0.weight"]
        own["up"] = w["phi_proj.1.weight"].reshape(heads, pairs, -1)
    if "phi_conv1d.weight" in w:
        own["conv"] = w["phi_conv1d.weight"].reshape(heads, pairs, -1)
    if "phi_bias" in w:
        own["bias"] = w["phi_bias"].reshape(heads, pairs)
    if "phase_gate_proj.weight" in w:
        own |= {"gate": w["phase_gate_proj.weight"], "gate_bias": w["phase_gate_proj.bias"]}
    return {"layer": layer, "heads": own}
