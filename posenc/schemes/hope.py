"""HoPE: RoPE without the pairs too slow for the training length."""

from __future__ import annotations

import dataclasses

import numpy as np

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.rotation import Layout, angles, check_base, check_share, frequencies, rotate, turned_width


class HoPE(Scheme, name="hope"):
    """RoPE with fast pairs alone: those that do not complete a turn in training are not turned (Chen et al., 2024, §4).

        ω'_i = ω_i where 2π / ω_i ≤ L, and 0 elsewhere,   ω_i = base^(-2i / d)

    L is `trained`, filled from the training length. Pairs of frequency 0 carry content without position. The same as
    `rope(p=...)` with the share that this leaves; below a training length of 7 it leaves none, and this is `nope`.

    The cut is from memory of the paper, and as a port and a note on it by others have it; no authors' code was found.

    ```bibtex
    @inproceedings{chen2025hope,
      title = {HoPE: A Novel Positional Encoding Without Long-Term Decay for Enhanced Context Awareness and
               Extrapolation},
      author = {Chen, Yuhan and Lv, Ang and Luan, Jian and Wang, Bin and Liu, Wei},
      booktitle = {Proceedings of the 63rd Annual Meeting of the Association for Computational Linguistics},
      year = {2025},
      eprint = {2410.21216},
    }
    ```
    """

    trained: int | None = None
    base: float = 10000.0
    layout: Layout = "half"
    fraction: float = 1.0

    family = "rotary"
    extrapolates = "some (Chen et al., 2024)"
    samples = ({"trained": 64, "layout": "interleaved"}, {"trained": 20, "fraction": 0.5, "base": 50.0})

    def validate(self):
        check_base("hope", self.base)
        check_share("hope", "fraction", self.fraction)
        if self.trained is not None and self.trained < 1:
            raise ValueError(f"The setting 'trained' of 'hope' is {self.trained}; it is a length of at least 1.")

    def bind(self, dims):
        turned_width("hope", self.fraction, dims.head)
        return self if self.trained is not None else dataclasses.replace(self, trained=dims.trained)

    def query(self, p, q, info):
        frequency = frequencies(turned_width("hope", self.fraction, q.shape[-1]), self.base)
        frequency = np.where(2 * np.pi <= self.trained * frequency, frequency, 0.0)
        return rotate(q, angles(info, frequency, bias_dtype(q)), self.layout), info

    def key(self, p, k, info):
        return self.query(p, k, info)
