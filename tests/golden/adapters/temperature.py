"""Llama 4's attention: a temperature where nothing is turned, a rotation and a norm where something is."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Case, Check
from tests.golden.turned import pull, turned

schemes = ("llama4", "rope")


def compare(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    positions, weight = a["positions"], {n: a[f"W.{n}_proj.weight"] for n in "qkvo"}
    scheme = _scheme(args)

    def sides(x):
        """Queries and keys as attention uses them, and values; heads first."""
        q, k, v = (_heads(x @ weight[n].T, args["head_dim"]) for n in "qkv")
        q, k = turned(scheme, "query", q, positions), turned(scheme, "key", k, positions)
        norm = lambda x: x / jnp.sqrt((x * x).mean(-1, keepdims=True) + args["norm_eps"])  # noqa: E731
        return (norm(q), norm(k), v) if args["qk_norm"] and args["use_rope"] else (q, k, v)

    def attend(x, values=None):
        if args["qk_norm"] and args["use_rope"]:  # the norm stands between the rotation and the product
            hooks, (q, k, v) = posenc.parse("nope"), sides(x)
        else:
            hooks, (q, k, v) = scheme, (_heads(x @ weight[n].T, args["head_dim"]) for n in "qkv")
        v = v if values is None else values
        q, k, v = (t.swapaxes(1, 2) for t in (q, k, v))
        return posenc.attend(hooks, {"layer": {}, "heads": {}}, q, k, v, positions=positions)

    def whole(x):
        out = attend(x)
        return out.reshape(*out.shape[:2], -1) @ weight["o"].T

    q, k, _ = sides(a["x"])
    yield Check("q_used", q, a["q_used"], case.forward)
    yield Check("k_used", k, a["k_used"], case.forward)
    yield Check("weights", jax.jit(lambda x: _weights(attend, x, k.shape))(a["x"]), a["weights"], case.forward)
    yield Check("out", jax.jit(whole)(a["x"]), a["out"], case.forward)
    yield Check("grad_x", pull(whole, a["x"], a["cotangent"]), a["grad_x"], case.backward)


def _scheme(args):
    if args["use_rope"]:
        return posenc.parse(f"rope(base={args['rope_theta']!r}, layout={args['layout']!r})")
    if not args["temperature_tuning"]:
        return posenc.parse("nope")
    return posenc.parse(f"llama4(strength={args['attn_scale']!r}, floor={args['floor_scale']!r})")


def _heads(x: jax.Array, head: int) -> jax.Array:
    return x.reshape(*x.shape[:2], -1, head).swapaxes(1, 2)


def _weights(attend, x: np.ndarray, keys: tuple[int, ...]) -> jax.Array:
    """Each key's weight is what comes out of values that are one at that key and zero elsewhere."""
    batch, groups, length, head = keys
    one = lambda hot: attend(x, jnp.broadcast_to(hot[None, None, :, None], (batch, groups, length, head)))  # noqa: E731
    out = jax.vmap(one)(jnp.eye(length, dtype=x.dtype))
    return out[..., 0].transpose(1, 3, 2, 0)
