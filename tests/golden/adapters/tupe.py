"""The bias of all layers, with the reset of [CLS], and a whole attention; its padded queries hold anything."""

import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.through import bias, cotangent, gradients, run, scheme

schemes = ("tupe",)
OURS = {
    "pos": "table",
    "pos_ln.weight": "gain",
    "pos_ln.bias": "offset",
    "pos_q_linear.weight": "query",
    "pos_q_linear.bias": "query_bias",
    "pos_k_linear.weight": "key",
    "pos_k_linear.bias": "key_bias",
    "relative_attention_bias.weight": "bias",
}


def compare(case):
    a, said = case.arrays, case.args
    heads, d, length = said["heads"], said["head_dim"], said["length"]
    bins = f", buckets={said['rel_pos_bins']}, reach={said['max_rel_pos']}" if said["relative_bias"] else ""
    tupe = scheme(f"tupe(reset=True{bins})")
    names = [n for n in OURS if n in a]

    def params(given):
        p = {OURS[n]: x for n, x in zip(names, given, strict=True)}
        layer = {n: p.pop(n) for n in ("table", "gain", "offset")}
        for side in ("query", "key"):  # [heads · d, width] as they have it
            p[side] = p[side].reshape(heads, d, -1).swapaxes(1, 2)
            p[f"{side}_bias"] = p[f"{side}_bias"].reshape(heads, d)
        return {"layer": layer, "heads": p | ({"bias": p["bias"].T} if bins else {})}

    def f(*given):
        p = params(given)
        qkv = a["x"] @ a["in_proj_weight"].T + a["in_proj_bias"]
        q, k, v = (jnp.asarray(t.reshape(*t.shape[:2], heads, d)) for t in np.split(qkv, 3, -1))
        out = posenc.attend(tupe, p, q, k, v, mask="full", segments=a["mask"].astype(np.int32))
        return bias(tupe, p, heads, length, length, np.float32, scale=tupe.scale(d)), out.reshape(a["x"].shape)

    (ours, out), back = run(f, cotangent(case), *(a[n] for n in names))
    real = a["mask"][..., None]
    out = out @ a["out_proj_weight"].T + a["out_proj_bias"][None, None]
    yield Check("bias", ours, a["bias"], case.forward)
    yield Check("out", out * real, a["out"] * real, case.forward)
    yield from gradients(case, names, back)
