"""The digits of the position in base two."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.precision import product
from posenc.numerics.token_numbers import check_rows, inside


class Binary(Scheme, name="binary"):
    """The binary digits of the position through a learned projection: the sinusoid's discrete ancestor (folklore).

        x'_i = x_i + Σ_k (2 b_k(p_i) - 1) W_k,   b_k(p) = ⌊p / 2^k⌋ mod 2,   k = 0 … bits - 1

    W ∈ R^{bits × D} starts as N(0, 1/bits), so that each feature has variance one. Digits are -1 and 1, which trains
    better than 0 and 1. There is no authors' code: the idea is from tutorials (Fleetwood, 2024). A position with more
    digits than `bits` is refused, and NaN inside jit. Nothing is added to padding.

    ```bibtex
    @misc{fleetwood2024designed,
      title = {You could have designed state of the art positional encoding},
      author = {Fleetwood, Christopher},
      year = {2024},
      howpublished = {Hugging Face blog},
    }
    ```
    """

    bits: int = 16

    family = "absolute"
    tied = frozenset({"digits"})
    samples = ({"bits": 11},)

    def validate(self):
        if not 1 <= self.bits <= 31:
            raise ValueError(f"The setting 'bits' of 'binary' is {self.bits}; it must be 1 to 31.")

    def init(self, key, dims):
        return {"digits": self.bits**-0.5 * jax.random.normal(key, (self.bits, dims.width))}

    def check_positions(self, p, position):
        check_rows("binary", position, 2**self.bits, "take more digits with binary(bits=...)")

    def embed(self, p, x, at):
        exact = bias_dtype(x)
        digit = (at.position[:, None] >> jnp.arange(self.bits, dtype=at.position.dtype)[None, :]) & 1
        e = product((2 * digit - 1).astype(exact), p["digits"])
        e = jnp.where(inside(at.position, 2**self.bits)[:, None], e, jnp.nan)
        return (x.astype(exact) + jnp.where((at.segment > 0)[:, None], e, 0)).astype(x.dtype)
