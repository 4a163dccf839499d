"""RoPE with a slice of the head, and a list of frequencies, for each axis of a position."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, cast

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posenc.core.scheme import Scheme, bias_dtype, bound_setting, by_settings
from posenc.numerics.rotation import angles, check_base, frequencies, rotate


class RoPEAxes(Scheme, name="rope_axes"):
    """RoPE of each axis in a slice of the head of its own, with frequencies from 1 down in each (models of images and
    video since 2024, such as FLUX and HunyuanVideo; Kong et al., 2024).

        angle of pair m of axis a = p_a ω_am,   ω_am = base_a^(-2m / w_a),   m < w_a / 2

    `widths` are the features of each axis, in the order of a position's numbers; left open, there are two axes with
    half of the head each. They may leave features over, which are not turned and stand last. `base` is one number, or
    one for each axis. `layout` says which features make a pair: "interleaved" pairs 2i with 2i + 1 (FLUX, Wan,
    CogVideoX), "half" pairs i with i + n of all n pairs, those of the first axis first (CogView4, Cosmos), and
    "half_per_axis" does so within each slice (Allegro).

    FLUX is `widths=(16, 56, 56)`, FLUX.2 `widths=(32, 32, 32, 32), base=2000.0`, Wan `widths=(44, 42, 42)`, and
    HunyuanVideo `widths=(16, 56, 56), base=256.0`. With two equal halves it is `rope_2d` of that base. It is not
    `mrope`, which shares out the frequencies of one list. With `positions=None` a token's index is its number on every
    axis. Mochi learns a frequency for each axis and pair, and every axis turns every pair: that is
    `liere(axes=3, size=2)`.

    ```bibtex
    @misc{kong2024hunyuanvideo,
      title = {{HunyuanVideo}: A Systematic Framework For Large Video Generative Models},
      author = {Kong, Weijie and Tian, Qi and Zhang, Zijian and Min, Rox and others},
      year = {2024},
      eprint = {2412.03603},
    }
    ```
    """

    widths: tuple[int, ...] | None = None
    base: float | tuple[float, ...] = 10000.0
    layout: Literal["interleaved", "half", "half_per_axis"] = "interleaved"

    family = "rotary"
    axes = cast(Any, by_settings(lambda self: 2 if self.widths is None else len(self.widths)))
    samples = (
        {"widths": (2, 2), "layout": "half", "base": (100.0, 20.0)},
        {"layout": "half_per_axis", "base": 10.0},
    )

    def validate(self):
        if self.widths is not None and (len(self.widths) < 2 or any(w < 2 or w % 2 for w in self.widths)):
            raise ValueError(
                f"'rope_axes' has widths={self.widths}; they are even numbers of features, one for each of two or more"
                " axes, such as (16, 56, 56), and one axis alone is 'rope'."
            )
        for base in self._bases():
            check_base("rope_axes", base)
        if len(self._bases()) not in (1, self.axes):
            raise ValueError(
                f"'rope_axes' has {self.axes} axes and base={self.base}; give one number, or one for each axis."
            )

    def bind(self, dims):
        half = dims.head // 4 * 2
        bound = dataclasses.replace(self, widths=(half, half)) if self.widths is None and half else self
        bound._frequencies(dims.head)
        return bound

    def query(self, p, q, info):
        each = [angles(info[:, a], f, bias_dtype(q)) for a, f in enumerate(self._frequencies(q.shape[-1]))]
        if self.layout != "half_per_axis":
            return rotate(q, jnp.concatenate(each, -1), self.layout), info
        return self._slice_by_slice(q, each), info

    def key(self, p, k, info):
        return self.query(p, k, info)

    def _slice_by_slice(self, x: Float[Array, "L d"], each: list[Array]) -> Float[Array, "L d"]:
        *slices, rest = jnp.split(x, np.cumsum(bound_setting(self.widths)), -1)
        return jnp.concatenate([rotate(s, angle, "half") for s, angle in zip(slices, each, strict=True)] + [rest], -1)

    def _bases(self) -> tuple[float, ...]:
        return self.base if isinstance(self.base, tuple) else (self.base,)

    def _frequencies(self, head: int) -> list[np.ndarray]:
        """The frequencies of each axis; a `ValueError` where the slices do not fit a head of this width."""
        if self.widths is None:
            raise ValueError(f"'rope_axes' turns a pair for each of two axes, and a head has {head} features; take 4.")
        if sum(self.widths) > head:
            raise ValueError(
                f"'rope_axes' has widths={self.widths}, {sum(self.widths)} features, and a head has {head}; the widths"
                " must add up to at most that."
            )
        bases = self._bases() * (self.axes if len(self._bases()) == 1 else 1)
        return [frequencies(width, base) for width, base in zip(self.widths, bases, strict=True)]
