"""RoPE: queries and keys turned by their position."""

from __future__ import annotations

import math
from typing import Literal

import jax.numpy as jnp
import numpy as np

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.rotation import Layout, angles, check_base, check_share, frequencies, rotate, turned_width


class RoPE(Scheme, name="rope"):
    """Queries and keys turned by an angle that grows with position (Su et al., 2021, §3.2, eq. 34).

        s_ij = (R(p_i ω) q_i) · (R(p_j ω) k_j) / √d = q_i · R((p_j - p_i) ω) k_j / √d,   ω_i = base^(-2i / d)

    `layout` says which features make a pair: "half" turns i with i + d/2 (NeoX, Llama), "interleaved" 2i with 2i + 1
    (the paper, GPT-J). They differ by a permutation of features: one model's weights do not serve the other.
    `fraction` turns the first fraction · d features alone, with the frequencies of a head of that width (GPT-J, NeoX).
    `p` keeps the ⌊p n⌋ highest of the n frequencies and sets the others to zero (p-RoPE; Barbero et al., 2025, §6),
    which is not the same; n is d/2, or fraction · d/2 where both are given. A p that keeps none is refused. `learned`
    frequencies start at the fixed ones, for each layer and each query head.

    Angles of fixed frequencies are exact to float32 at every position below 2^31 (`numerics.rotation`), in models of
    any type; the authors of most codebases multiply in float32, and err by a hundredth of a radian at position 131072.
    So do learned frequencies here: nobody knows more of their digits than float32 holds.

    ```bibtex
    @article{su2021roformer,
      title = {RoFormer: Enhanced Transformer with Rotary Position Embedding},
      author = {Su, Jianlin and Lu, Yu and Pan, Shengfeng and Murtadha, Ahmed and Wen, Bo and Liu, Yunfeng},
      journal = {Neurocomputing},
      year = {2024},
      eprint = {2104.09864},
    }
    @inproceedings{barbero2025round,
      title = {Round and Round We Go! What makes Rotary Positional Encodings useful?},
      author = {Barbero, Federico and Vitvitskyi, Alex and Perivolaropoulos, Christos and Pascanu, Razvan and
                Veličković, Petar},
      booktitle = {International Conference on Learning Representations},
      year = {2025},
      eprint = {2410.06205},
    }
    ```
    """

    base: float = 10000.0
    layout: Layout = "half"
    fraction: float = 1.0
    p: float = 1.0
    frequencies: Literal["fixed", "learned"] = "fixed"

    family = "rotary"
    extrapolates = "not: fails just past the length trained on (Press et al., 2022; Kazemnejad et al., 2023)"
    samples = (
        {"layout": "interleaved", "base": 500000.0},
        {"fraction": 0.5},
        {"p": 0.5},
        {"frequencies": "learned"},
    )

    def validate(self):
        check_base("rope", self.base)
        for name in ("fraction", "p"):
            check_share("rope", name, getattr(self, name))

    def bind(self, dims):
        self._fixed(dims.head)
        return self

    def init_head(self, key, dims):
        if self.frequencies == "fixed":
            return {}
        return {"frequency": jnp.asarray(self._fixed(dims.head), jnp.float32)}

    def query(self, p, q, info):
        return self._turned(p, q, info), info

    def key(self, p, k, info):
        return self._turned(p, k, info), info

    def _turned(self, p, x, position):
        fixed = self._fixed(x.shape[-1])
        return rotate(x, angles(position, p.get("frequency", fixed), bias_dtype(x)), self.layout)

    def _fixed(self, head: int) -> np.ndarray:
        """The frequencies of a head of this width; a `ValueError` where it cannot be cut into pairs."""
        width = turned_width("rope", self.fraction, head)
        pairs = width // 2
        kept = math.floor(self.p * pairs + 1e-6)  # 0.58 · 50 is 28.999…96
        if not kept:
            least = math.ceil(1e6 / pairs) / 1e6
            raise ValueError(f"'rope' with p={self.p} keeps none of {pairs} frequencies; take p={least} at least.")
        return np.where(np.arange(pairs) < kept, frequencies(width, self.base), 0.0)
