"""ALiBi: a penalty linear in distance."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from posenc.scheme import Scheme


class ALiBi(Scheme, name="alibi"):
    """A penalty linear in distance, its slope fixed per head (Press et al., 2022, §3).

        s_ij + bias,  bias = -m_h |p_i - p_j|,  m_h = 2^(-8 h / H)

    With a number of heads that is no power of two, heads beyond the largest power take slopes from between (the
    authors' code). The authors use it causally; bidirectional forms differ between codebases, hence `form`:
    "symmetric" as above, "half" with m_h / 2 added where the key stands before the query (DeepMind's randomized
    positional encodings).
    """

    form: Literal["symmetric", "half"] = "symmetric"

    family = "linear"
    reads = "distance"
    samples = ({"form": "half"},)

    def score(self, p, s, tile):
        m = slope(tile.head, tile.heads).astype(s.dtype)
        bias = -m * jnp.abs(tile.distance).astype(s.dtype)
        if self.form == "half":
            bias = bias + jnp.where(tile.distance > 0, m / 2, 0)
        return s + bias


def slope(head: Int[Array, ...], heads: int) -> Float[Array, ...]:
    """The slope of a head, counted from 0 (Press et al., 2022, §3; the authors' `get_slopes`)."""
    whole = 1 << (heads.bit_length() - 1)
    octave = jnp.where(head < whole, head + 1, head - whole + 0.5) * 8 / whole
    return 2.0**-octave
