"""Algebraic positions: each step in a sequence, grid or tree is an orthogonal matrix, and a path is their product."""

from __future__ import annotations

import math
from typing import Literal

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posenc.core.scheme import Scheme, bias_dtype, by_settings
from posenc.numerics import tree
from posenc.numerics.orthogonal import skew, turns
from posenc.numerics.rotation import frequencies


class Algebraic(Scheme, name="algebraic"):
    """A step is a learned orthogonal matrix, and a position the product of the steps that lead to it (Kogkalidis et
    al., 2024, §3).

        s_ij = decay^{steps between i and j} (M_{p_i} q_i) · (M_{p_j} k_j) / √d,   W = exp(S),   S skew-symmetric
        sequence: M_p = W^p     grid: M_{x,y} = W_x^x ⊕ W_y^y     tree: M_v = W_{c_1}ᵀ … W_{c_n}ᵀ

    In a grid each axis has half of a head, and a position has two numbers. In a tree every node has up to `branching`
    children, and a position is one integer: node v > 0 is child (v - 1) mod `branching` of the node
    ⌊(v - 1) / `branching`⌋, breadth first from the root 0, as in the authors' code; so 32 bits hold 30 levels of a
    binary tree. The common beginning of two paths cancels in the score. In a sequence or a grid positions may be real.

    The authors' experiments multiply scores by 0.98^steps, which is `decay=0.98`; their equations do not (`decay=1`).
    Steps in a grid are summed over both axes. Steps between two nodes of a tree are counted through their last common
    ancestor. The released code pads paths with one number and looks for another, so that it counts
    2 (longest path - common path), which depends on the other nodes of the batch; this is not offered. Every W starts
    as RoPE's rotation, in pairs (2i, 2i + 1), one for each head; the authors fit theirs to it with an optimiser,
    rotating in the opposite direction, and with every second frequency repeated.

    In a sequence or a grid each token costs one matrix per head, computed once for query and key. In a tree query and
    key climb all levels that 32 bits hold, and with a decay every pair of tokens takes as many steps as the pair
    farthest apart.

    Powers of W in a float32 model turn by float32 angles: the error of a score is about 2e-3 at position 10⁵, and
    nothing of the position is left at 2²⁹.

    ```bibtex
    @inproceedings{kogkalidis2024algebraic,
      title = {Algebraic Positional Encodings},
      author = {Kogkalidis, Konstantinos and Bernardy, Jean-Philippe and Garg, Vikas},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2024},
      eprint = {2312.16045},
    }
    ```
    """

    structure: Literal["sequence", "grid", "tree"] = "sequence"
    branching: int = 2
    decay: float = 1.0

    family = "rotary"
    extrapolates = "none reported"
    axes = by_settings(lambda self: 2 if self.structure == "grid" else 1)
    reads = by_settings(lambda self: "nothing" if self.decay == 1 else "positions")
    passes_info = by_settings(lambda self: self.structure == "tree")
    samples = (
        {"structure": "grid", "decay": 0.98},
        {"structure": "tree", "decay": 0.98},
        {"structure": "tree", "branching": 3},
        {"decay": 0.9},
    )

    def validate(self):
        if self.branching < 2:
            raise ValueError(
                f"'algebraic' has branching={self.branching}; it must be at least 2 children, or take"
                " structure='sequence'."
            )
        if not 0 < self.decay <= 1:
            raise ValueError(f"'algebraic' has decay={self.decay}; it must be above 0 and at most 1.")

    def bind(self, dims):
        self._part(dims.head)
        return self

    def overrides(self, *hooks):
        return Scheme.overrides(self, *(h for h in hooks if h != "score" or self.decay != 1))

    def check_positions(self, p, position):
        if self.structure != "tree":
            return
        if not jnp.issubdtype(position.dtype, jnp.integer):
            raise TypeError(
                f"'algebraic' was given positions of type {position.dtype}; nodes of a tree must be integers."
            )
        if not isinstance(position, jax.core.Tracer) and position.size and np.min(position) < 0:
            raise ValueError(f"'algebraic' was given the node {np.min(position)}; nodes are numbered from the root, 0.")

    def init_head(self, key, dims):
        size = self._part(dims.head)
        first = np.arange(0, size - 1, 2)
        generator = np.zeros((size, size))
        generator[first, first + 1] = -frequencies(2 * len(first), 10000.0)
        steps = self.branching if self.structure == "tree" else self.axes
        return {"step": jnp.asarray(np.stack([generator[np.triu_indices(size, 1)]] * steps), jnp.float32)}

    def locate(self, p, x, at, carry):
        if self.structure == "tree":
            return at.position, carry
        generator = self._generator(p, jnp.result_type(float))  # the type of the queries is not known yet
        position = at.position.reshape(-1, self.axes).astype(generator.dtype)
        return jax.vmap(turns, (0, 1), 1)(generator, position), carry

    def query(self, p, q, info):
        exact, size = bias_dtype(q), self._part(q.shape[-1])
        if self.structure == "tree":
            mapped = tree.along_path(q.astype(exact), info, self._generator(p, exact)).astype(q.dtype)
            return mapped, () if self.decay == 1 else info
        parts = q.reshape(q.shape[0], self.axes, size).astype(exact)
        mapped = jnp.einsum("labc,lac->lab", info.astype(exact), parts, precision="highest")
        return mapped.reshape(q.shape).astype(q.dtype), ()

    def key(self, p, k, info):
        return self.query(p, k, info)

    def score(self, p, s, tile):
        if self.decay == 1:
            return s
        if self.structure == "tree":
            steps = tree.steps_between(tile.query_info, tile.key_info, self.branching)
        else:
            steps = jnp.abs(tile.distance).reshape(*s.shape, self.axes).sum(-1)
        lost = jnp.expm1(steps.astype(s.dtype) * np.log(self.decay).astype(s.dtype))
        return s + tile.logits * lost  # only the product decays, not what other schemes added

    def _generator(self, p: dict, dtype: jnp.dtype) -> Float[Array, "steps n n"]:
        entries = p["step"].shape[-1]
        size = (1 + math.isqrt(1 + 8 * entries)) // 2  # the n of n(n - 1) / 2 entries
        return skew(p["step"].astype(dtype), size)

    def _part(self, head: int) -> int:
        """The number of features for each axis; a `ValueError` where a head cannot be shared equally."""
        if head < 2 * self.axes or head % self.axes:
            near = max(head // 2 * 2, 4) if self.structure == "grid" else 2
            raise ValueError(
                f"'algebraic' cannot share the {head} features of a head equally among its axes; take {near}."
            )
        return head // self.axes
