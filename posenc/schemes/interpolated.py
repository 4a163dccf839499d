"""RoPE for longer contexts, all pairs by one rule: positions divided or the base raised, once or as the text grows."""

from __future__ import annotations

from functools import partial
from typing import Literal

import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype, bound_setting, later
from posenc.numerics import rotary, scaling
from posenc.numerics.rotation import (
    End,
    Layout,
    angles,
    check_base,
    check_share,
    frequencies,
    rotate,
    turn,
    turned_width,
)


class PI(Scheme, name="pi"):
    """RoPE at positions divided by a factor: position interpolation (Chen et al., 2023, §2.3, eq. 4).

        q'_i = R(p_i ω / factor) q_i,   k'_j = R(p_j ω / factor) k_j,   ω_i = base^(-2i / d)

    `factor` is the context length divided by the training length; 1 is RoPE. This is the same as `rope @ scale(factor)`
    and as Hugging Face's "linear". `layout` and `fraction` are those of `rope`.

    ```bibtex
    @misc{chen2023extending,
      title = {Extending Context Window of Large Language Models via Positional Interpolation},
      author = {Chen, Shouyuan and Wong, Sherman and Chen, Liangjian and Tian, Yuandong},
      year = {2023},
      eprint = {2306.15595},
    }
    ```
    """

    factor: float = 4.0
    base: float = 10000.0
    layout: Layout = "half"
    fraction: float = 1.0
    at: End = later("start")

    family = "rotary"
    extrapolates = "some, after fine-tuning (Chen et al., 2023)"
    samples = ({"factor": 2.5, "layout": "interleaved"}, {"fraction": 0.5, "at": "end", "base": 500.0})

    def validate(self):
        check_base("pi", self.base)
        check_share("pi", "fraction", self.fraction)
        scaling.check_longer("pi", self.factor)

    def angular_frequencies(self, width):
        return frequencies(width, self.base) / self.factor

    bind = rotary.bind
    query = rotary.query
    key = rotary.key


class NTK(Scheme, name="ntk"):
    """RoPE with a larger base, so that the slowest pair turns `factor` times slower (bloc97, 2023; "NTK-aware").

        ω_i = (base · factor^(d / (d - 2)))^(-2i / d) = base^(-2i / d) · factor^(-2i / (d - 2))

    The fastest pair is unchanged. `factor` is the alpha of the released code. d is the number of rotated features; 2
    are refused, since the exponent would divide by zero.

    ```bibtex
    @misc{bloc972023ntk,
      title = {NTK-Aware Scaled RoPE allows LLaMA models to have extended (8k+) context size without any fine-tuning
               and minimal perplexity degradation},
      author = {bloc97},
      year = {2023},
      howpublished = {Reddit, r/LocalLLaMA},
    }
    ```
    """

    factor: float = 4.0
    base: float = 10000.0
    layout: Layout = "half"
    fraction: float = 1.0
    at: End = later("start")

    family = "rotary"
    extrapolates = "some, without fine-tuning (bloc97, 2023)"
    samples = ({"factor": 8.0, "layout": "interleaved"}, {"base": 500.0})

    def validate(self):
        check_base("ntk", self.base)
        check_share("ntk", "fraction", self.fraction)
        scaling.check_longer("ntk", self.factor)

    def angular_frequencies(self, width):
        scaling.check_exponent("ntk", width)
        return scaling.ntk(frequencies(width, self.base), self.factor)

    bind = rotary.bind
    query = rotary.query
    key = rotary.key


