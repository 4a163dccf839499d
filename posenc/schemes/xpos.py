"""xPos: RoPE whose scores shrink with distance."""

from __future__ import annotations

import dataclasses

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Num

from posenc.core.scheme import Scheme, bias_dtype, bound_setting
from posenc.numerics.rotation import Layout, angles, check_base, check_pairs, frequencies, turn


class XPos(Scheme, name="xpos"):
    """RoPE whose scores shrink exponentially with distance, fast pairs faster (Sun et al., 2023, §3.2, algorithm 1).

        q'_i = ζ^(p_i / B) R(p_i ω) q_i,   k'_j = ζ^(-p_j / B) R(p_j ω) k_j,   ζ_k = (2k / d + γ) / (1 + γ)

    B is `scale_base`: left open it is half the training length, the authors' proportion (512 of 1024 tokens).

    The authors' code measures p in ζ from the middle of the sequence, which moves as the sequence grows. Its cache is
    right, since it keeps plain keys and turns all of them in each step; a cache of turned keys would become wrong.
    Scores depend on differences only, so here p is the position itself, and a cache may keep turned keys. The factors
    then overflow float32 at about p = 64 B: such positions are refused, and NaN inside jit. Float16 overflows at a
    seventh of that, so float16 queries and keys are refused: use bfloat16.

    For keys after the query ζ^((p_i - p_j) / B) grows without bound: it is causal only, as its authors use it.

    ```bibtex
    @inproceedings{sun2023length,
      title = {A Length-Extrapolatable Transformer},
      author = {Sun, Yutao and Dong, Li and Patra, Barun and Ma, Shuming and Huang, Shaohan and Benhaim, Alon and
                Chaudhary, Vishrav and Song, Xia and Wei, Furu},
      booktitle = {Proceedings of the 61st Annual Meeting of the Association for Computational Linguistics},
      year = {2023},
      eprint = {2212.10554},
    }
    ```
    """

    scale_base: float | None = None
    gamma: float = 0.4
    base: float = 10000.0
    layout: Layout = "interleaved"

    family = "rotary"
    extrapolates = "some (Sun et al., 2023)"
    limits = {"bidirectional": "towards keys after the query its factor grows exponentially with distance"}
    samples = ({"scale_base": 512.0, "layout": "half"},)

    def validate(self):
        check_base("xpos", self.base)
        if self.gamma <= 0 or (self.scale_base is not None and self.scale_base <= 0):
            raise ValueError(f"'xpos' has gamma={self.gamma} and scale_base={self.scale_base}; both must be above 0.")

    def bind(self, dims):
        check_pairs("xpos", dims.head)
        base = dims.trained / 2 if self.scale_base is None else self.scale_base
        return dataclasses.replace(self, scale_base=base)

    def check_positions(self, p, position):
        if isinstance(position, jax.core.Tracer) or not position.size:
            return
        far = float(np.max(np.abs(np.asarray(position, float))))
        # e^80 leaves room in float32 for a query of size e^8
        reach = 80 * bound_setting(self.scale_base) / np.log((1 + self.gamma) / self.gamma)
        if far > reach:
            raise ValueError(
                f"At position {far:.0f} the factors of 'xpos' with scale_base={self.scale_base} overflow float32; go to"
                f" {reach:.0f} at most, or take a larger scale_base."
            )

    def query(self, p, q, info):
        return self._rotate(q, info, 1), info

    def key(self, p, k, info):
        return self._rotate(k, info, -1), info

    def _rotate(self, x: Array, position: Num[Array, " L"], sign: int) -> Array:
        d, exact = x.shape[-1], bias_dtype(x)
        check_pairs("xpos", d)
        if x.dtype == jnp.float16:
            raise TypeError("The factors of 'xpos' overflow float16; give queries and keys as bfloat16 or float32.")
        decay = np.log((np.arange(0, d, 2) / d + self.gamma) / (1 + self.gamma)) / self.scale_base
        grown = jnp.exp(jnp.outer(sign * position.astype(exact), jnp.asarray(decay, exact)))
        angle = angles(position, frequencies(d, self.base), exact)
        return turn(x, grown * jnp.cos(angle), grown * jnp.sin(angle), self.layout)
