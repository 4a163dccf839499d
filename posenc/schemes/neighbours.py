"""Keys, and maybe values and queries, that read the tokens just before theirs."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics import segment_scans
from posenc.numerics.rotation import End, check_share


class KeyOffset(Scheme, name="key_offset"):
    """A part of each key that is the previous token's (Jordan et al., 2024, modded-nanogpt, record 49).

        k'_j = [k_j's first (1 - f) d features ‖ k_{j-1}'s last f d features]

    So a query meets, at a key, what stood before it: an induction head needs one layer. f is `fraction`. It is meant
    for features that no rotation turns, `key_offset + rope(fraction=0.5)`; with `at="start"` the first features are
    those of the token before. The first key of a document keeps its own; the release lets that key read the document
    before, and its mask hides neither. Values and queries are unchanged.

    ```bibtex
    @misc{jordan2024modded,
      title = {modded-nanogpt: Speedrunning the {NanoGPT} baseline},
      author = {Jordan, Keller and others},
      year = {2024},
      howpublished = {Released code, train\\_gpt.py at f411b3d},
    }
    ```
    """

    fraction: float = 0.5
    at: End = "end"

    family = "context"
    samples = ({"fraction": 0.25, "at": "start"},)

    def validate(self):
        check_share("key_offset", "fraction", self.fraction)

    def bind(self, dims):
        self._width(dims.head)
        return self

    def neighbour_carry(self, dims):
        groups = dims.key_heads or dims.heads
        return {"key": segment_scans.none(1, groups * round(self.fraction * dims.head) + 1)}

    def neighbours(self, p, role, a, at, past):
        width, groups = self._width(a.shape[-1]), a.shape[1]
        border = width if self.at == "start" else a.shape[-1] - width
        moves, stays = (a[..., :border], a[..., border:]) if self.at == "start" else (a[..., border:], a[..., :border])
        marked = jnp.concatenate([moves.reshape(a.shape[0], -1), jnp.ones_like(a[:, 0, :1])], -1)
        near, past = segment_scans.recent(marked, at.segment, past)  # [L, 2, G width + 1]
        before = near[:, 0, :-1].reshape(-1, groups, width)
        moved = jnp.where(near[:, 0, -1:, None] > 0, before, moves)
        return jnp.concatenate([moved, stays] if self.at == "start" else [stays, moved], -1), past

    def _width(self, head: int) -> int:
        width = round(self.fraction * head)
        if abs(width - self.fraction * head) > 1e-6 or not width:
            raise ValueError(
                f"'key_offset' moves fraction={self.fraction} of {head} features, and that must be a whole number; take"
                f" fraction={max(1, int(self.fraction * head)) / head:.6g}."
            )
        return width


class KVShift(Scheme, name="kv_shift"):
    """Keys and values mixed with those of the token before, by two learned numbers each (Xu et al., 2024, "KV shifting
    attention").

        k'_j = a_g k_j + b_g k_{j-1},   v'_j = c_g v_j + e_g v_{j-1}

    Each key head g has its own four numbers. Nothing stands before the first token of a document. They start at 1 and
    0, as plain attention; where the authors start was not in reach. Written from the equation; no authors' code was
    found.

    ```bibtex
    @inproceedings{xu2025kv,
      title = {{KV} Shifting Attention Enhances Language Modeling},
      author = {Xu, Mingyu and Cheng, Wei and Wang, Bingning and Chen, Weipeng},
      booktitle = {International Conference on Machine Learning},
      year = {2025},
      eprint = {2411.19574},
    }
    ```
    """

    family = "context"

    def init(self, key, dims):
        start = jnp.tile(jnp.array([1.0, 0.0]), (dims.key_heads or dims.heads, 1))
        return {"key": start, "value": start}

    def neighbour_carry(self, dims):
        return {role: segment_scans.none(1, (dims.key_heads or dims.heads) * dims.head) for role in ("key", "value")}

    def neighbours(self, p, role, a, at, past):
        weights = p[role][:, ::-1, None]  # [G, before and own, 1]
        return _convolved(jnp.broadcast_to(weights, (*weights.shape[:2], a.shape[-1])), a, at.segment, past)


class Canon(Scheme, name="canon"):
    """Queries, keys and values each added to a short convolution of the tokens up to it, a filter for each feature
    (Allen-Zhu, 2025, "Canon layers", position B).

        a'_i = a_i + Σ_{l < k} f_l ⊙ a_{i-l}     for a = q, k and v, before any rotation

    `k` is the length of the filters. With `residual=False` the convolution stands alone, with an `activation` after it
    where it has one, as options of the authors' code. Filters begin anew with each document and start uniform between
    ±k^(-1/2), as PyTorch's. The authors have such layers at three other places of a block too, which belong to the
    model.

    ```bibtex
    @misc{allenzhu2025canon,
      title = {Physics of Language Models: Part 4.1, Architecture Design and the Magic of Canon Layers},
      author = {Allen-Zhu, Zeyuan},
      year = {2025},
      eprint = {2512.17351},
    }
    ```
    """

    k: int = 4
    residual: bool = True
    activation: Literal["none", "silu"] = "none"

    family = "context"
    limits = {"cross": "its queries are mixed with those before them in one sequence"}
    samples = ({"k": 2, "residual": False, "activation": "silu"},)

    def validate(self):
        if self.k < 1:
            raise ValueError(f"'canon' has filters of k={self.k} tokens; it must be at least 1.")

    def init(self, key, dims):
        bound, groups = self.k**-0.5, dims.key_heads or dims.heads
        draw = lambda key, heads: jax.random.uniform(key, (heads, dims.head, self.k), minval=-bound, maxval=bound)  # noqa: E731
        keys = jax.random.split(key, 3)
        return {"query": draw(keys[0], dims.heads), "key": draw(keys[1], groups), "value": draw(keys[2], groups)}

    def neighbour_carry(self, dims):
        groups = dims.key_heads or dims.heads
        tokens = lambda heads: segment_scans.none(self.k - 1, heads * dims.head)  # noqa: E731
        return {"query": tokens(dims.heads), "key": tokens(groups), "value": tokens(groups)}

    def neighbours(self, p, role, a, at, past):
        if a.shape[-1] != p[role].shape[1]:
            raise ValueError(
                f"'canon' has a filter for each of {p[role].shape[1]} features of a {role}, and a {role} has"
                f" {a.shape[-1]}; give values as wide as keys."
            )
        out, past = _convolved(p[role].swapaxes(1, 2), a, at.segment, past)
        out = jax.nn.silu(out) if self.activation == "silu" else out
        return (a + out if self.residual else out), past


def _convolved(
    filters: Float[Array, "H n d"], a: Float[Array, "L H d"], segment: Int[Array, " L"], past: PyTree
) -> tuple[Float[Array, "L H d"], PyTree]:
    """The weighted sum of each token and those before it, the last weight its own; in the type of `a`, rounded once."""
    exact = bias_dtype(a)
    near, past = segment_scans.recent(a.reshape(a.shape[0], -1), segment, past)  # [L, n, H d]
    near = near.reshape(*near.shape[:2], *a.shape[1:]).astype(exact)
    return (near * filters.swapaxes(0, 1)[None].astype(exact)).sum(1).astype(a.dtype), past
