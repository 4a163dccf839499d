"""ALiBi: a penalty linear in distance."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from posenc.scheme import Scheme, bias_dtype


class ALiBi(Scheme, name="alibi"):
    """A penalty linear in distance, its slope fixed per head (Press et al., 2022, §3).

        s_ij - m_h |p_i - p_j|,  m_h = 2^(-8 h / H),  h = 1 … H

    With a number of heads that is no power of two, heads beyond the largest power take slopes from between (the
    authors' code). That code adds m_h p_j, which differs by a constant of the row and rounds worse. The paper is
    causal; where the future is seen codebases differ, hence `form`: "symmetric" as above; "half" with m_h / 2 added
    where the key stands before the query (DeepMind's randomized positional encodings); "sided" with slopes that are
    learned, one for the past and one for the future, which start at m_h (that slopes may differ left and right is a
    suggestion of the authors to readers; that they are learned is ours).

    ```bibtex
    @inproceedings{press2022train,
      title = {Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation},
      author = {Press, Ofir and Smith, Noah A. and Lewis, Mike},
      booktitle = {International Conference on Learning Representations},
      year = {2022},
      eprint = {2108.12409},
    }
    ```
    """

    form: Literal["symmetric", "half", "sided"] = "symmetric"

    family = "linear"
    reads = "distance"
    samples = ({"form": "half"}, {"form": "sided"})

    def init_head(self, key, dims):
        return {"past": jnp.ones(()), "future": jnp.ones(())} if self.form == "sided" else {}

    def score(self, p, s, tile):
        exact = bias_dtype(s)
        m, d = slope(tile.head, tile.heads).astype(exact), tile.distance.astype(exact)
        if self.form == "sided":
            return s - m * jnp.where(d > 0, p["past"].astype(exact) * d, -p["future"].astype(exact) * d)
        bias = -m * jnp.abs(d)
        if self.form == "half":
            bias = bias + jnp.where(d > 0, m / 2, 0)
        return s + bias


def slope(head: Int[Array, ...], heads: int) -> Float[Array, ...]:
    """The slope of a head, counted from 0 (Press et al., 2022, §3; the authors' `get_slopes`)."""
    whole = 1 << (heads.bit_length() - 1)
    octave = jnp.where(head < whole, head + 1, head - whole + 0.5) * 8 / whole
    return 2.0**-octave
