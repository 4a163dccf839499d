"""M-RoPE: the pairs of a head shared out among time, height and width."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax.numpy as jnp
import numpy as np

from posenc.core.scheme import Scheme, bias_dtype, bound_setting, later
from posenc.numerics.rotation import End, Layout, angles, check_base, check_share, frequencies, rotate, turned_width


class MRoPE(Scheme, name="mrope"):
    """RoPE whose pairs are shared out among time, height and width (Qwen2-VL; Wang et al., 2024, §2.1).

        angle_c = p_{a(c)} ω_c,   ω_c = base^(-2c / d),   a(c) ∈ {time, height, width}

    The frequencies are those of one head, in order; `sections` is the number of pairs of each axis. "chunked" cuts the
    list into three, so that time has the highest frequencies (Qwen2-VL). "interleaved" assigns pairs in turn, t h w t h
    w, until height and width have theirs, and the others to time (Qwen3-VL). Left open, `sections` are in the
    proportion of those models, 16 : 24 : 24 and 24 : 20 : 20, as nearly as the number of pairs allows. `base` is
    Qwen2-VL's. With a `fraction` that share of the head is turned, the first features or by `at` the last, and sections
    and frequencies are those of a head of that width (Qwen3.5, GLM-4.5V). "interleaved" is said of two things: of the
    `order` of axes, and of the `layout` of pairs. Text tokens have the same number on all three axes, which gives plain
    RoPE; so does `positions=None`.

    Models of images such as FLUX give each axis a slice of the head with frequencies of its own, from 1 down. Their
    numbers are widths, not `sections`: write `rope_axes(widths=(16, 56, 56))`, since `mrope(sections=(8, 28, 28))`
    computes another function.

    ```bibtex
    @misc{wang2024qwen2vl,
      title = {{Qwen2-VL}: Enhancing Vision-Language Model's Perception of the World at Any Resolution},
      author = {Wang, Peng and Bai, Shuai and Tan, Sinan and Wang, Shijie and Fan, Zhihao and Bai, Jinze and others},
      year = {2024},
      eprint = {2409.12191},
    }
    @misc{bai2025qwen3vl,
      title = {{Qwen3-VL} Technical Report},
      author = {Bai, Shuai and Cai, Yuxuan and Chen, Ruizhe and others},
      year = {2025},
      eprint = {2511.21631},
    }
    ```
    """

    sections: tuple[int, int, int] | None = None
    order: Literal["chunked", "interleaved"] = "chunked"
    base: float = 1000000.0
    layout: Layout = "half"
    fraction: float = later(1.0)
    at: End = later("start")

    family = "rotary"
    axes = 3
    samples = ({"order": "interleaved"}, {"base": 10000.0, "layout": "interleaved"}, {"fraction": 0.5, "at": "end"})

    def validate(self):
        check_base("mrope", self.base)
        check_share("mrope", "fraction", self.fraction)
        if self.sections is not None and (min(self.sections) < 0 or not sum(self.sections)):
            raise ValueError(f"'mrope' has sections={self.sections}; they must count pairs, such as (16, 24, 24).")

    def bind(self, dims):
        return dataclasses.replace(self, sections=self._shared(dims.head))

    def query(self, p, q, info):
        frequency, axis = frequencies(2 * sum(self._shared(q.shape[-1])), self.base), self._axis_of_pairs()
        each = [angles(info[:, a], frequency[axis == a], bias_dtype(q)) for a in range(3)]
        rank = np.argsort(np.argsort(axis, kind="stable"))  # of each pair among those sorted by axis
        return rotate(q, jnp.concatenate(each, -1)[:, rank], self.layout, self.at), info

    def key(self, p, k, info):
        return self.query(p, k, info)

    def _axis_of_pairs(self) -> np.ndarray:
        """The axis of each pair."""
        sections = bound_setting(self.sections)
        if self.order == "chunked":
            return np.repeat(np.arange(3), sections)
        axes = np.zeros(sum(sections), int)
        for axis, count in enumerate(sections[1:], start=1):
            axes[axis : 3 * count : 3] = axis
        return axes

    def _shared(self, head: int) -> tuple[int, int, int]:
        """The number of pairs of each axis; a `ValueError` where they do not fit a head of this width."""
        pairs = turned_width("mrope", self.fraction, head) // 2
        sections = self._proportional(pairs) if self.sections is None else self.sections
        if sum(sections) != pairs:
            raise ValueError(
                f"'mrope' has sections={sections}, {sum(sections)} pairs, and a head of {head} features has {pairs}"
                f"{f' to turn with fraction={self.fraction}' * (self.fraction != 1)}; the sections must add up to that."
            )
        room = ((pairs + 1) // 3, pairs // 3) if self.order == "interleaved" else (pairs, pairs)
        if any(n > most for n, most in zip(sections[1:], room, strict=True)):
            raise ValueError(
                f"'mrope' with order='interleaved' has room for {room[0]} of {pairs} pairs for height and {room[1]} for"
                f" width, not {sections[1:]}; give time more, or take order='chunked'."
            )
        return sections

    def _proportional(self, pairs: int) -> tuple[int, int, int]:
        """As many pairs for height as for width, to the nearest whole number, and the rest for time."""
        if self.order == "chunked":
            side = (3 * pairs + 3) // 8
            return pairs - 2 * side, side, side
        side = (5 * pairs + 7) // 16
        height, width = min(side, (pairs + 1) // 3), min(side, pairs // 3)
        return pairs - height - width, height, width
