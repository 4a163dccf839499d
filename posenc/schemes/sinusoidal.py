"""Sines and cosines of the position, added to the input."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.rotation import angles, check_base, frequencies


class Sinusoidal(Scheme, name="sinusoidal"):
    """Sines and cosines of the position at geometric wavelengths, added to the input (Vaswani et al., 2017, §3.5).

        x'_i = x_i + E[p_i],   E[p, 2k] = sin(p ω_k),   E[p, 2k+1] = cos(p ω_k),   ω_k = base^(-2k / D)

    Three forms are in use. `layout="interleaved"` is the paper's; "halves" has all sines first (tensor2tensor, fairseq,
    Marian, DeepMind), which is the same up to a permutation of features. `spacing="t2t"` divides exponents by n - 1,
    n = ⌊D/2⌋, so that the longest wavelength is 2π base (tensor2tensor, fairseq), which is a different function. An odd
    width has one more sine than cosines (Marian), and with "t2t" a last feature of zeros (tensor2tensor).

    The authors multiply x by √D first; that is left to the model. `learned_scale` multiplies E by a learned number that
    starts at D^(-1/2) (Hua et al., 2022). Positions may be real or negative; below 2^31 angles are exact to float32.

    ```bibtex
    @inproceedings{vaswani2017attention,
      title = {Attention Is All You Need},
      author = {Vaswani, Ashish and Shazeer, Noam and Parmar, Niki and Uszkoreit, Jakob and Jones, Llion and
                Gomez, Aidan N. and Kaiser, Łukasz and Polosukhin, Illia},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2017},
      eprint = {1706.03762},
    }
    ```
    """

    base: float = 10000.0
    layout: Literal["interleaved", "halves"] = "interleaved"
    spacing: Literal["paper", "t2t"] = "paper"
    learned_scale: bool = False

    family = "absolute"
    tied = frozenset({"scale"})
    extrapolates = "perplexity rises at once (Press et al., 2022)"
    samples = ({"layout": "halves"}, {"layout": "halves", "spacing": "t2t"}, {"learned_scale": True})

    def validate(self):
        check_base("sinusoidal", self.base)

    def init(self, key, dims):
        return {"scale": jnp.asarray(dims.width**-0.5, jnp.float32)} if self.learned_scale else {}

    def embed(self, p, x, at):
        exact = bias_dtype(x)
        e = self.encode(at.position, x.shape[-1], exact)
        if self.learned_scale:
            e = e * p["scale"].astype(exact)
        return (x.astype(exact) + e).astype(x.dtype)

    def encode(self, position: Num[Array, " L"], width: int, dtype: jnp.dtype) -> Float[Array, "L D"]:
        """E at these positions."""
        angle = angles(position, self._frequencies(width), dtype)
        sin, cos = jnp.sin(angle), jnp.cos(angle)
        if self.layout == "halves":
            e = jnp.concatenate([sin, cos], -1)
        else:
            e = jnp.stack([sin, cos], -1).reshape(sin.shape[0], -1)
        if e.shape[-1] < width:
            return jnp.pad(e, ((0, 0), (0, 1)))
        return e[:, :width]

    def _frequencies(self, width: int) -> np.ndarray:
        if self.spacing == "paper":
            return frequencies(width, self.base)
        n = width // 2
        return self.base ** (-np.arange(n) / max(n - 1, 1))
