"""LongRoPE: the frequency of each pair divided by a searched factor, one set for short texts and one for long ones."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import jax.numpy as jnp
import numpy as np

from posenc.core.scheme import Scheme, bias_dtype, bound_setting, by_settings, later
from posenc.numerics import rotary, scaling
from posenc.numerics.rotation import End, Layout, angles, check_base, check_share, frequencies, turn, turned_width


class LongRoPE(Scheme, name="longrope"):
    """RoPE with the frequency of each pair divided by its own searched factor (Ding et al., 2024, §3.2; Phi-3).

        ω'_i = ω_i / λ_i,   q'_i = m R(p_i ω') q_i,   k'_j = m R(p_j ω') k_j,   m = √(1 + log factor / log L0)

    With `switch="length"` λ is `short` up to and including the original length L0 and `long` beyond, by the current
    length of the token's document: its largest position plus one. All tokens of a document use the same set, so the
    outputs of early tokens depend on the length of the text, and keys rotated before the switch would be stale. A cache
    therefore stores keys unrotated and rotates all of them again in each call. Hugging Face's code stores them rotated
    nevertheless, and uses one length for a whole batch. `switch="never"` uses `long` at any length (the authors' code
    for models fine-tuned to it). "gradual" grows linearly from 1 at L0 to `long` at factor · L0,
    1 + (λ - 1) (L / L0 - 1) / (factor - 1), and on beyond it. (The authors' code applies the line below L0 as well,
    where it is under 1; here it is RoPE there.)

    λ has a number for each rotated pair. The search is not part of this library: `long` left open is `factor` for every
    pair, which is `pi`, and `short` left open is 1. L0 is `original`, filled with the training length, and `factor` is
    how many times longer the context is. `magnitude` is m: "su" as above, "yarn" for 0.1 log factor + 1, or a number.
    The first `start` positions keep the angles and sizes of RoPE.

    ```bibtex
    @inproceedings{ding2024longrope,
      title = {LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens},
      author = {Ding, Yiran and Zhang, Li Lyna and Zhang, Chengruidong and Xu, Yuanyuan and Shang, Ning and Xu, Jiahang
                and Yang, Fan and Yang, Mao},
      booktitle = {International Conference on Machine Learning},
      year = {2024},
      eprint = {2402.13753},
    }
    ```
    """

    long: tuple[float, ...] | None = None
    short: tuple[float, ...] | None = None
    factor: float = 4.0
    original: int | None = None
    switch: Literal["length", "never", "gradual"] = "length"
    magnitude: float | Literal["su", "yarn"] = "su"
    start: int = 0
    base: float = 10000.0
    layout: Layout = "half"
    fraction: float = 1.0
    at: End = later("start")

    family = "rotary"
    extrapolates = "strongly, with searched factors (Ding et al., 2024)"
    limits = by_settings(lambda self: {} if self.switch == "never" else scaling.BY_LENGTH)
    samples = (
        {"original": 8, "layout": "interleaved"},
        {"switch": "never", "start": 2, "magnitude": 1.2, "fraction": 0.5, "at": "end"},
        {"switch": "gradual", "original": 5, "magnitude": "yarn"},
    )

    def validate(self):
        check_base("longrope", self.base)
        check_share("longrope", "fraction", self.fraction)
        scaling.check_longer("longrope", self.factor)
        scaling.check_original("longrope", self.original, 2)
        for name in ("long", "short"):
            if getattr(self, name) == ():
                raise ValueError(f"The setting {name!r} of 'longrope' is empty; give one number for each pair.")
            if any(number <= 0 for number in getattr(self, name) or ()):
                raise ValueError(
                    f"The setting {name!r} of 'longrope' holds {min(getattr(self, name))}; all must be above 0."
                )
        if self.switch != "length" and set(self.short or (1.0,)) != {1.0}:
            raise ValueError(f"'longrope' with switch={self.switch!r} does not use short; leave it out.")
        if self.switch == "gradual" and self.factor == 1:
            raise ValueError("'longrope' with switch='gradual' has factor=1; it must be above 1.")
        if self.start < 0:
            raise ValueError(
                f"The setting 'start' of 'longrope' is {self.start}; it must be a number of positions, 0 or more."
            )
        if not isinstance(self.magnitude, str) and self.magnitude <= 0:
            raise ValueError(
                f"The setting 'magnitude' of 'longrope' is {self.magnitude}; it must be above 0, 'su' or 'yarn'."
            )

    def bind(self, dims):
        pairs = turned_width("longrope", self.fraction, dims.head) // 2
        long = (self.factor,) * pairs if self.long is None else self.long
        short = (1.0,) * pairs if self.short is None else self.short
        fitted = dataclasses.replace(rotary.filled(self, dims), long=long, short=short)
        fitted._rates(dims.head)
        return fitted

    def locate(self, p, x, at, carry):
        if self.switch == "never":
            return at.position, carry
        return (at.position, scaling.extent(at.position, at.segment)), carry

    def lookup(self, info, key_info, rows):
        if self.switch == "never":
            return info
        return info[0], key_info[1].at[rows].get(
            mode="fill", fill_value=jnp.nan
        )  # only the keys know the length of the text

    def query(self, p, q, info):
        exact, (plain, short, long) = bias_dtype(q), self._rates(q.shape[-1])
        position, length = info if isinstance(info, tuple) else (info, None)
        angle = angles(position, long, exact)
        if self.switch == "length":
            length = bound_setting(length).astype(exact)[:, None]
            angle = jnp.where(length <= self.original, angles(position, short, exact), angle)
            angle = jnp.where(jnp.isnan(length), jnp.nan, angle)
        elif self.switch == "gradual":
            way = jnp.maximum(bound_setting(length).astype(exact)[:, None] / self.original - 1, 0) / (self.factor - 1)
            divisor = 1 + (np.asarray(self.long, exact)[None, :] - 1) * way
            grown = position.astype(exact)[:, None] * (plain.astype(exact)[None, :] / divisor)
            angle = jnp.where(way <= 0, angles(position, plain, exact), grown)
        first, m = (position < self.start)[:, None], self._magnitude()
        if self.start:
            angle, m = jnp.where(first, angles(position, plain, exact), angle), jnp.where(first, 1, m).astype(exact)
        return turn(q, m * jnp.cos(angle), m * jnp.sin(angle), self.layout, self.at), info

    def key(self, p, k, info):
        return self.query(p, k, info)

    def _rates(self, head: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The frequencies of RoPE, for short texts and for long ones."""
        width = turned_width("longrope", self.fraction, head)
        plain = frequencies(width, self.base)
        for name in ("short", "long"):
            if len(factors := getattr(self, name)) != len(plain):
                raise ValueError(
                    f"The setting {name!r} of 'longrope' holds {len(factors)} numbers, and {width} of {head} features"
                    f" are turned; give {len(plain)}, one for each pair."
                )
        return plain, plain / np.asarray(self.short), plain / np.asarray(self.long)

    def _magnitude(self) -> float:
        if self.magnitude == "yarn":
            return scaling.magnitude(self.factor)
        if self.magnitude == "su":
            return math.sqrt(1 + math.log(self.factor) / math.log(bound_setting(self.original)))
        return self.magnitude
