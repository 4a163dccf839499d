"""HoPE: RoPE without the pairs too slow for the training length."""

from __future__ import annotations

import numpy as np

from posenc.core.scheme import Scheme, later
from posenc.numerics import rotary
from posenc.numerics.rotation import End, Layout, check_base, check_share, frequencies


class HoPE(Scheme, name="hope"):
    """RoPE with fast pairs only: pairs that do not complete a turn in training are not rotated (Chen et al., 2024, §4).

        ω'_i = ω_i where 2π / ω_i ≤ L, and 0 elsewhere,   ω_i = base^(-2i / d)

    L is `trained`, filled with the training length. Pairs of frequency 0 carry content without position. This is the
    same as `rope(p=...)` with the share of pairs that is kept; below a training length of 7 no pair is kept, and it is
    `nope`.

    The cut-off follows the paper from memory, and a port and a note by others; no authors' code was found.

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
    at: End = later("start")

    family = "rotary"
    extrapolates = "some (Chen et al., 2024)"
    samples = ({"trained": 64, "layout": "interleaved"}, {"trained": 20, "fraction": 0.5, "base": 50.0, "at": "end"})

    def validate(self):
        check_base("hope", self.base)
        check_share("hope", "fraction", self.fraction)
        if self.trained is not None and self.trained < 1:
            raise ValueError(f"The setting 'trained' of 'hope' is {self.trained}; it must be a length of at least 1.")

    def angular_frequencies(self, width):
        frequency = frequencies(width, self.base)
        return np.where(2 * np.pi <= self.trained * frequency, frequency, 0.0)

    bind = rotary.bind
    query = rotary.query
    key = rotary.key
