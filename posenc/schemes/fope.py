"""FoPE: the cosine and sine of each pair of features are Fourier series instead of single waves."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from posenc.core.scheme import Scheme, bias_dtype, bound_setting
from posenc.numerics.rotation import angles, check_base, check_pairs, frequencies, turn


class FoPE(Scheme, name="fope"):
    """RoPE whose cosines and sines are sums over many frequencies, the undertrained ones left out (Hua et al., 2025,
    §4).

        cos_i(p) = Σ_ω C_{ω,i} cos(p ω),   sin_i(p) = Σ_ω S_{ω,i} sin(p ω),   ω ∈ {base^(-2k / d)}, ω ≥ 2π / length

    A frequency that does not complete a turn within `length` is left out; `length` is the training length unless it is
    set. C and S are random around a matrix of zeros and ones (spread by `gain`, with Glorot's variance as PyTorch
    counts it for one tensor of all heads) and constant unless `learned`. Each head has its own unless `shared`, and
    cosines and sines have different ones unless `separate=False`. With `zeros="dropped"` the n frequencies that are
    left serve min(n, ⌊d/4⌋) pairs, as in the authors' code, and the other pairs have no frequency. With "kept" the low
    frequencies are 0 and enter all d/2 pairs as a constant.

    With `form="as_described"` pairs without a frequency are unchanged, as the paper says. The authors' code pads sines
    with 1 instead of 0, so these pairs rotate by 45° and grow by √2, and their part of the scores doubles:
    `form="as_released"`, the form behind the published numbers. Pairs are i and i + d/2.

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
            raise ValueError(f"'fope' has length={self.length}; it must be the training length in tokens, such as 512.")
        if self.gain < 0:
            raise ValueError(
                f"The coefficients of 'fope' spread by gain={self.gain}; it must be at least 0, such as 0.3."
            )

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
        return self._rotate(p, q, info), info

    def key(self, p, k, info):
        return self._rotate(p, k, info), info

    def _rotate(self, p: dict, x: Array, position: Num[Array, " L"]) -> Array:
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
        """The frequencies, and the number of pairs of features that they rotate."""
        check_pairs("fope", head)
        all_frequencies = frequencies(head, self.base)
        high = all_frequencies >= 2 * np.pi / bound_setting(self.length)
        if self.zeros == "kept":
            return np.where(high, all_frequencies, 0.0), head // 2
        pairs = min(int(high.sum()), head // 4)
        if not pairs:
            raise ValueError(
                f"'fope' has no frequency left for a head of {head} features and {self.length} tokens; take a head of"
                " at least 4 and a length of at least 7."
            )
        return all_frequencies[high], pairs
