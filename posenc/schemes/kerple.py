"""KERPLE: penalties from kernels of distance."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.core.scheme import Scheme, bias_dtype, by_settings


class KERPLE(Scheme, name="kerple"):
    """A learned penalty per head, a conditionally positive definite kernel of distance (Chi et al., 2022, §4).

        s_ij + b,  b = -r1 log(1 + r2 |p_i - p_j|)  or  b = -r1 |p_i - p_j|^r2
        exp(-w1 |p_i - p_j|^w2) s_ij + b            with the weight kernel, where kernel='none' is b = 0

    r1, r2, w1 and w2 are clamped to at least 0.01, exponents to at most 2. The authors write the clamped number back
    into the parameter before each step. Here the parameter is not changed, and its gradient is the one at the clamped
    number, which gives the same outputs and gradients. ALiBi is the power form with r2 = 1. kernel='none' is the
    authors' code with a kind such as n_ap, whose bias has neither of its parameters.

    ```bibtex
    @inproceedings{chi2022kerple,
      title = {{KERPLE}: Kernelized Relative Positional Embedding for Length Extrapolation},
      author = {Chi, Ta-Chung and Fan, Ting-Han and Ramadge, Peter J. and Rudnicky, Alexander},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2022},
      eprint = {2205.09921},
    }
    ```
    """

    kernel: Literal["log", "power", "none"] = "log"
    """The penalty that is added: b in the equation."""
    weight: bool = False
    """True if a second kernel multiplies the scores."""

    family = "kernel"
    extrapolates = "strongly in perplexity (Chi et al., 2022)"
    reads = by_settings(lambda self: "positions" if self.weight else "distance")
    samples = ({"kernel": "power"}, {"kernel": "power", "weight": True}, {"kernel": "none", "weight": True})

    def validate(self):
        if self.kernel == "none" and not self.weight:
            raise ValueError(
                "'kerple' with kernel='none' and weight=False changes no score; set weight=True, or write 'nope'."
            )

    def init_head(self, key, dims):
        u = jax.random.uniform(key, (4,))
        added = {"log": {"r1": 2 * u[0], "r2": u[1]}, "power": {"r1": u[0], "r2": 2 * u[1]}, "none": {}}
        return added[self.kernel] | ({"w1": u[2], "w2": 2 * u[3]} if self.weight else {})

    def score(self, p, s, tile):
        d = jnp.abs(tile.distance).astype(bias_dtype(s))
        if self.weight:
            s = s * jnp.exp(-_clamp(p["w1"].astype(d.dtype)) * power(d, _clamp(p["w2"].astype(d.dtype), 2)))
        if self.kernel == "none":
            return s
        if self.kernel == "log":
            return s - _clamp(p["r1"].astype(d.dtype)) * jnp.log1p(_clamp(p["r2"].astype(d.dtype)) * d)
        return s - _clamp(p["r1"].astype(d.dtype)) * power(d, _clamp(p["r2"].astype(d.dtype), 2))


def power(d: Float[Array, "Q K"], exponent: Float[Array, ""]) -> Float[Array, "Q K"]:
    """d^exponent, with gradient 0 where d is 0: there the exponent's is 0 · log 0, and that of d may be infinite."""
    return jnp.where(d > 0, jnp.where(d > 0, d, 1) ** exponent, 0)


def _clamp(x: Float[Array, ""], most: float | None = None) -> Float[Array, ""]:
    return jax.lax.stop_gradient(jnp.clip(x, 0.01, most)) + (x - jax.lax.stop_gradient(x))
