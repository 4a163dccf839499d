"""BAM: a generalised Gaussian prior over distances."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype, by_settings
from posenc.numerics.bias import slope
from posenc.numerics.temperatures import log_of, multiplied, scalable

EPS = 1e-5


class BAM(Scheme, name="bam"):
    """A prior over distances whose shape is learned for each head, between heavy tails and a window (Bianchessi et al.,
    2025, §3).

        s_ij - e^{r_h} (|p_j - p_i - μ_h| + 1e-5)^{a_h},   μ_h = e^{l_h} - e^{-l_h}
        s_ij - (e^{r_h} |p_j - p_i - μ_h| + 1e-5)^{a_h}    with form="inference"

    a starts at 1 and e^r at ALiBi's slope m_h, so that it starts as `alibi`; the parameter is r - log m_h, which starts
    at 0. l is 0 and not trained, as in the authors' code, unless `learned_place`: then keys at the distance μ_h,
    counted as key minus query, are preferred. The authors' code for inference computes the second form, which is
    another function unless a = 1. An a below 0 prefers far keys; nothing prevents it.

    With `ssmax` the whole, scores and prior, is multiplied by s_h log n_i, with n visible keys: BAM-SSMax, where s
    starts at 1 / log L for the training length L, as in `ssmax` (the authors leave it open). Where the prior shall not
    be multiplied, write `ssmax + bam`.

    ```bibtex
    @inproceedings{bianchessi2026bayesian,
      title = {Bayesian Attention Mechanism: A Probabilistic Framework for Positional Encoding and Context Length
               Extrapolation},
      author = {Bianchessi, Arthur S. and Aguirre, Yasmin C. and Barros, Rodrigo C. and Kupssinskü, Lucas S.},
      booktitle = {International Conference on Learning Representations},
      year = {2026},
      eprint = {2505.22842},
    }
    ```
    """

    form: Literal["training", "inference"] = "training"
    learned_place: bool = False
    ssmax: bool = False

    family = "kernel"
    extrapolates = "strongly in retrieval: 500 times the length (Bianchessi et al., 2025)"
    reads = by_settings(lambda self: "positions" if self.ssmax else "distance")
    precedence = by_settings(lambda self: "temperature" if self.ssmax else "any")
    samples = ({"form": "inference", "learned_place": True}, {"ssmax": True})

    def bind(self, dims):
        if self.ssmax:
            log_of("bam", dims.trained)
        return self

    def init_head(self, key, dims):
        p = {"shape": jnp.ones(()), "scale": jnp.zeros(())}
        if self.learned_place:
            p["place"] = jnp.zeros(())
        if self.ssmax:
            p["s"] = jnp.asarray(1 / log_of("bam", dims.trained), jnp.float32)
        return p

    def locate(self, p, x, at, carry):
        return (at.visible if self.ssmax else at.position), carry

    def overrides(self, *hooks):
        unused = () if self.ssmax else ("locate", "query")
        return Scheme.overrides(self, *(h for h in hooks if h not in unused))

    def query(self, p, q, info):
        if not self.ssmax:
            return q, info
        factor = scalable(p["s"], info, bias_dtype(q))
        return multiplied(q, factor), factor

    def score(self, p, s, tile):
        exact = bias_dtype(s)
        p = {name: a.astype(exact) for name, a in p.items()}
        steep = slope(tile.head, tile.heads).astype(exact) * jnp.exp(p["scale"])
        away = jnp.abs(
            tile.distance.astype(exact) + 2 * jnp.sinh(p["place"] if self.learned_place else jnp.zeros((), exact))
        )
        if self.form == "training":
            prior = steep * (away + EPS) ** p["shape"]
        else:
            prior = (steep * away + EPS) ** p["shape"]
        return s - (tile.query_info.astype(exact)[:, None] * prior if self.ssmax else prior)
