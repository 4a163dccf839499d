"""Outputs, weights and gradients in both directions, and the skewed form as the gathered one; no scale in theirs."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.through import checks, cotangent, run, scheme, scores

schemes = ("music_transformer",)


def compare(case):
    yield from _skewed(case) if "rel" in case.arrays else _attention(case)


def _attention(case):
    a, said = case.arrays, case.args
    values, shared, causal = said["relative_values"], said["heads_share"], said["causal"]
    text = f"music_transformer({said['max_relative_position']}, {values}, {shared}, {not causal})"
    music, unscale = scheme(text), 1.0 if said["scaled"] else a["q"].shape[-1] ** 0.5
    names = ["q", "k", "v", *(f"{n}_relative_embeddings" for n in ("key", "value")[: 1 + values])]

    def f(q, k, v, *tables):
        q, k, v = (jnp.swapaxes(t, 1, 2) for t in (q * unscale, k, v))
        tables = dict(zip(("key", "value"), tables, strict=False))
        p = {"layer": tables, "heads": {}} if shared else {"layer": {}, "heads": tables}
        out = posenc.attend(music, p, q, k, v, mask="causal" if causal else "full")
        return jnp.swapaxes(out, 1, 2), jax.vmap(lambda q, k: scores(music, p, q, k))(q, k)

    (out, s), back = run(f, cotangent(case), *(a[n] for n in names))
    yield from checks(case, names, out, back)
    if "weights" in a:
        s = jnp.where(np.tri(s.shape[-1], dtype=bool)[None, None] | (not causal), s, -jnp.inf)
        yield Check("weights", jax.nn.softmax(s, -1), a["weights"], case.forward)


def _skewed(case):
    """q E_rᵀ as they have it before the skewing: a table of unit vectors, and the rows of it as queries."""
    rel, length = case.arrays["rel"], case.args["length"]
    music = scheme(f"music_transformer({length}, shared=True, bidirectional=False)")
    p = {"layer": {"key": np.eye(length, dtype=rel.dtype)}, "heads": {}}
    q = rel.swapaxes(1, 2)
    gathered = np.stack([scores(music, p, one, np.zeros_like(one), scale=1.0) for one in q])
    yield Check("absolute", gathered * np.tri(length, dtype=rel.dtype), case.arrays["absolute"], 0)
