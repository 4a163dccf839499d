"""Abacus: a learned vector for a digit's place in its number."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.token_numbers import check_rows, rows_at


class Abacus(Scheme, name="abacus"):
    """A learned vector for a digit's place in its number, the same in every number (McLeish et al., 2024, §3).

        x'_i = x_i + A[p_i],   A ∈ R^{rows × D},  N(0, 1) at the start

    Positions come from the task: the place of a digit in its number, counted from 1, and 0 for other tokens, which have
    their own row. `abacus @ given("digit", shift=99)` is the paper's: in training all places of a batch are shifted by
    one random number, so that rows beyond the longest number are trained. The laboratory trains it only with
    coordinates: at the index it would be an absolute table. Places align digits of equal weight if numbers begin with
    the least significant digit. It differs from `learned` in its size and its initial values only. These are N(0, 1),
    as in the authors' module; their training code draws them again with the variance of tokens, 1 / D. Nothing is added
    to padding.

    ```bibtex
    @inproceedings{mcleish2024transformers,
      title = {Transformers Can Do Arithmetic with the Right Embeddings},
      author = {McLeish, Sean and Bansal, Arpit and Stein, Alex and Jain, Neel and Kirchenbauer, John and
                Bartoldson, Brian R. and Kailkhura, Bhavya and Bhatele, Abhinav and Geiping, Jonas and
                Schwarzschild, Avi and Goldstein, Tom},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2024},
      eprint = {2405.17399},
    }
    ```
    """

    rows: int = 1024
    """One for tokens that are not digits, and one for each place."""

    family = "absolute"
    tied = frozenset({"table"})
    coordinate = "digit"
    extrapolates = "additions of 20 digits to 120, where digits align and places are shifted (McLeish et al., 2024)"
    samples = ({"rows": 70},)

    def validate(self):
        if self.rows < 2:
            raise ValueError(
                f"'abacus' has rows={self.rows}; it must be at least 2: a row for other tokens, then the places."
            )

    def init(self, key, dims):
        return {"table": jax.random.normal(key, (self.rows, dims.width))}

    def check_positions(self, p, position):
        check_rows("abacus", position, p["table"].shape[0], "make it larger with abacus(rows=...)")

    def embed(self, p, x, at):
        exact = bias_dtype(x)
        row = rows_at(p["table"], at.position).astype(exact)
        return (x.astype(exact) + jnp.where((at.segment > 0)[:, None], row, 0)).astype(x.dtype)