class DynamicNTK(Scheme, name="dynamic_ntk"):
    """RoPE that stretches only as far as the text has grown: dynamic NTK (emozilla, 2023; jquesnelle/yarn).

        ω_i = base^(-2i / d) · g^(-2i / (d - 2)),   g = factor · L / L0 - (factor - 1) for L > L0, and 1 up to L0

    L0 is `original`, filled with the training length. L is the current length: the largest position in the token's
    document, plus one. A forward pass over a whole text uses the final length for every token, as the released codes
    do, so the outputs of early tokens depend on the length of the text, but not on the content of later tokens. The
    released codes use the longest text of a batch, and may keep the length of an earlier, longer one; here each
    document has its own length, and none is kept. Keys rotated while the text was shorter have different frequencies
    from later queries. A cache therefore stores keys unrotated and rotates all of them again in each call: a step then
    gives what a forward pass over the text so far gives for its last tokens. It is defined within one sequence.

    `rule` says how frequencies are stretched: "ntk" as above (the same as Hugging Face's "dynamic"), or by the factor
    L / L0: "linear" as in `pi`, "by_parts" as in `by_parts`, and "yarn" as in `yarn`, with its attention factor.

    Up to L0 angles are as exact as RoPE's. Beyond it frequencies are float32 numbers in a float32 model, and the angle
    at position p is accurate to about 1e-7 p.

    ```bibtex
    @misc{emozilla2023dynamic,
      title = {Dynamically Scaled RoPE further increases performance of long context LLaMA with zero fine-tuning},
      author = {emozilla},
      year = {2023},
      howpublished = {Reddit, r/LocalLLaMA},
    }
    ```
    """

    factor: float = 1.0
    original: int | None = None
    rule: Literal["ntk", "linear", "by_parts", "yarn"] = "ntk"
    base: float = 10000.0
    layout: Layout = "half"
    fraction: float = 1.0
    at: End = later("start")

    family = "rotary"
    extrapolates = "some, without fine-tuning (emozilla, 2023)"
    limits = scaling.BY_LENGTH
    samples = (
        {"factor": 2.0, "original": 4, "layout": "interleaved"},
        {"rule": "linear", "original": 4, "fraction": 0.5, "at": "end"},
        {"rule": "by_parts", "original": 5, "base": 50.0},
        {"rule": "yarn", "original": 5, "base": 50.0},
    )

    def validate(self):
        scaling.check_falling("dynamic_ntk", self.base)
        check_share("dynamic_ntk", "fraction", self.fraction)
        scaling.check_longer("dynamic_ntk", self.factor)
        scaling.check_original("dynamic_ntk", self.original)
        if self.rule != "ntk" and self.factor != 1:
            raise ValueError(
                f"The rule {self.rule!r} of 'dynamic_ntk' stretches by the length only, but factor is {self.factor};"
                " leave it at 1, or take the rule 'ntk'."
            )

    def bind(self, dims):
        self._width(dims.head)
        return rotary.filled(self, dims)

    def locate(self, p, x, at, carry):
        return (at.position, scaling.extent(at.position, at.segment)), carry

    def lookup(self, info, key_info, rows):
        return info[0], key_info[1].at[rows].get(
            mode="fill", fill_value=jnp.nan
        )  # only the keys know the length of the text

    def query(self, p, q, info):
        position, length = info
        exact, frequency = bias_dtype(q), frequencies(self._width(q.shape[-1]), self.base)
        longer = jnp.maximum(length.astype(exact) / self.original, 1)
        slower = self._slower(frequency.astype(exact)[None, :], longer[:, None])
        far = position.astype(exact)[:, None] * slower
        angle = jnp.where((longer <= 1)[:, None], angles(position, frequency, exact), far)
        if self.rule != "yarn":
            return rotate(q, angle, self.layout, self.at), info
        size = (1 + 0.1 * jnp.log(longer))[:, None]
        return turn(q, size * jnp.cos(angle), size * jnp.sin(angle), self.layout, self.at), info

    def key(self, p, k, info):
        return self.query(p, k, info)

    def _slower(self, frequency, longer):
        span = partial(scaling.spread, base=self.base, pairs=frequency.shape[-1], original=bound_setting(self.original))
        match self.rule:
            case "ntk":
                return scaling.ntk(frequency, self.factor * longer - (self.factor - 1))
            case "linear":
                return frequency / longer
            case "by_parts":
                return scaling.by_parts(frequency, longer, span(*scaling.BLEND), span(*scaling.KEEP), (1.0, 1.0))
            case "yarn":
                return scaling.yarn(frequency, longer, span(*scaling.ROTATIONS))

    def _width(self, head: int) -> int:
        width = turned_width("dynamic_ntk", self.fraction, head)
        if self.rule in ("ntk", "by_parts"):
            scaling.check_exponent("dynamic_ntk", width)
        return width
