"""Weights and whole layers on a grid, row by row; and where the released code lets heads start."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.through import cotangent, gradients, run, scheme

schemes = ("convit",)
NAMES = ["x", "gating_param", "pos_proj.weight", "pos_proj.bias"]


def compare(case):
    a, said = case.arrays, case.args
    grid, heads, d = said["grid"], said["heads"], said["head_dim"]
    convit = scheme(f"convit(locality={said['locality_strength']})")
    row, column = np.divmod(np.arange(grid * grid, dtype=np.int32), grid)
    places = np.stack([column, row], -1)
    weights = {n: a[n] for n in a if n.split(".")[0] in ("qk", "v", "proj")}

    def f(x, gate, w, b):
        split = lambda y: y.reshape(*y.shape[:2], heads, d)  # noqa: E731
        q, k = map(split, jnp.split(x @ weights["qk.weight"].T + weights["qk.bias"][None, None], 2, -1))
        v = split(x @ weights["v.weight"].T + weights["v.bias"][None, None])
        params = {"layer": {"w": w, "b": b}, "heads": {"gate": gate}}
        attend = lambda v: posenc.attend(convit, params, q, k, v, positions=places, mask="full")  # noqa: E731
        out = attend(v).reshape(x.shape) @ weights["proj.weight"].T + weights["proj.bias"][None, None]
        # the weights are what values of one key at a time come to
        one = jnp.broadcast_to(jnp.eye(grid * grid, dtype=x.dtype)[:, None], (grid * grid, heads, grid * grid))
        shares = attend(jnp.broadcast_to(one[None], (x.shape[0], *one.shape)))
        return out, shares.swapaxes(1, 2)

    (out, shares), back = run(f, cotangent(case), *(a[n] for n in NAMES))
    yield Check("out", out, a["out"], 2e-5)
    yield Check("weights", shares, a["weights"], 2e-5)
    yield from gradients(case, NAMES, back, 5e-5)
    dims = posenc.Dims(heads * d, heads, d, grid * grid)
    start = posenc.init(convit, jax.random.key(0), dims)["layer"]["w"]
    yield Check("initial_pos_proj", start, a["initial_pos_proj"], 2e-5)
