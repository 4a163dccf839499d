"""RoPE: queries and keys rotated by their position."""

from __future__ import annotations

import math
from typing import Literal

import jax.numpy as jnp
import numpy as np

from posenc.core.scheme import Scheme, later
from posenc.numerics import rotary, scaling
from posenc.numerics.rotation import End, Layout, check_base, check_share, frequencies


class RoPE(Scheme, name="rope"):
    """Queries and keys rotated by an angle proportional to position (Su et al., 2021, §3.2, eq. 34).

        s_ij = (R(p_i ω) q_i) · (R(p_j ω) k_j) / √d = q_i · R((p_j - p_i) ω) k_j / √d,   ω_i = base^(-2i / d)

    `layout` says which features make a pair: "half" pairs i with i + d/2 (NeoX, Llama), "interleaved" 2i with 2i + 1
    (the paper, GPT-J). They differ by a permutation of features, so weights trained with one do not work with the
    other. `fraction` rotates only the first fraction · d features, with the frequencies of a head of that width (GPT-J,
    NeoX), or with `at="end"` the last ones: latent attention, whose heads are a plain part followed by a rotated one
    (DeepSeek-V2). That all heads share the rotated part of a key belongs to the model's projection. `p` keeps the ⌊p n⌋
    highest of the n frequencies and sets the others to zero (p-RoPE; Barbero et al., 2025, §6), which is not the same;
    n is d/2, or fraction · d/2 with a `fraction`. A p that keeps no frequency is refused. `taper` is the share of
    frequencies, the lowest ones, that are multiplied by (1 + cos θ) / 2, with θ evenly spaced from 0 to π (Li et al.,
    2026, "CoPE"): the last is 0. Learned `frequencies` start at the fixed ones, for each layer and each query head. A
    tuple holds them itself, one for each pair, which may be negative or 0 and take the place of `base`; as periods or
    factors of a base, convert them first.

    Angles of fixed frequencies are exact to float32 at every position below 2^31 (`numerics.rotation`), in models of
    any type. Most codebases multiply in float32, with an error of a hundredth of a radian at position 131072. Learned
    frequencies have this error here too, since they are themselves float32 numbers.

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
    @misc{li2026cope,
      title = {{CoPE}: Clipped {RoPE} as A Scalable Free Lunch for Long Context {LLMs}},
      author = {Li, Haoran and Ren, Sucheng and Yuille, Alan and Wang, Feng},
      year = {2026},
      eprint = {2602.05258},
    }
    ```
    """

    base: float = 10000.0
    layout: Layout = "half"
    fraction: float = 1.0
    p: float = 1.0
    frequencies: Literal["fixed", "learned"] | tuple[float, ...] = "fixed"
    at: End = later("start")
    taper: float = later(0.0)

    family = "rotary"
    extrapolates = "not: fails just past the length trained on (Press et al., 2022; Kazemnejad et al., 2023)"
    samples = (
        {"layout": "interleaved", "base": 500000.0},
        {"fraction": 0.5},
        {"p": 0.5},
        {"frequencies": "learned"},
        {"fraction": 0.5, "at": "end"},
        {"taper": 1.0},
    )

    def validate(self):
        check_base("rope", self.base)
        for name in ("fraction", "p"):
            check_share("rope", name, getattr(self, name))
        scaling.check_part("rope", "taper", self.taper)
        if isinstance(self.frequencies, tuple):
            of_base = {"base": (self.base, 10000.0), "p": (self.p, 1.0), "taper": (self.taper, 0.0)}
            if unused := [name for name, (value, default) in of_base.items() if value != default]:
                raise ValueError(
                    f"'rope' was given its frequencies, so {unused[0]}={getattr(self, unused[0])} changes nothing;"
                    f" leave {unused[0]} out."
                )

    def init_head(self, key, dims):
        if self.frequencies != "learned":
            return {}
        return {"frequency": jnp.asarray(rotary.frequencies_of(self, dims.head), jnp.float32)}

    def angular_frequencies(self, width):
        pairs = width // 2
        if isinstance(self.frequencies, tuple):
            return scaling.explicit("rope", self.frequencies, width)
        kept = math.floor(self.p * pairs + 1e-6)  # 0.58 · 50 is 28.999…96
        if not kept:
            least = math.ceil(1e6 / pairs) / 1e6
            raise ValueError(f"'rope' with p={self.p} keeps none of {pairs} frequencies; take at least p={least}.")
        kept_ones = np.where(np.arange(pairs) < kept, frequencies(width, self.base), 0.0)
        return scaling.tapered("rope", kept_ones, self.taper)

    bind = rotary.bind
    query = rotary.query
    key = rotary.key
