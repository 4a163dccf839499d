"""Attention that is watched at work: one sequence under a scheme, and what every hook makes of it.

The hooks run in the order of the dense kernel; that nothing is missed is checked against `posenc.attend`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.attention import kernels, sides
from posenc.attention.arguments import placed
from posenc.attention.kernels import Pairs, Side
from posenc.attention.kernels.dense import softmax
from posenc.coordinates import place
from posenc.core.compose import Windowed, bare, imply, merge, pick, spread
from posenc.core.masks import window
from posenc.core.parameters import bound
from posenc.core.scheme import GROUP_AXIS, REPEAT_AXIS, At, Dims, Scheme, Tile
from posenc.lab.models.attentions import additive

KEY = 0


class Additive(Scheme, name=None):
    """Additive attention: a query and a key through one hidden layer (Bahdanau et al., 2015, §3.1, appendix A.1.2).

        s_ij = v · tanh(q_i + k_j)      q = W_a y, k = U_a x

    A layer of 2014's search model as a scheme of ours, so that the same attention computes it.
    """

    name = "additive"
    reads = "content"
    precedence = "first"

    vector: tuple[float, ...] = (1.0,)

    def scale(self, d):
        return 1.0

    def query(self, p, q, info):
        return q, q

    def key(self, p, k, info):
        return k, k

    def score(self, p, s, tile):
        return additive(tile.query_info, tile.key_info, jnp.asarray(self.vector, s.dtype))


def positions(scheme: Any, length: int, one: bool = True) -> Any:
    """Positions of a scheme with coordinates; None, the index, for all others."""
    if not placed(scheme):
        return None
    if not one:
        raise ValueError("Coordinates are drawn for one sequence; explain this scheme in a form that has one.")
    return place(scheme, jax.random.key(KEY), {"index": np.arange(length), "length": np.int32(length)})


def watch(
    scheme: Any, params: Any, q: Any, k: Any, v: Any, *, x: Any, key_x: Any = None, causal: bool, where: Any = None
) -> dict[str, np.ndarray]:
    """What attention computes, by name, heads first: "query", "key", "value" after their hooks, "dot" (q·k), "scaled",
    "score", "visible", "weights", "mixed" (a·v), "value_bias" and "out".

    q, k, v are `[L, H, d]`, x and key_x `[L, width]`, in float64. `scheme` is bound to its sizes.
    """
    hooks, mask = bound(bare(scheme)), "causal" if causal else "full"
    q, k, v, x = map(jnp.asarray, (q, k, v, x))
    about = {"x": x, "key_x": key_x, "positions": where, "mask": mask, "kernel": "dense"}
    out = posenc.attend(scheme, params, q, k, v, **about)
    look = scheme.narrow(window(mask)) if isinstance(scheme, Windowed) else window(mask)
    found = _hooks(hooks, params, (q, k, v), (x, key_x), where, look)
    found = {name: np.asarray(a, bool if name == "visible" else float) for name, a in found.items()}
    wrong = np.max(np.abs(found["out"] - np.asarray(out).swapaxes(0, 1)), initial=0.0)
    if not wrong < 1e-9:
        raise RuntimeError(f"the steps end {wrong:.1e} away from posenc.attend")
    return found


def _hooks(hooks: Scheme, params: Any, qkv: tuple, xs: tuple, positions: Any, look: Any) -> dict[str, Any]:
    """Every hook in its place, as `posenc.attend` calls them, and what each returns."""
    (q, k, v), (x, key_x) = qkv, xs
    heads, both = q.shape[1], (pick(params, "layer"), pick(params, "heads"))
    qi, ki = (jnp.arange(len(a), dtype=jnp.int32) for a in (q, k))
    first = sides.start(hooks, both, Dims(x.shape[-1], heads, q.shape[-1], len(k)))
    count = kernels.visible(look, Side(None, qi, None), Side(None, ki, None), len(q))
    at = _at(hooks, qi, positions, count, heads)
    told, _ = sides.tell(hooks, both, x, at, first)
    key_at, key_told = at, told
    if key_x is not None:
        key_at = _at(hooks, ki, positions, jnp.zeros_like(ki), heads)
        key_told, _ = sides.tell(hooks, both, key_x, key_at, first)
        told = sides.lookup(hooks, both, told, key_told, qi)
    keys = sides.encode(hooks, both, k, v, key_told, heads)
    asked, said = sides.ask(hooks, both, q, told)
    query, key = Side(at.position, qi, None), Side(key_at.position, ki, None)
    pairs = Pairs(query, key, look, hooks.scale(q.shape[-1]), heads, positions is None)
    found = _square(hooks, both, asked, said, keys, pairs)
    received = sides.receive(hooks, both, (found["mixed"] + found["value_bias"]).swapaxes(0, 1), told)
    return found | {"query": asked, "key": keys.k, "value": keys.v, "out": received.swapaxes(0, 1)}


def _square(hooks: Scheme, both: Any, q: Any, said: Any, keys: sides.Keys, pairs: Pairs) -> dict[str, Any]:
    distance, seen = pairs.distance(), pairs.seen()

    def one(own, head, q, said, keys):
        p = merge(both[0], own)
        dot = q @ keys.k.T
        raw = dot * pairs.scale
        tile = Tile(
            said, keys.said, distance, raw, pairs.scale, seen, pairs.query.index, pairs.key.index, head, pairs.heads
        )
        score = hooks.score(p, raw, tile)
        a = hooks.normalize(p, score, tile) if hooks.overrides("normalize") else softmax(score, seen)
        mixed = a @ keys.v
        extra = hooks.value_bias(p, a, tile) if hooks.overrides("value_bias") else jnp.zeros_like(mixed)
        words = {
            "dot": dot,
            "scaled": raw,
            "score": score,
            "visible": seen,
            "weights": a,
            "mixed": mixed,
            "value_bias": extra,
        }
        return words

    said = jax.tree.map(lambda a: jnp.broadcast_to(a, (pairs.heads, *a.shape[1:])), said)  # some say it alike
    each = (both[1], jnp.arange(pairs.heads), q, said, keys)
    nested = jax.tree.map(lambda a: a[:, None], each)
    found = jax.vmap(jax.vmap(one, axis_name=REPEAT_AXIS), axis_name=GROUP_AXIS)(*nested)
    return {name: a[:, 0] for name, a in found.items()}


def _at(hooks: Scheme, index: Any, positions: Any, visible: Any, heads: int) -> At:
    told = spread(hooks, imply(hooks, index) if positions is None else positions)
    return At(told, index, jnp.ones_like(index), visible, jnp.int32(0), heads)
