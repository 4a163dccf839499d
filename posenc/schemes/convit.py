"""ConViT: each head mixes attention by content with attention by position."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from posenc.core.scheme import Dims, Scheme, bias_dtype
from posenc.numerics.precision import product


class ConViT(Scheme, name="convit"):
    """Gated positional self-attention: two softmaxes, of content and of position, mixed by a gate (d'Ascoli et al.,
    2021, §3).

        a_ij = (1 - σ(g_h)) softmax_j(s_ij) + σ(g_h) softmax_j(w_h · (δ, |δ|²) + b_h),   δ = p_j - p_i

    Positions have `axes` numbers, on an image the column and then the row. Heads start as a convolution: with m^axes
    heads, each attends to one offset Δ_h of a kernel of size m along each axis, more narrowly the larger `locality` is:
    w_h = locality (2 Δ_h, -1). Heads beyond the largest such kernel start near zero, as in the authors' code, and gates
    at σ(1). The parameters w and b are stored per layer, with a row for each head, because the initial value depends on
    the head's index.

    ```bibtex
    @inproceedings{dascoli2021convit,
      title = {{ConViT}: Improving Vision Transformers with Soft Convolutional Inductive Biases},
      author = {d'Ascoli, St{\\'e}phane and Touvron, Hugo and Leavitt, Matthew and Morcos, Ari and Biroli, Giulio and
                Sagun, Levent},
      booktitle = {International Conference on Machine Learning},
      year = {2021},
      eprint = {2103.10697},
    }
    ```
    """

    axes: int = 2
    locality: float = 1.0

    family = "kernel"
    extrapolates = "none reported"
    reads = "row"
    limits = {"cross": "its distances are within one sequence"}
    samples = ({"axes": 1, "locality": 0.3},)

    def validate(self):
        if self.axes < 1:
            raise ValueError(f"'convit' has axes={self.axes}; it must be at least 1.")
        if not self.locality > 0:
            raise ValueError(f"'convit' has locality={self.locality}; it must be above 0.")

    def init(self, key, dims):
        return {"w": self._offsets(key, dims), "b": jnp.zeros(dims.heads)}

    def init_head(self, key, dims):
        return {"gate": jnp.ones(())}

    def normalize(self, p, s, tile):
        exact = bias_dtype(s)
        delta = -(tile.distance if self.axes > 1 else tile.distance[:, :, None]).astype(exact)
        w, b = p["w"][tile.head].astype(exact), p["b"][tile.head].astype(exact)
        positional = product(delta, w[:-1]) + (delta**2).sum(-1) * w[-1] + b
        gate = jax.nn.sigmoid(p["gate"].astype(exact))
        return (1 - gate) * _softmax(s.astype(exact), tile.visible) + gate * _softmax(positional, tile.visible)

    def _offsets(self, key, dims: Dims) -> Float[Array, "H axes+1"]:
        """The initial w: head m·h₂ + h₁ of the largest kernel attends at the offset (h₂, h₁) from its corner."""
        side = math.floor(dims.heads ** (1 / self.axes) + 1e-9)
        offset = np.stack(np.unravel_index(np.arange(side**self.axes), (side,) * self.axes), -1) - (side - 1) / 2
        local = np.concatenate([2 * offset, np.full((len(offset), 1), -1)], -1)
        rest = 0.02 * jax.random.normal(key, (dims.heads - len(local), self.axes + 1))
        return self.locality * jnp.concatenate([jnp.asarray(local, rest.dtype), rest])


def _softmax(s: Float[Array, "Q K"], visible: Bool[Array, "Q K"]) -> Float[Array, "Q K"]:
    """Softmax over visible keys; a row without any is zero, with zero gradient."""
    return jnp.where(visible, jax.nn.softmax(jnp.where(visible, s, jnp.finfo(s.dtype).min), -1), 0)
