"""TAPA: attention with a phase computed from the content of both tokens."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from posenc.core.scheme import Scheme


class TAPA(Scheme, name="tapa"):
    """A part of each query and key gives an amplitude, the rest a phase that grows with distance (Wang et al., 2025,
    §3, eq. 12).

        s_ij = q_A · k_A / √(θ d) · cos(2π |p_i - p_j|^α q_P · k_P / √((1 - θ) d)),   q = (q_A, q_P),  k = (k_A, k_P)

    `share` is θ, the part of the features that gives the amplitude. At distance 0, and where the phases are 0, it is
    attention without positions. Written from the paper; its authors released no code. Their form with a linear phase,
    which they found worse, is left out.

    ```bibtex
    @misc{wang2025positional,
      title = {Positional Encoding via Token-Aware Phase Attention},
      author = {Wang, Yu and Shen, Sheng and Munos, Rémi and Zhan, Hongyuan and Tian, Yuandong},
      year = {2025},
      eprint = {2509.12635},
    }
    ```
    """

    alpha: float = 0.1
    share: float = 0.5

    family = "context"
    reads = "content"
    precedence = "first"
    extrapolates = "perplexity holds up to twice the length of its fine-tuning (Wang et al., 2025)"
    samples = ({"alpha": 0.7, "share": 0.25},)

    def validate(self):
        if not self.alpha > 0:
            raise ValueError(f"'tapa' has alpha={self.alpha}; this power of the distance must be above 0.")
        if not 0 < self.share < 1:
            raise ValueError(f"The share of 'tapa' is {self.share}; it must be above 0 and below 1, such as 0.5.")

    def bind(self, dims):
        self._amplitude(dims.head)
        return self

    def query(self, p, q, info):
        n = self._amplitude(q.shape[-1])
        return q[:, :n], q[:, n:]

    def key(self, p, k, info):
        return self.query(p, k, info)

    def score(self, p, s, tile):
        exact = tile.logits.dtype
        phase = jnp.einsum(
            "qd,kd->qk", tile.query_info, tile.key_info, preferred_element_type=exact, precision="highest"
        )
        d = jnp.abs(tile.distance).astype(exact)
        grown = jnp.where(d > 0, jnp.where(d > 0, d, 1) ** self.alpha, 0)  # the slope of d^α at 0 is infinite
        turns = grown * phase * (tile.scale * (1 - self.share) ** -0.5)
        return s * self.share**-0.5 * jnp.cos(2 * np.pi * turns)

    def _amplitude(self, head: int) -> int:
        """The number of features of the amplitude; a `ValueError` where it is not a whole number."""
        n = round(self.share * head)
        if abs(n - self.share * head) > 1e-6 or not 0 < n < head:
            near = min(max(n, 1), head - 1)
            hint = f"take share={near / head:.6g}" if head > 1 else "take a head of at least 2"
            raise ValueError(f"'tapa' cannot split {head} features of a head at share={self.share}; {hint}.")
        return n
