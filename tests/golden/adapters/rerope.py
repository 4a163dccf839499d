"""ReRoPE, its leaky form and SelfExtend, from hidden states to the output projection."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.through import cotangent, run, scheme, scores

schemes = ("rerope", "self_extend", "log_n")
NONE = {"layer": {}, "heads": {}}


def compare(case):
    args, a = case.args, case.arrays
    groups, d = args["kv_heads"], args["head_dim"]
    turned = scheme(_text(args), head=d)
    trained = args.get("training_length", args.get("scale_base"))
    both = turned if trained is None else scheme(f"log_n(trained={trained})") + turned
    params = NONE if trained is None else (NONE, NONE)
    weight = {n: a[f"{n}_proj.weight"] for n in "qkvo"}

    def f(x, mixed=None):
        parts = [(x @ weight[n].T).reshape(*x.shape[:2], -1, d) for n in "qkv"]
        if mixed is not None:
            return posenc.attend(both, params, *parts[:2], mixed)
        return posenc.attend(both, params, *parts).reshape(*x.shape[:2], -1) @ weight["o"].T

    out, back = run(f, cotangent(case), a["x"])
    yield Check("out", out, a["out"], 2e-5)
    yield Check("grad_x", back[0], a["grad_x"], case.backward)
    length = args["length"]
    each = np.broadcast_to(np.eye(length, dtype=np.float32)[None, :, None], (args["batch"], length, groups, length))
    weights = jax.jit(f)(a["x"], each).transpose(0, 2, 1, 3)  # what it attends to, as values
    yield Check("weights", weights, a["weights"], 2e-5)
    yield from _distances(turned, a["distance"], d, args["rope_theta"])


def _text(args):
    about = f"window={args['window']}, base={args['rope_theta']!r}, bidirectional=False"
    if args["kind"] == "self_extend":
        return f"self_extend(group={args['group']}, {about})"
    return f"rerope(leak={1 / args['leak'] if 'leak' in args else 0.0!r}, {about})"


def _distances(turned, distance, d, base):
    """Distances are seen as the cosine and the sine of their angle, for each frequency."""
    length, pairs = len(distance), d // 2
    behind = np.tri(length, dtype=bool)
    for pair in range(pairs):
        angle = np.where(behind, distance, 0) * base ** (-pair / pairs)
        first, second = (jnp.broadcast_to(jnp.eye(d)[n], (length, 1, d)) for n in (pair, pair + pairs))
        for name, k, theirs in (("cosine", first, np.cos(angle)), ("sine", second, np.sin(angle))):
            ours = scores(turned, NONE, first, k, scale=1.0)[0]
            yield Check(f"distance, {name} {pair}", np.where(behind, ours, theirs), theirs, 2e-5)
