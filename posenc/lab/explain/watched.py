"""Attention with its intermediate arrays: every step for one sequence under a scheme.

The steps are those of `posenc.attend` with the dense kernel: the same functions, which here keep all arrays.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from posenc.attention.attend import attend
from posenc.attention.encode import encode, finish
from posenc.attention.kernels import dense
from posenc.attention.options import Options
from posenc.attention.tokens import Tokens
from posenc.attention.validation import validate
from posenc.coordinates import place
from posenc.core.compose import normal_form
from posenc.core.scheme import Scheme
from posenc.lab.models.attentions import additive

KEY = 0


class AdditiveScore(Scheme, name=None):
    """Additive attention: a query and a key through one hidden layer (Bahdanau et al., 2015, §3.1, appendix A.1.2).

        s_ij = v · tanh(q_i + k_j)      q = W_a y, k = U_a x

    The layer of the 2014 translation model, written as a scheme so that the same attention computes it.
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


def positions(scheme: Any, length: int, single: bool = True) -> Any:
    """Positions of a scheme with coordinates; None, the index, for all others."""
    if not normal_form(scheme).coordinates:
        return None
    if not single:
        raise ValueError(
            "Coordinates are drawn for one sequence; use --form single, multi-head or masked for this scheme."
        )
    return place(scheme, jax.random.key(KEY), {"index": np.arange(length), "length": np.int32(length)})


def watch(
    scheme: Any, params: Any, q: Any, k: Any, v: Any, *, x: Any, key_x: Any = None, causal: bool, where: Any = None
) -> dict[str, np.ndarray]:
    """The arrays of attention by name, heads first: "query", "key", "value" after their hooks, "dot" (q·k), "scaled",
    "score", "visible", "weights", "mixed" (a·v), "value_bias" and "out".

    q, k, v are `[L, H, d]`, x and key_x `[L, width]`, in float64. `scheme` is bound to its sizes.
    """
    mask = "causal" if causal else "full"
    t = Tokens(*map(jnp.asarray, (q, k, v, x)), key_x=key_x, positions=where)
    form, t, start = validate(scheme, params, t, None, Options(mask), "dense", None)
    encoded, info = encode(form, jax.tree.map(jnp.asarray, t), jnp.int32(start))
    steps = dense.steps(form, encoded)
    flat = lambda a: a.reshape(form.heads, *a.shape[2:])  # noqa: E731
    bias = jnp.zeros_like(steps.mixed) if steps.value_bias is None else steps.value_bias
    mixed = flat(steps.mixed + bias).swapaxes(0, 1)
    out = finish(form.scheme, form.params, mixed, info)
    each = {
        "dot": steps.dot, "scaled": steps.logits, "score": steps.score, "weights": steps.weights, "mixed": steps.mixed,
        "value_bias": bias,
    }  # fmt: skip
    arrays = {name: flat(a) for name, a in each.items()} | {
        "query": encoded.q,
        "key": encoded.k,
        "value": encoded.v,
        "visible": jnp.broadcast_to(steps.visible, (form.heads, *steps.visible.shape)),
        "out": out.swapaxes(0, 1),
    }
    arrays = {name: np.asarray(a, bool if name == "visible" else float) for name, a in arrays.items()}
    arguments = {"x": x, "key_x": key_x, "positions": where, "mask": mask, "kernel": "dense"}
    expected = np.asarray(attend(scheme, params, q, k, v, **arguments)).swapaxes(0, 1)
    wrong = np.max(np.abs(arrays["out"] - expected), initial=0.0)
    if not wrong < 1e-9:
        raise RuntimeError(f"the steps end {wrong:.1e} away from posenc.attend")
    return arrays
