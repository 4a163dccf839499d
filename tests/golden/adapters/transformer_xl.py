"""The authors' whole layer, with and without memory, and their shift as a gather of distances.

Between the projections stands our attention; the reference rounds its mask and scale through float32.
"""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.through import bias, cotangent, run, scheme, scores

schemes = ("transformer_xl",)
NAMES = {
    "w": "grad_w",
    "r_w_bias": "grad_r_w_bias",
    "r_r_bias": "grad_r_r_bias",
    "r_net.weight": "grad_r_net",
    "qkv_net.weight": "grad_qkv_net",
}


def compare(case):
    if "valid" in case.arrays:
        yield _shift(case)
        return
    a, said = case.arrays, case.args
    heads, d, width = said["heads"], said["head_dim"], said["model_dim"]
    xl = scheme("transformer_xl", width=width, heads=heads, head=d)
    tolerance = case.tolerance(1e-5, 2e-6)
    past = a["mems"] if "mems" in a else np.zeros((0, *a["w"].shape[1:]), a["w"].dtype)
    outward = a["o_net.weight"]

    def f(w, u, v, r_net, qkv):
        every = jnp.concatenate([jnp.asarray(past, w.dtype), w])
        q, k, value = (t.reshape(*t.shape[:2], heads, d).swapaxes(0, 1) for t in jnp.split(every @ qkv.T, 3, -1))
        q = q[:, len(past) :]
        p = {"layer": {}, "heads": {"u": u, "v": v, "w": r_net.reshape(heads, d, width).swapaxes(1, 2)}}
        where = {"query_start": len(past)} if len(past) else {}
        out = posenc.attend(xl, p, q, k, value, **where).swapaxes(0, 1)
        out = _normal(w + out.reshape(*w.shape[:2], heads * d) @ outward.T)
        return out, jax.vmap(lambda q, k: scores(xl, p, q, k))(q, k).transpose(2, 3, 0, 1)

    (out, s), back = run(f, cotangent(case), *(a[n] for n in NAMES))
    seen = np.tril(np.ones(s.shape[:2], bool), len(past))[:, :, None, None]
    yield Check("out", out, a["out"], tolerance)
    yield Check("scores", np.where(seen, s, 0), np.where(seen, a["scores"], 0), tolerance)
    yield Check("probs", jax.nn.softmax(jnp.where(seen, s, -jnp.inf), 1), a["probs"], tolerance)
    yield _turns(case, xl)
    for name, ours in zip(NAMES.values(), back, strict=False):
        yield Check(name, ours, a[name], case.tolerance(5e-5, 2e-6))


def _normal(x):
    x = x - x.mean(-1, keepdims=True)
    return x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)


def _turns(case, xl):
    """The sinusoids of the distances: the scores of empty tokens under a bias v of 1 and a W that picks a feature."""
    theirs = case.arrays["r"]  # from the longest distance to 0
    width = theirs.shape[1]
    params = {"u": np.zeros((width, 1)), "v": np.ones((width, 1)), "w": np.eye(width)[:, :, None]}
    params = {"layer": {}, "heads": {n: x.astype(theirs.dtype) for n, x in params.items()}}
    return Check("r", bias(xl, params, width, 1, len(theirs), theirs.dtype)[:, 0].T, theirs, case.tolerance(1e-5, 2e-6))


def _shift(case):
    """Their shift moves column c of row i to key c - (Q - 1 - i): the column of the distance i + K - Q - key."""
    x, (queries, keys) = case.arrays["x"], (case.args["q_len"], case.args["k_len"])
    i, j = np.arange(queries)[:, None] + keys - queries, np.arange(keys)[None, :]
    column = np.where(i >= j, keys - 1 - (i - j), 0)
    np.testing.assert_array_equal(i >= j, case.arrays["valid"])
    shifted = np.where((i >= j)[:, :, None, None], np.take_along_axis(x, column[:, :, None, None], 1), 0)
    return Check("out", shifted, case.arrays["out"], 0)
