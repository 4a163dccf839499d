"""Directions, strengths and gates given as they are: each head picks its own from features that hold them all."""

import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.contextual import sides
from tests.golden.through import checks, run

schemes = ("path",)


def compare(case):
    args, a = case.args, case.arrays
    heads, d = args["q_heads"], args["head_dim"]
    names = ["w_raw", "beta_raw", "gate_logits"] if args["forget_gate"] else ["w_raw", "beta_raw"]
    width = sum(int(np.prod(a[name].shape[2:])) for name in names)

    def scheme(forget):
        return posenc.parse(f"path(rank={width}, kernel=1, activation='none', forget={forget!r})")

    def layer(forget):
        def f(q, k, v, *raw):
            x = _features(raw)
            p = _params(args, width)
            return posenc.attend(scheme(forget), p, q, k, v, x=x)

        return f

    given = ["q", "k", "v", *names]
    released = "scaled" if args["forget_gate"] else "none"
    yield from checks(case, given, *run(layer(released), a["cotangent"], *(a[name] for name in given)))
    if args["forget_gate"]:
        out, _ = run(layer("unscaled"), None, *(a[name] for name in given))
        yield Check("out_gate_unscaled", out, a["out_gate_unscaled"], case.forward)
    empty = jnp.zeros((args["batch"], heads, args["length"], d), jnp.float32)
    x = _features([jnp.asarray(a[name]) for name in names])
    (w, beta, _), _, _ = sides(scheme(released), _params(args, width), x, empty, empty)
    first = slice(None, None, heads // args["kv_heads"])  # of the query heads that share keys
    yield Check("w", w[:, first].swapaxes(1, 2), a["w"], case.forward)
    yield Check("beta", beta[:, first].swapaxes(1, 2), a["beta"], case.forward)


def _features(raw):
    return jnp.concatenate([one.reshape(*one.shape[:2], -1) for one in raw], -1)


def _params(args, width):
    """Matrices that pick what is each head's; heads that share keys pick the same directions and strengths."""
    heads, groups, d = args["q_heads"], args["kv_heads"], args["head_dim"]
    pick, mine = np.eye(width, dtype=np.float32), np.arange(heads) * groups // heads
    up = np.stack([pick[g * d : (g + 1) * d] for g in mine])
    zeros, ones = np.zeros(heads, np.float32), np.ones((heads, d, 1), np.float32)
    own = {"up": up, "conv": ones, "beta": pick[groups * d + mine], "beta_bias": zeros}
    if args["forget_gate"]:
        own |= {"gate": pick[groups * (d + 1) :], "gate_bias": zeros}
    return {"layer": {"down": pick}, "heads": own}
