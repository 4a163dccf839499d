"""Scale-invariant attention: scores stretched and lowered by the logarithm of distance."""

from __future__ import annotations

import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype


class ScaleInvariant(Scheme, name="scale_invariant"):
    """Scores stretched and lowered with distance, so that each octave of distances has the same total weight (Anson et
    al., 2025).

        s'_ij = a s_ij + 1 - a²,   a² = 1 + 2 log(1 + (p_i - p_j) / τ)

    For scores from a normal distribution of mean 0 and variance 1 the expected weight before normalising is
    e^{1/2} / (1 + Δ / τ) at distance Δ, whose sum over Δ from t to 2t tends to a constant; so does the expected weight
    times the score. `tau` is the distance up to which nothing much changes. It is causal; keys after the query, which a
    mask must hide, keep their scores.

    Written from the equation as two other sources give it; no authors' code was in reach. The authors use it beside
    p-RoPE: `rope(p=0.5) + scale_invariant`.

    ```bibtex
    @inproceedings{anson2025scale,
      title = {Scale-invariant Attention},
      author = {Anson, Ben and Wang, Xi and Aitchison, Laurence},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2025},
      eprint = {2505.17083},
    }
    ```
    """

    tau: float = 10.0

    family = "kernel"
    extrapolates = "in loss and retrieval, to 16 times it (Anson et al., 2025)"
    reads = "positions"
    limits = {"bidirectional": "its distances are those of keys before the query"}
    samples = ({"tau": 2.0},)

    def validate(self):
        if self.tau <= 0:
            raise ValueError(f"'scale_invariant' has tau={self.tau}; it is a distance above 0, such as 10.")

    def score(self, p, s, tile):
        exact = bias_dtype(s)
        grown = 2 * jnp.log1p(jnp.maximum(tile.distance, 0).astype(exact) / self.tau)
        return jnp.sqrt(1 + grown) * s - grown
