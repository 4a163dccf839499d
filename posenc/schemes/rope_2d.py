"""RoPE in the plane: a share of the pairs for each axis, or learned directions."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype, bound_setting
from posenc.numerics.rotation import Layout, angles, check_base, frequencies, rotate


class RoPE2D(Scheme, name="rope_2d"):
    """RoPE for positions in a plane, (x, y) (Heo et al., 2024, §3.2 and §3.3).

        axial: angle_c = x ω_c for the first d/4 pairs, y ω_{c - d/4} for the others,   ω_c = base^(-4c / d)
        mixed: angle_c = x f^x_{h,c} + y f^y_{h,c}

    "mixed" frequencies are learned, for each layer and head; they start with the lengths ω_c, the first d/4 in one
    random direction per head, the others at right angles to it. `base` left open is the paper's: 100 for "axial", 10
    for "mixed". The authors do not rotate the [CLS] token: give it the position (0, 0). With `positions=None` a token's
    index is both its x and its y.

    ```bibtex
    @inproceedings{heo2024rotary,
      title = {Rotary Position Embedding for Vision Transformer},
      author = {Heo, Byeongho and Park, Song and Han, Dongyoon and Yun, Sangdoo},
      booktitle = {European Conference on Computer Vision},
      year = {2024},
      eprint = {2403.13298},
    }
    ```
    """

    frequencies: Literal["axial", "mixed"] = "axial"
    base: float | None = None
    layout: Layout = "interleaved"

    family = "rotary"
    axes = 2
    samples = ({"frequencies": "mixed"}, {"base": 10.0, "layout": "half"})

    def validate(self):
        if self.base is not None:
            check_base("rope_2d", self.base)

    def bind(self, dims):
        _check(dims.head)
        base = {"axial": 100.0, "mixed": 10.0}[self.frequencies] if self.base is None else self.base
        return dataclasses.replace(self, base=base)

    def init_head(self, key, dims):
        if self.frequencies == "axial":
            return {}
        length = jnp.asarray(frequencies(dims.head // 2, bound_setting(self.base)), jnp.float32)
        first = jax.random.uniform(key, maxval=2 * jnp.pi)
        directions = [jnp.stack([jnp.cos(a), jnp.sin(a)]) for a in (first, first + jnp.pi / 2)]
        return {"frequency": jnp.concatenate([d[:, None] * length[None, :] for d in directions], -1)}

    def query(self, p, q, info):
        _check(q.shape[-1])
        exact, half = bias_dtype(q), q.shape[-1] // 2
        each = p["frequency"] if self.frequencies == "mixed" else (frequencies(half, bound_setting(self.base)),) * 2
        along = [angles(info[:, a], each[a], exact) for a in range(2)]
        angle = along[0] + along[1] if self.frequencies == "mixed" else jnp.concatenate(along, -1)
        return rotate(q, angle, self.layout), info

    def key(self, p, k, info):
        return self.query(p, k, info)


def _check(head: int) -> None:
    """Refuse a head whose pairs cannot be shared equally between two axes."""
    if head % 4:
        near = " or ".join(str(n) for n in (head // 4 * 4, head // 4 * 4 + 4) if n)
        raise ValueError(f"'rope_2d' turns as many pairs for x as for y, and a head has {head} features; take {near}.")
