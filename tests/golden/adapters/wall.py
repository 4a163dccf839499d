"""Gates given as logits, for each head and feature; scalar gates are FoX's."""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Case, Check
from tests.golden.through import gradients, run

schemes = ("wall", "fox")


def compare(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    heads, head, scalar = args["heads"], args["head_dim"], args["scalar_gate"]
    window = "" if args["window"] is None else f" + window({args['window']})"
    scheme = posenc.parse(f"wall{' + fox' * scalar}{window}")
    kind = a["q"].dtype
    np.testing.assert_allclose(np.log1p(np.exp(-a["gate_logits"].astype(float))), -a["log_gates"], atol=2e-5)
    segments = a["document"] + 1 - a["document"].min()
    seen = np.tri(len(segments), dtype=bool) & (segments[:, None] == segments[None, :])
    if args["window"] is not None:
        seen &= ~np.tri(len(segments), k=-args["window"], dtype=bool)
    np.testing.assert_array_equal(a["visible"], seen)
    width = heads * head
    every = jnp.eye(width + heads * scalar, dtype=kind)  # each gate reads the feature that is its logit
    wall = {"layer": {}, "heads": {"w": every[:width].reshape(heads, head, -1), "b": jnp.zeros((heads, head), kind)}}
    fox = {"layer": {}, "heads": {"w": every[width:], "b": jnp.zeros(heads, kind)}}
    params = (wall, fox) if scalar else wall
    names = ["q", "k", "v", "gate_logits"] + ["scalar_gate_logits"] * scalar + ["sink"] * ("sink" in a)

    def f(q, k, v, logits, *more):
        x = logits.reshape(*logits.shape[:2], -1)
        x = jnp.concatenate([x, more[0]], -1) if scalar else x
        sinks = {"sinks": more[-1]} if "sink" in a else {}
        return posenc.attend(scheme, params, q, k, v, x=x, segments=segments, scale=args["scale"], **sinks)

    given = [a[n] for n in names]
    out, grads = run(f, a["cotangent"], *given)
    yield Check("out", out, a["out"], case.forward)
    if "out_f64" in a:
        yield Check("out in float32 against float64", out, a["out_f64"], case.forward)
    yield from gradients(case, names, grads)
    length, groups = len(segments), a["v"].shape[2]
    one = np.broadcast_to(np.eye(length, dtype=kind)[None, :, None], (len(a["v"]), length, groups, length))
    weights = np.asarray(f(*given[:2], one, *given[3:])).transpose(0, 2, 1, 3)
    yield Check("weights", weights, a["weights"], case.forward)
    theirs = np.where(seen, a["scores"], -np.inf)
    beside = np.exp(a["sink"])[None, :, None, None] if "sink" in a else 0
    top = theirs.max(-1, keepdims=True)
    e = np.exp(theirs - top)
    yield Check("scores, as weights", weights, e / (e.sum(-1, keepdims=True) + beside * np.exp(-top)), case.forward)
