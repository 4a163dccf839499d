"""FoPE: every pair of features turns by a Fourier series instead of one frequency."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.rotation import angles, check_base, check_pairs, frequencies, turn


class FoPE(Scheme, name="fope"):
    """RoPE whose cosines and sines are sums over many frequencies, the undertrained ones left out (Hua et al., 2025,
    §4).

        cos_i(p) = Σ_ω C_{ω,i} cos(p ω),   sin_i(p) = Σ_ω S_{ω,i} sin(p ω),   ω ∈ {base^(-2k / d)}, ω ≥ 2π / length

    A frequency that does not complete a turn within `length`, the training length unless given, is left out. C and S
    are drawn at random around a matrix of ones (`gain`; Glorot's variance as PyTorch counts it for one tensor of all
    heads) and stay as they are, unless `learned`; each head has its own unless `shared`, and cosines and sines unless
    not `separate`. With `zeros="dropped"` n frequencies are left for min(n, ⌊d/4⌋) pairs, as in the authors' code, and
    the other pairs have none; with "kept" the low frequencies are 0 and take part as a constant in all d/2 pairs.

    Pairs that have no frequency are left as they are, as the paper says, which is `form="as_described"`. The authors'
    code fills sines with 1 where it should with 0, so these pairs turn by 45° and grow by √2, and what they add to
    scores doubles: `form="as_released"`, the form behind the published numbers. Pairs are i and i + d/2.

    ```bibtex
    @inproceedings{hua2025fourier,
      title = {Fourier Position Embedding: Enhancing Attention's Periodic Extension for Length Generalization},
      author = {Hua, Ermo and Jiang, Che and Lv, Xingtai and Zhang, Kaiyan and Sun, Youbang and Fan, Yuchen and
                Zhu, Xuekai and Qi, Biqing and Ding, Ning and Zhou, Bowen},
      booktitle = {International Conference on Machine Learning},
      year = {2025},
      eprint = {2412.17739},
    }
    ```
    """

    length: int | None = None
    form: Literal["as_described", "as_released"] = "as_described"
    zeros: Literal["dropped", "kept"] = "dropped"
    separate: bool = True
    shared: bool = False
    learned: bool = False
    gain: float = 0.3
    base: float = 10000.0

    family = "rotary"
    extrapolates = "steadier than RoPE and ALiBi over context windows (Hua et al., 2025)"
    samples = (
        {"form": "as_released", "separate": False, "learned": True},
        {"zeros": "kept", "shared": True},
    )

    def validate(self):
        check_base("fope", self.base)
        if self.length is not None and self.length < 1:
            raise ValueError(f"'fope' has length={self.length}; it is the number of tokens trained on, such as 512.")
        if self.gain < 0:
            raise ValueError(f"The coefficients of 'fope' spread by gain={self.gain}; it is at least 0, such as 0.3.")

    @property
    def frozen(self) -> frozenset[str]:
        return frozenset() if self.learned else frozenset({"cos", "sin", "both"})

    def bind(self, dims):
        length = dims.trained if self.length is None else self.length
        scheme = dataclasses.replace(self, length=length)
        scheme._series(dims.head)
        return scheme

    def init(self, key, dims):
        return self._coefficients(key, dims.head, 0) if self.shared else {}

    def init_head(self, key, dims):
        return {} if self.shared else self._coefficients(key, dims.head, dims.heads)

    def _coefficients(self, key, head: int, heads: int):
        frequency, pairs = self._series(head)
        n, step = len(frequency), math.ceil(len(frequency) / pairs)
        taken = np.arange(0, n, step)
        ones = np.zeros((n, pairs), np.float32)
        ones[taken, np.arange(len(taken))] = 1
        spread = self.gain * math.sqrt(2 / ((n + heads) * pairs if heads else n + pairs))
        names = ("cos", "sin") if self.separate else ("both",)
        keys = zip(names, jax.random.split(key, len(names)), strict=True)
        return {name: ones + spread * jax.random.normal(k, ones.shape) for name, k in keys}

    def query(self, p, q, info):
        return self._turned(p, q, info), info

    def key(self, p, k, info):
        return self._turned(p, k, info), info

    def _turned(self, p: dict, x: Array, position: Num[Array, " L"]) -> Array:
        exact, (frequency, pairs) = bias_dtype(x), self._series(x.shape[-1])
        angle = angles(position, frequency, exact)
        cos, sin = (self._sum(p, name, f(angle)) for name, f in (("cos", jnp.cos), ("sin", jnp.sin)))
        rest = (0, 0), (0, x.shape[-1] // 2 - pairs)
        sine = 1.0 if self.form == "as_released" else 0.0
        return turn(x, jnp.pad(cos, rest, constant_values=1.0), jnp.pad(sin, rest, constant_values=sine), "half")

    def _sum(self, p: dict, name: str, waves: Float[Array, "L n"]) -> Float[Array, "L pairs"]:
        coefficients = p[name if self.separate else "both"].astype(waves.dtype)
        if not self.learned:
            coefficients = jax.lax.stop_gradient(coefficients)
        return jnp.einsum("ln,nc->lc", waves, coefficients, precision="highest")

    def _series(self, head: int) -> tuple[np.ndarray, int]:
        """The frequencies, and how many pairs of features turn by them."""
        check_pairs("fope", head)
        every = frequencies(head, self.base)
        high = every >= 2 * np.pi / self.length
        if self.zeros == "kept":
            return np.where(high, every, 0.0), head // 2
        pairs = min(int(high.sum()), head // 4)
        if not pairs:
            raise ValueError(
                f"'fope' leaves no frequency to a head of {head} features and {self.length} tokens; take a head of 4 at"
                " least and length=7."
            )
        return every[high], pairs
