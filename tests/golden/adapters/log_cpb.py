"""Biases and whole layers of Swin V2, whose queries and keys have length 1 and a learned temperature."""

import math

import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.through import cotangent, gradients, run, scheme, scores

schemes = ("log_cpb",)
MLP = [f"continuous_position_bias_mlp.{n}" for n in ("0.weight", "0.bias", "2.weight")]


def compare(case):
    a, said = case.arrays, case.args
    heads, d, window = said["heads"], said["head_dim"], said["window"]
    reach = tuple(float(n - 1) for n in (said["pretrained_window"] if any(said["pretrained_window"]) else window))
    cpb = scheme(f"log_cpb(axes=2, reach={reach}, hidden={said['mlp_width']})")
    places = np.stack(np.meshgrid(*map(np.arange, window), indexing="ij"), -1).reshape(-1, 2).astype(np.int32)
    weights = {n: a[n] for n in ("query.weight", "query.bias", "key.weight", "value.weight", "value.bias")}

    def f(x, logit_scale, w1, b1, w2):
        project = lambda w, b=None: x @ w.T + (0 if b is None else b[None, None])  # noqa: E731
        split = lambda y: y.reshape(*y.shape[:2], heads, d)  # noqa: E731
        q = split(project(weights["query.weight"], weights["query.bias"]))
        k, v = split(project(weights["key.weight"])), split(project(weights["value.weight"], weights["value.bias"]))
        q, k = (y / jnp.linalg.norm(y, axis=-1, keepdims=True) for y in (q, k))
        q = q * (d**0.5 * jnp.exp(jnp.minimum(logit_scale, math.log(100))))[None, None, :, 0]
        p = {"layer": {"w1": w1.T, "b1": b1}, "heads": {"w": w2}}
        out = posenc.attend(cpb, p, q, k, v, positions=places, mask="full")
        none = jnp.zeros((len(places), heads, 1), x.dtype)
        bias = scores(cpb, p, none, none, positions=places, key_positions=places)
        s = jnp.stack([scores(cpb, p, *one, positions=places, key_positions=places) for one in zip(q, k, strict=True)])
        top = s.max(-1, keepdims=True)
        e = jnp.exp(s - top)
        return out.reshape(x.shape), bias, e / e.sum(-1, keepdims=True)

    names = ["x", "logit_scale", *MLP]
    (out, bias, shares), back = run(f, cotangent(case), *(a[n] for n in names))
    for name, ours in (("out", out), ("bias", bias), ("weights", shares)):
        yield Check(name, ours, a[name], 2e-5)
    yield from gradients(case, names, back, 1e-4)
