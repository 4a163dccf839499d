"""Outputs, weights, scores and gradients with one table for all heads; the reference does not scale the scores."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.through import checks, cotangent, run, scheme, scores

schemes = ("shaw",)
INPUTS = ["q", "k", "v", "table_k", "table_v"]


def compare(case):
    a, reach = case.arrays, case.args["max_relative_position"]
    if "index" in a:
        yield _index(case, reach)
        return
    shaw = scheme(f"shaw({reach}, shared=True)")
    unscale = 1.0 if case.args["scaled"] else a["q"].shape[-1] ** 0.5
    apart = a["q"].shape[-2] - a["k"].shape[-2]
    mask = "causal" if case.args["causal"] else "full"

    def f(q, k, v, key, value):
        q, k, v = (jnp.swapaxes(t, 1, 2) for t in (q * unscale, k, v))
        params = {"layer": {"key": key, "value": value}, "heads": {}}
        where = {"query_start": -apart} if apart else {}
        out = jnp.swapaxes(posenc.attend(shaw, params, q, k, v, mask=mask, **where), 1, 2)
        return out, jax.vmap(lambda q, k: scores(shaw, params, q, k))(q, k)

    (out, s), back = run(f, cotangent(case), *(a[n] for n in INPUTS))
    yield from checks(case, INPUTS, out, back)
    if "logits" in a:
        yield from _weights(case, s)


def _weights(case, s):
    """Scores and weights where the query sees the key; what they hold elsewhere is the mask's."""
    seen = np.tril(np.ones(s.shape[-2:], bool)) if case.args["causal"] else np.ones(s.shape[-2:], bool)
    yield Check("logits", jnp.where(seen[None, None], s, 0), np.where(seen, case.arrays["logits"], 0), case.forward)
    ours = jax.nn.softmax(jnp.where(seen[None, None], s, -jnp.inf), -1)
    yield Check("weights", ours, case.arrays["weights"], case.forward)


def _index(case, reach):
    """The row that each pair reads: a table whose rows are their own numbers, and a query of 1."""
    queries, keys = case.args["q_len"], case.args["k_len"]
    table = np.arange(2.0 * reach + 1, dtype=np.float32)[:, None]
    params = {"layer": {"key": table}, "heads": {}}
    q, k = np.ones((queries, 1, 1), np.float32), np.zeros((keys, 1, 1), np.float32)
    ours = scores(scheme(f"shaw({reach}, values=False, shared=True)"), params, q, k)
    return Check("index", np.asarray(ours[0]).astype(np.int32), case.arrays["index"], 0)
