"""A learned vector for every position."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.token_numbers import check_rows, rows_at


class Learned(Scheme, name="learned"):
    """A learned vector for every position, added to the input (Gehring et al., 2017, §3.1; BERT; GPT).

        x'_i = x_i + A[p_i],   A ∈ R^{N × D},  N(0, 0.02²) at the start (GPT-2)

    The table has `Dims.longest` rows, or, where that is left open, one for each token of the training length. A
    position without a row is refused, and NaN inside jit; other frameworks repeat the last row or count from the end.
    Nothing is added to padding.

    ```bibtex
    @inproceedings{gehring2017convolutional,
      title = {Convolutional Sequence to Sequence Learning},
      author = {Gehring, Jonas and Auli, Michael and Grangier, David and Yarats, Denis and Dauphin, Yann N.},
      booktitle = {International Conference on Machine Learning},
      year = {2017},
      eprint = {1705.03122},
    }
    ```
    """

    family = "absolute"
    extrapolates = "not: there are no rows beyond the table"
    tied = frozenset({"table"})

    def init(self, key, dims):
        return {"table": 0.02 * jax.random.normal(key, (dims.table, dims.width))}

    def check_positions(self, p, position):
        check_rows("learned", position, p["table"].shape[0])

    def embed(self, p, x, at):
        exact = bias_dtype(x)
        row = rows_at(p["table"], at.position).astype(exact)
        return (x.astype(exact) + jnp.where((at.segment > 0)[:, None], row, 0)).astype(x.dtype)
