"""CARoPE: RoPE whose base frequency is computed from each token, for each head."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.core.scheme import Scheme
from posenc.numerics import segment_scans
from posenc.numerics.precision import product, widened
from posenc.numerics.rotation import check_pairs, rotate


class CARoPE(Scheme, name="carope"):
    """RoPE with a frequency per token, whose powers add up along the document (Veisi et al., 2025, §2).

        s_ij = (R(φ_i) q_i) · (R(φ_j) k_j) / √d,   φ_i,c = Σ_{l ≤ i} f_l^c,   f_l = 1 / (1 + softplus(w_h · x_l + b_h))

    With the same f = base^(-2 / d) for all tokens this is RoPE, and there the scheme starts, with w = 0, as the paper
    requires. The formula in the paper lacks b, without which no w gives RoPE. It also leaves open where the exponent c
    starts. With `first=0`, as in RoPE, the first pair rotates by 1 radian for each token, independent of its content;
    with 1 all pairs depend on content. No code was released.

    The sums are kept in float32: an angle is accurate to the sum's size times 2⁻²³. Causal, as the authors' models.

    ```bibtex
    @misc{veisi2025context,
      title = {Context-aware Rotary Position Embedding},
      author = {Veisi, Ali and Fartoot, Delaram and Amirzadeh, Hamidreza},
      year = {2025},
      eprint = {2507.23083},
    }
    ```
    """

    base: float = 10000.0
    first: int = 0

    family = "context"
    extrapolates = "some (Veisi et al., 2025)"
    contextual = True
    limits = {
        "bidirectional": "its phases add up from a key to a later query",
        "cross": "its phases add up along one sequence",
    }
    samples = ({"first": 1, "base": 50.0},)

    def validate(self):
        if not self.base > 1:
            raise ValueError(
                f"The base of 'carope' is {self.base}; it must be above 1, such as 10000, since all f are below 1."
            )
        if self.first not in (0, 1):
            raise ValueError(f"'carope' has first={self.first}; it must be 0 or 1.")

    def bind(self, dims):
        self._pairs(dims.head)
        return self

    def init_head(self, key, dims):
        target = self.base ** (1 / self._pairs(dims.head)) - 1  # softplus(b) where f is RoPE's
        return {"w": jnp.zeros(dims.width), "b": jnp.asarray(target + math.log(-math.expm1(-target)), jnp.float32)}

    def carry(self, dims):
        return segment_scans.start(dims.head // 2)

    def locate(self, p, x: Float[Array, "L D"], at, carry):
        exact = widened(x.dtype)
        logit = product(x, p["w"]) + p["b"].astype(exact)
        powers = self.first + jnp.arange(carry[0].size, dtype=exact)
        steps = jnp.exp(-jnp.log1p(jax.nn.softplus(logit))[:, None] * powers[None, :])
        return segment_scans.total(steps, at.segment, carry)

    def query(self, p, q, info):
        self._pairs(q.shape[-1])
        return rotate(q, info, "half"), ()

    def key(self, p, k, info):
        return self.query(p, k, info)

    def _pairs(self, head: int) -> int:
        """The number of pairs of a head of this width; a `ValueError` where none of them would depend on content."""
        check_pairs(self.name, head)
        if head // 2 + self.first < 2:
            raise ValueError(
                f"The first pair of 'carope' is the same for all tokens, and {head} features are a single pair;"
                " take at least 4, or first=1."
            )
        return head // 2
