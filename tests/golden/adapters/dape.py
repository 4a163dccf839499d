"""Scores before and after, of both versions, over each bias; the second as released, where the array of keys ends."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.core.scheme import GROUP_AXIS, REPEAT_AXIS
from tests.golden.case import Check
from tests.golden.through import cotangent, gradients, run

schemes = ("dape", "dape_v2")
LAYERS = ("mlp2.0.weight", "mlp2.0.bias", "mlp2.2.weight", "mlp2.2.bias")
BIAS = {"kerple": ("bias_p", "bias_a"), "alibi": (), "none": (), "fire": ("c", "L_multiplier")}
FIRE = ("mlp.0.weight", "mlp.0.bias", "mlp.2.weight", "mlp.2.bias")


def compare(case):
    a, said = case.arrays, case.args
    heads, hidden, kernel = said["heads"], said["mlp_width"], said.get("kernel", 1)
    edge = ", edge='array'" if kernel > 1 else ""
    text = f"dape({hidden})" if said["version"] == 1 else f"dape_v2({kernel}, {hidden}{edge})"
    before = "nope" if said["bias"] == "none" else said["bias"]
    if before == "fire":  # theirs is halved before it is recorded, and leaky, so that each of its units is two of ours
        before = f"fire({2 * len(a['mlp.0.bias'])}, {float(a['init_L'])!r})"
    dims = posenc.Dims(heads, heads, 1, case.args["length"])
    chain = posenc.bind(posenc.parse(f"{before} + {text}"), dims)
    names = ["scores_in", *BIAS[said["bias"]], *LAYERS]

    def f(scores, *given):
        p = dict(zip(names[1:], given, strict=True))
        first = p["mlp2.0.weight"]
        if said["bias"] == "none":  # without a bias they leave out its half of the inputs
            first = jnp.concatenate([first, jnp.zeros_like(first)], 1)
        shape = (-1,) if said["version"] == 1 else (-1, hidden, kernel)
        first = jnp.moveaxis(first.reshape(hidden, 2 * heads, kernel), 0, 1)
        own = {
            "layer": {"w1": first[..., 0] if said["version"] == 1 else first, "b1": p["mlp2.0.bias"]},
            "heads": {"w2": p["mlp2.2.weight"].reshape(heads, hidden, *shape[2:]), "b2": p["mlp2.2.bias"]},
        }
        return adapted(chain, (_bias(said["bias"], p, a, heads), own), scores)

    lower = np.tri(a["scores_in"].shape[-1], dtype=np.float32)[None, None]
    out, back = run(f, cotangent(case), *(a[n] for n in names))
    yield Check("scores_out", out * lower, a["scores_out"] * lower, case.forward)
    yield from gradients(case, names, back)


def _bias(kind, p, a, heads):
    """The parameters of the bias before."""
    if kind == "kerple":
        return {"layer": {}, "heads": {"r1": p["bias_p"].reshape(heads), "r2": p["bias_a"].reshape(heads)}}
    if kind != "fire":
        return {"layer": {}, "heads": {}}
    w1, b1, w2, b2 = (jnp.asarray(a[n]) for n in FIRE)
    w1, b1 = jnp.concatenate([w1[:, 0], -w1[:, 0]]), jnp.concatenate([b1, -b1])
    layer = {"c": p["c"], "m": p["L_multiplier"], "w1": w1, "b1": b1}
    return {"layer": layer, "heads": {"w2": jnp.concatenate([w2, -0.01 * w2], 1), "b2": b2}}


def adapted(scheme, params, raw):
    """Causal scores `[B, H, Q, K]` after a sum that reads all heads."""
    heads, index = raw.shape[1], jnp.arange(raw.shape[-1], dtype=jnp.int32)
    pick = lambda group: tuple(p[group] for p in params)  # noqa: E731
    distance, seen = index[:, None] - index[None, :], index[None, :] <= index[:, None]

    @functools.partial(jax.vmap, in_axes=(0, 0, 0), axis_name=GROUP_AXIS)
    @functools.partial(jax.vmap, in_axes=(None, None, None), axis_name=REPEAT_AXIS, axis_size=1)
    def one(own, head, s):
        p = tuple(a | b for a, b in zip(pick("layer"), own, strict=True))
        told = (index, ())
        tile = posenc.Tile(told, told, (distance,) * 2, s, 1.0, seen, index, index, head, heads)
        return scheme.score(p, s, tile)

    return jax.vmap(lambda s: one(pick("heads"), jnp.arange(heads), s)[:, 0])(raw)
