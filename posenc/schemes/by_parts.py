"""RoPE for longer contexts, pair by pair: fast pairs are kept, slow ones divided, and those between interpolated."""

from __future__ import annotations

from functools import partial
from typing import Literal

import jax.numpy as jnp

from posenc.core.scheme import Scheme, bound_setting, later
from posenc.numerics import rotary, scaling
from posenc.numerics.rotation import End, Layout, check_base, check_share, frequencies, turn


class ByParts(Scheme, name="by_parts"):
    """Each pair interpolated, NTK-scaled or unchanged, by how often it turns (bloc97, 2023; "NTK-by-parts").

        ω' = (1 - γ) ((1 - β) ω / factor + β ω_ntk) + γ ω

    β falls from 1 to 0 between the two numbers of turns `blend` within the original length L0, and γ between those of
    `keep`. Both are linear in the index of the pair, as in the released code (jquesnelle/yarn), whose constants are the
    defaults. `ntk_factor` and `extrapolation_factor` multiply β and γ. L0 is `original`, filled with the training
    length.

    The YaRN paper (Peng et al., 2024, §3.2) describes another form: one ramp, linear in turns instead of indices,
    between ω / factor and ω. That is `llama3` with `low_freq_factor=1.0, high_freq_factor=32.0`.

    ```bibtex
    @misc{bloc972023parts,
      title = {Add NTK-Aware interpolation "by parts" correction},
      author = {bloc97},
      year = {2023},
      howpublished = {Pull request 1 of jquesnelle/scaled-rope},
    }
    ```
    """

    factor: float = 4.0
    original: int | None = None
    blend: tuple[float, float] = scaling.BLEND
    keep: tuple[float, float] = scaling.KEEP
    ntk_factor: float = 1.0
    extrapolation_factor: float = 1.0
    base: float = 10000.0
    layout: Layout = "half"
    fraction: float = 1.0
    at: End = later("start")

    family = "rotary"
    extrapolates = "some (Peng et al., 2024)"
    samples = (
        {"factor": 8.0, "original": 64, "base": 50.0, "layout": "interleaved"},
        {"ntk_factor": 0.5, "extrapolation_factor": 0.75, "blend": (2.0, 0.5), "keep": (8.0, 3.0), "base": 50.0},
    )

    def validate(self):
        scaling.check_falling("by_parts", self.base)
        check_share("by_parts", "fraction", self.fraction)
        scaling.check_longer("by_parts", self.factor)
        scaling.check_original("by_parts", self.original)
        scaling.check_turns("by_parts", "blend", *self.blend)
        scaling.check_turns("by_parts", "keep", *self.keep)
        for name in ("ntk_factor", "extrapolation_factor"):
            scaling.check_part("by_parts", name, getattr(self, name))

    def angular_frequencies(self, width):
        scaling.check_exponent("by_parts", width)
        span = partial(scaling.spread, base=self.base, pairs=width // 2, original=bound_setting(self.original))
        kept = self.ntk_factor, self.extrapolation_factor
        frequency = frequencies(width, self.base)
        return scaling.by_parts(frequency, self.factor, span(*self.blend), span(*self.keep), kept)

    bind = rotary.bind
    query = rotary.query
    key = rotary.key


class YaRN(Scheme, name="yarn"):
    """RoPE interpolated pair by pair, with scores sharpened (Peng et al., 2024, §3.2-3.4).

        ω' = (1 - γ) ω / factor + γ ω,   q'_i = m R(p_i ω') q_i,   k'_j = m R(p_j ω') k_j,   m = 0.1 log factor + 1

    γ falls linearly in the index of the pair from 1 to 0, from the pair that turns `beta_fast` times within the
    original length L0 to the one that turns `beta_slow` times; with `truncate` these indices are rounded outwards. (In
    the paper the ramp is linear in turns; in its code and all others, in indices.) L0 is `original`, filled with the
    training length. `extrapolation_factor` multiplies γ, as in the authors' code. `taper` is that of `rope`, of ω'.

    `attention_factor` is m: "log" as above, or a number in its place. m multiplies queries and keys, so the scores of
    rotated features are m² times as large. With `mscale` and `mscale_all_dim`, m is the ratio of 0.1 mscale log factor
    + 1 to the same with `mscale_all_dim` (DeepSeek's models; Hugging Face reads them where a config has both). Without
    fine-tuning and with `attention_factor=1.0` this is the paper's NTK-by-parts, except for the ramp.

    ```bibtex
    @inproceedings{peng2024yarn,
      title = {YaRN: Efficient Context Window Extension of Large Language Models},
      author = {Peng, Bowen and Quesnelle, Jeffrey and Fan, Honglu and Shippole, Enrico},
      booktitle = {International Conference on Learning Representations},
      year = {2024},
      eprint = {2309.00071},
    }
    ```
    """

    factor: float = 4.0
    original: int | None = None
    beta_fast: float = scaling.ROTATIONS[0]
    beta_slow: float = scaling.ROTATIONS[1]
    truncate: bool = True
    attention_factor: float | Literal["log"] = "log"
    mscale: float = 1.0
    mscale_all_dim: float = 0.0
    extrapolation_factor: float = 1.0
    base: float = 10000.0
    layout: Layout = "half"
    fraction: float = 1.0
    at: End = later("start")
    taper: float = later(0.0)

    family = "rotary"
    extrapolates = "strongly: 128k tokens after little fine-tuning (Peng et al., 2024)"
    samples = (
        {"factor": 16.0, "original": 64, "base": 50.0, "layout": "interleaved"},
        {"attention_factor": 0.9, "beta_fast": 4.0, "beta_slow": 0.5, "truncate": False, "fraction": 0.5, "at": "end"},
        {
            "mscale": 0.707,
            "mscale_all_dim": 0.5,
            "extrapolation_factor": 0.75,
            "original": 40,
            "base": 50.0,
            "taper": 1.0,
        },
    )

    def validate(self):
        scaling.check_falling("yarn", self.base)
        check_share("yarn", "fraction", self.fraction)
        scaling.check_longer("yarn", self.factor)
        scaling.check_original("yarn", self.original)
        scaling.check_turns("yarn", ("beta_fast", "beta_slow"), self.beta_fast, self.beta_slow)
        for name in ("extrapolation_factor", "taper"):
            scaling.check_part("yarn", name, getattr(self, name))
        if self.mscale < 0 or self.mscale_all_dim < 0:
            raise ValueError(
                f"'yarn' has mscale={self.mscale} and mscale_all_dim={self.mscale_all_dim}; both must be at least 0."
            )
        if self.attention_factor == "log":
            return
        if self.attention_factor <= 0:
            raise ValueError(
                f"The setting 'attention_factor' of 'yarn' is {self.attention_factor}; it must be above 0, or 'log'."
            )
        if (self.mscale, self.mscale_all_dim) != (1, 0):
            raise ValueError(
                f"'yarn' has attention_factor={self.attention_factor}, so mscale and mscale_all_dim would be ignored;"
                " give one or the other."
            )

    def angular_frequencies(self, width):
        span = scaling.spread(
            self.beta_fast, self.beta_slow, self.base, width // 2, bound_setting(self.original), truncate=self.truncate
        )
        scaled = scaling.yarn(frequencies(width, self.base), self.factor, span, self.extrapolation_factor)
        return scaling.tapered("yarn", scaled, self.taper)

    bind = rotary.bind

    def query(self, p, q, info):
        angle, m = rotary.angles_of(self, p, q, info), self._magnitude()
        return turn(q, m * jnp.cos(angle), m * jnp.sin(angle), self.layout, self.at), info

    def key(self, p, k, info):
        return self.query(p, k, info)

    def _magnitude(self) -> float:
        if self.attention_factor != "log":
            return self.attention_factor
        return scaling.magnitude(self.factor, self.mscale) / scaling.magnitude(self.factor, self.mscale_all_dim)


class Llama3(Scheme, name="llama3"):
    """RoPE of Llama 3.1: slow pairs divided, fast ones kept, those between mixed (Grattafiori et al., 2024).

        ω' = (1 - γ) ω / factor + γ ω,   γ = (L0 ω / 2π - low) / (high - low), clipped to [0, 1]

    L0 ω / 2π is how often a pair turns within the original length. L0 is `original`: 8192 in the release, the training
    length here unless it is set. The defaults of `low_freq_factor`, `high_freq_factor` and `factor`, 1, 4 and 8, are
    the release's. With 1 and 32 it is NTK-by-parts as the YaRN paper writes it. `taper` is that of `rope`, of ω'.

    ```bibtex
    @misc{grattafiori2024llama,
      title = {The Llama 3 Herd of Models},
      author = {Grattafiori, Aaron and Dubey, Abhimanyu and others},
      year = {2024},
      eprint = {2407.21783},
    }
    ```
    """

    factor: float = 8.0
    original: int | None = None
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    base: float = 500000.0
    layout: Layout = "half"
    fraction: float = 1.0
    at: End = later("start")
    taper: float = later(0.0)

    family = "rotary"
    extrapolates = "some, after fine-tuning (Llama 3, 2024)"
    samples = (
        {"original": 64, "base": 50.0, "layout": "interleaved"},
        {"factor": 2.0, "low_freq_factor": 0.5, "high_freq_factor": 2.0, "taper": 1.0},
    )

    def validate(self):
        check_base("llama3", self.base)
        check_share("llama3", "fraction", self.fraction)
        scaling.check_longer("llama3", self.factor)
        scaling.check_original("llama3", self.original)
        names = "high_freq_factor", "low_freq_factor"
        scaling.check_turns("llama3", names, self.high_freq_factor, self.low_freq_factor)
        scaling.check_part("llama3", "taper", self.taper)

    def angular_frequencies(self, width):
        low, high, plain = self.low_freq_factor, self.high_freq_factor, frequencies(width, self.base)
        scaled = scaling.llama3(plain, self.factor, low, high, bound_setting(self.original))
        return scaling.tapered("llama3", scaled, self.taper)

    bind = rotary.bind
    query = rotary.query
    key = rotary.key
