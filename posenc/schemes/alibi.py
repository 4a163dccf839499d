"""ALiBi: a penalty linear in distance."""

from __future__ import annotations

import math
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from posenc.core.scheme import Scheme, bias_dtype, by_settings, later
from posenc.numerics.bias import slope

HIDDEN = -1e9
"""The bias that hides a key from a head of the form "split": finite, and 0 after softmax beside any visible key."""


class ALiBi(Scheme, name="alibi"):
    """A penalty linear in distance, its slope fixed per head (Press et al., 2022, §3).

        s_ij - m_h |p_i - p_j|,  m_h = factor · 2^(-8 h / H),  h = 1 … H

    If the number of heads is not a power of two, heads beyond the largest power have slopes from between (the authors'
    code). That code adds m_h p_j, which differs by a constant per row and rounds worse. The paper is causal; for
    bidirectional attention codebases differ, so `form` offers four: "symmetric" as above; "half" adds m_h / 2 for keys
    before the query (DeepMind's randomized positional encodings); "sided" learns two slopes, for the past and for the
    future, as multiples of m_h unless `slopes` says otherwise; "split" hides the future from one half of the heads and
    the past from the other, with the slopes of a model with that many heads in each half. The authors suggest the last
    two in answers to readers. Under a causal mask heads of the second half of "split" see only their own token.

    `slopes="log"` learns slopes through their logarithm, so that they start at m_h and stay positive. "logistic" learns
    them through a logistic function from random starts σ(N(-2, 1)), as the authors suggest for two sides. A tuple holds
    m_h itself, one number for each head, 0 for a head without a penalty; `factor` multiplies it too. "harmonic" slopes
    are 1 / h: `{alibi(slopes='harmonic'), nope}` is NAPE (2506.16640). `factor` is 96 in BiPE. `fraction` is the share
    of heads with a penalty, rounded up: the first ones, with the slopes of a model with that many heads
    (x-transformers).

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

    form: Literal["symmetric", "half", "sided", "split"] = "symmetric"
    slopes: Literal["fixed", "log", "logistic", "harmonic"] | tuple[float, ...] = later("fixed")
    factor: float = later(1.0)
    fraction: float = later(1.0)

    family = "linear"
    reads = "distance"
    limits = by_settings(
        lambda self: {"cross": "each half of its heads sees one side of the query"} if self.form == "split" else {}
    )
    extrapolates = "perplexity holds far beyond it (Press et al., 2022), copying does not (Kazemnejad et al., 2023)"
    samples = (
        {"form": "half"},
        {"form": "sided"},
        {"form": "split", "slopes": "log", "factor": 3.0},
        {"form": "sided", "slopes": "logistic", "fraction": 0.5},
        {"slopes": "harmonic"},
    )

    def validate(self):
        if not self.factor > 0:
            raise ValueError(f"The factor of 'alibi' is {self.factor}; it must be above 0.")
        if not 0 < self.fraction <= 1:
            raise ValueError(f"The fraction of heads of 'alibi' is {self.fraction}; it must be above 0 and at most 1.")
        if isinstance(self.slopes, tuple):
            if not self.slopes or min(self.slopes) < 0:
                raise ValueError(
                    f"'alibi' has slopes={self.slopes}; they are numbers of at least 0, one for each head."
                )
            if self.fraction != 1:
                raise ValueError(
                    f"'alibi' was given a slope for each head, and fraction={self.fraction} would say again which heads"
                    " have none; leave fraction out, and give those heads a slope of 0."
                )

    def bind(self, dims):
        self._check_heads(dims.heads)
        return self

    def init_head(self, key, dims):
        if self.form != "sided" and self._rule == "fixed":
            return {}
        names = ("past", "future") if self.form == "sided" else ("slope",)
        start = {"fixed": jnp.ones, "log": jnp.zeros}.get(self._rule) or (lambda n: jax.random.normal(key, n) - 2)
        return dict(zip(names, start((len(names),)), strict=True))

    def score(self, p, s, tile):
        exact = bias_dtype(s)
        d = tile.distance.astype(exact)
        past, future = self._slopes(p, tile.head, tile.heads, exact)
        bias = -jnp.where(d > 0, past * d, -future * d)
        if self.form == "half":
            bias = bias + jnp.where(d > 0, past / 2, 0)
        if self.form == "split":
            n = self._penalized(tile.heads)
            ahead = jnp.where(tile.head < (n + 1) // 2, d < 0, d > 0)  # hidden from this half of the heads
            bias = jnp.where(ahead & (tile.head < n), HIDDEN, bias)
        return s + bias

    def _slopes(self, p, head: Int[Array, ""], heads: int, dtype: jnp.dtype) -> tuple[Array, Array]:
        """The slopes towards the past and the future."""
        n = self._penalized(heads)
        rule = slope if self.slopes != "harmonic" else lambda head, heads: 1 / (head + 1).astype(dtype)
        m = rule(head, n)
        if isinstance(self.slopes, tuple):
            self._check_heads(heads)
            m = jnp.asarray(self.slopes, dtype)[head]
        elif self.form == "split":
            first = (n + 1) // 2
            m = jnp.where(head < first, rule(head, first), rule(head - first, max(n - first, 1)))
        learned = {"fixed": lambda a: m * a, "log": lambda a: m * jnp.exp(a), "logistic": jax.nn.sigmoid}[self._rule]
        names = ("past", "future") if self.form == "sided" else ("slope", "slope")
        slopes = (learned(p[name].astype(dtype)) if name in p else m.astype(dtype) for name in names)
        past, future = (jnp.where(head < n, self.factor * a, 0).astype(dtype) for a in slopes)
        return past, future

    @property
    def _rule(self) -> str:
        """How slopes are learned; those that were given one by one are not, but for sides that multiply them."""
        return self.slopes if self.slopes in ("log", "logistic") else "fixed"

    def _check_heads(self, heads: int) -> None:
        if isinstance(self.slopes, tuple) and len(self.slopes) != heads:
            raise ValueError(f"'alibi' was given {len(self.slopes)} slopes for {heads} heads; give one for each head.")

    def _penalized(self, heads: int) -> int:
        return max(1, math.ceil(self.fraction * heads - 1e-6))
