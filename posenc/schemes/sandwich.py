"""Sandwich: the inner product of sinusoidal embeddings as a bias."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.rotation import angles, frequencies


class Sandwich(Scheme, name="sandwich"):
    """The inner product of two sinusoidal embeddings, scaled per head, without parameters (Chi et al., 2023, §4).

        s_ij + bias,  bias = (H / 8h) Σ_k cos((p_i - p_j) 10000^(-2k/dim)),  h = 1 … H

    The sum has dim / 2 terms, from k = 0 as in sinusoidal embeddings. A released copy counts from k = 1 and subtracts
    dim / 2, which shifts all scores of a row equally; `first=1` gives its frequencies.

    ```bibtex
    @inproceedings{chi2023dissecting,
      title = {Dissecting Transformer Length Extrapolation via the Lens of Receptive Field Analysis},
      author = {Chi, Ta-Chung and Fan, Ting-Han and Rudnicky, Alexander and Ramadge, Peter J.},
      booktitle = {Proceedings of the Annual Meeting of the Association for Computational Linguistics},
      year = {2023},
      eprint = {2212.10356},
    }
    ```
    """

    dim: int = 128
    """The width of the sinusoidal embeddings, which may differ from the model's."""
    first: Literal[0, 1] = 0
    """The index of the first frequency."""

    family = "kernel"
    extrapolates = "strongly in perplexity (Chi et al., 2023)"
    reads = "distance"
    samples = ({"dim": 8, "first": 1},)

    def validate(self):
        if self.dim < 2 or self.dim % 2:
            raise ValueError(
                f"'sandwich' has dim={self.dim}; it must be even and at least 2, half sines and half cosines."
            )

    def score(self, p, s, tile):
        exact, distance = bias_dtype(s), tile.distance
        turn = angles(distance.reshape(-1), frequencies(self.dim, 10000.0, self.first), exact)
        turn = turn.reshape(*distance.shape, -1)  # [Q, K, dim/2]
        return s + jnp.cos(turn).sum(-1) * tile.heads / (8 * jnp.asarray(tile.head + 1, exact))
