"""PoPE: polar coordinates, where content gives the length of each feature and position its angle."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.rotation import angles, check_base, frequencies


class PoPE(Scheme, name="pope"):
    """Features become lengths, by softplus, and position alone gives their angles (Gopalakrishnan et al., 2025, §3).

        s_ij = Σ_c softplus(q_ic) softplus(k_jc) cos((p_j - p_i) ω_c + δ_hc) / √d,   ω_c = base^(-c / d),  c < d

    Each feature has its own frequency, so query and key become twice as wide: all cosines, then all sines. The angle δ
    is learned for each layer, head and feature and clipped to [-2π, 0], with zero gradient outside. `start` is its
    initial value: 0, or uniformly random. No authors' code was found; this follows x-transformers.

    ```bibtex
    @misc{gopalakrishnan2025decoupling,
      title = {Decoupling the "What" and "Where" With Polar Coordinate Positional Embeddings},
      author = {Gopalakrishnan, Anand and Csordás, Róbert and Schmidhuber, Jürgen and Mozer, Michael C.},
      year = {2025},
      eprint = {2509.10534},
    }
    ```
    """

    base: float = 10000.0
    start: Literal["zero", "uniform"] = "zero"

    family = "rotary"
    extrapolates = "without tuning, farther than RoPE and YaRN (Gopalakrishnan et al., 2025)"
    precedence = "last"
    samples = ({"base": 100.0, "start": "uniform"},)

    def validate(self):
        check_base("pope", self.base)

    def init_head(self, key, dims):
        if self.start == "zero":
            return {"delta": jnp.zeros(dims.head)}
        return {"delta": jax.random.uniform(key, (dims.head,), minval=-2 * jnp.pi, maxval=0.0)}

    def query(self, p, q, info):
        return self._polar(q, self._angles(q, info)), info

    def key(self, p, k, info):
        delta = p["delta"].astype(bias_dtype(k))
        inside = (delta >= -2 * np.pi) & (delta <= 0)  # the bounds have a gradient, unlike those of jnp.clip
        delta = jnp.where(inside, delta, jax.lax.stop_gradient(jnp.clip(delta, -2 * np.pi, 0)))
        return self._polar(k, self._angles(k, info) + delta[None, :]), info

    def _angles(self, x: Array, position: Array) -> Float[Array, "L d"]:
        return angles(position, frequencies(2 * x.shape[-1], self.base), bias_dtype(x))

    def _polar(self, x: Array, angle: Float[Array, "L d"]) -> Float[Array, "L 2d"]:
        length = jax.nn.softplus(x.astype(angle.dtype))
        return jnp.concatenate([length * jnp.cos(angle), length * jnp.sin(angle)], -1).astype(x.dtype)
