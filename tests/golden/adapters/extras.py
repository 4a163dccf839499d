"""What x-transformers adds: PoPE, forgetting in both directions, and a continuous bias of an MLP."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.core.scheme import Tile
from tests.golden.case import Case, Check
from tests.golden.through import bias, scores

schemes = ("pope", "fox", "log_cpb")


def compare(case: Case) -> Iterator[Check]:
    yield from {"pope": _pope, "forget": _forget, "mlp_bias": _mlp}[case.id.rstrip("0123456789")](case)


def _pope(case: Case) -> Iterator[Check]:
    a, scheme = case.arrays, posenc.parse("pope")
    p, index = {"delta": jnp.asarray(a["learned_bias"][:, 0])}, jnp.arange(case.args["length"], dtype=jnp.int32)
    for side, name in (("query", "q"), ("key", "k")):
        ours = jax.vmap(lambda p, x, side=side: getattr(scheme, side)(p, x, index)[0])(p, jnp.asarray(a[name][0]))
        yield Check(f"{name}_out", ours[None], a[f"{name}_out"], 1e-5)
    q, k = (jnp.asarray(a[n][0]).swapaxes(0, 1) for n in "qk")
    ours = scores(scheme, {"layer": {}, "heads": p}, q, k, scale=1.0)[None]
    yield Check("scores", ours, a["scores"], 1e-5)


def _forget(case: Case) -> Iterator[Check]:
    """The gates of the past are FoX's. In the other direction a second set of gates gives the same, with query and key
    exchanged; no scheme here looks that way, so that triangle is made of FoX's hooks."""
    a, heads = case.arrays, case.args["heads"]
    w, b = a["to_forget_gates.0.weight"], a["to_forget_gates.0.bias"]
    ours = np.tril(_forgetting(w[:heads], b[:heads], a["x"]))
    theirs = a["bias"]
    if case.args["causal"]:
        theirs = np.tril(theirs)
    else:
        ours = ours + np.tril(_forgetting(w[heads:], b[heads:], a["x"])).swapaxes(2, 3)
    yield Check("bias", ours, theirs, 1e-5)


def _forgetting(w, b, x) -> np.ndarray:
    """What FoX adds to scores, `[batch, heads, query, key]`."""
    fox, index = posenc.parse("fox"), jnp.arange(x.shape[1], dtype=jnp.int32)
    square = (len(index), len(index))
    zero, seen = jnp.zeros(square), jnp.ones(square, bool)
    at = posenc.At(index, index, jnp.ones_like(index), index + 1, jnp.int32(0), len(w))

    def one(w, b, x):
        c, _ = fox.locate({"w": w, "b": b}, x, at, fox.carry(None))
        return fox.score({}, zero, Tile(c, c, zero, zero, 1.0, seen, index, index, jnp.int32(0), len(w)))

    every = jax.vmap(jax.vmap(one, (0, 0, None)), (None, None, 0))
    return np.asarray(every(jnp.asarray(w), jnp.asarray(b), jnp.asarray(x)))


def _mlp(case: Case) -> Iterator[Check]:
    """Their logarithm of 1 + the distance is natural, where that of `log_cpb` has the base 8."""
    a, args = case.arrays, case.args
    logarithm, depth = args["log_distance"], args["depth"]
    scheme = posenc.parse(
        f"log_cpb(reach={8.0 if logarithm else 1.0}, spacing={'log' if logarithm else 'linear'!r}, bounded=False,"
        f" activation='silu', depth={depth}, hidden={args['dim']})"
    )
    layer = {}
    for n in range(depth):
        factor = np.float32(np.log(8)) if logarithm and n == 0 else np.float32(1)
        layer |= {f"w{n + 1}": factor * a[f"mlp.{n}.0.weight"].T, f"b{n + 1}": a[f"mlp.{n}.0.bias"]}
    params = {"layer": layer, "heads": {"w": a[f"mlp.{depth}.weight"], "b": a[f"mlp.{depth}.bias"]}}
    ours = bias(scheme, jax.tree.map(jnp.asarray, params), args["heads"], args["q_len"], args["k_len"])
    yield Check("bias", ours, a["bias"], 1e-5)
