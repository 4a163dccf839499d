"""Sines and cosines of positions in the plane, added to the input: waves in all directions, or along each axis."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from posenc.core.scheme import Scheme, bias_dtype, later
from posenc.numerics.rotation import angles, check_base, frequencies


class Sinusoidal2D(Scheme, name="sinusoidal_2d"):
    """Plane waves, each with its own wavelength and direction, added to the input (Likhomanenko et al., 2021, §3).

        waves: x'_i = x_i + [cos φ_i ‖ sin φ_i],   φ_ic = π ρ_c (cos(c) u_i + sin(c) w_i),   ρ_c = 10^(c / (D/2 - 1))
        axes:  x'_i = x_i + [E(u_i) ‖ E(w_i)],   E of sin(u ω_k) and cos(u ω_k),   ω_k = base^(-2k / c),   c = D/2

    (u, w) is a token's position in the plane. For "waves" it runs from -1 to 1 across the image in the paper: `augment`
    with center "unit". The directions are c radians, c < D/2. It follows the third-party code that the tests compare
    with, where the model may multiply x by √D first. Positions are pairs of integers or real numbers.

    `form="axes"` is that of vision transformers: one half of the features for each axis (Dosovitskiy et al., 2021,
    §D.4). Three layouts are in use. "halves" has in each half all sines, then all cosines (diffusers, timm with
    `interleave_sin_cos`); "sines_first" has the sines of both axes, then the cosines of both (timm); "interleaved" has
    in each half sine and cosine in turn (positional-encodings). They differ by a permutation of features. With
    `order="swapped"` the half of w stands first, as in diffusers where positions are rows and columns. In "interleaved"
    c is 2 ⌈D/4⌉, and features beyond D are cut off; the others need a width that 4 divides.

    ```bibtex
    @inproceedings{likhomanenko2021cape,
      title = {{CAPE}: Encoding Relative Positions with Continuous Augmented Positional Embeddings},
      author = {Likhomanenko, Tatiana and Xu, Qiantong and Synnaeve, Gabriel and Collobert, Ronan and
                Rogozhnikov, Alex},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2021},
      eprint = {2106.03143},
    }
    @inproceedings{dosovitskiy2021image,
      title = {An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale},
      author = {Dosovitskiy, Alexey and Beyer, Lucas and Kolesnikov, Alexander and Weissenborn, Dirk and Zhai, Xiaohua
                and Unterthiner, Thomas and Dehghani, Mostafa and Minderer, Matthias and Heigold, Georg and
                Gelly, Sylvain and Uszkoreit, Jakob and Houlsby, Neil},
      booktitle = {International Conference on Learning Representations},
      year = {2021},
      eprint = {2010.11929},
    }
    ```
    """

    form: Literal["waves", "axes"] = later("waves")
    layout: Literal["halves", "sines_first", "interleaved"] = later("halves")
    order: Literal["straight", "swapped"] = later("straight")
    base: float = later(10000.0)

    family = "absolute"
    axes = 2
    samples = (
        {"form": "axes"},
        {"form": "axes", "layout": "sines_first", "order": "swapped", "base": 50.0},
        {"form": "axes", "layout": "interleaved"},
    )

    def validate(self):
        check_base("sinusoidal_2d", self.base)
        unused = [name for name, default in OF_AXES.items() if getattr(self, name) != default]
        if self.form == "waves" and unused:
            raise ValueError(
                f"'sinusoidal_2d' has {unused[0]}={getattr(self, unused[0])!r}, which waves in all directions do not"
                " use; set form='axes' beside it, or leave it out."
            )

    def bind(self, dims):
        self._check(dims.width)
        return self

    def embed(self, p, x, at):
        exact = bias_dtype(x)
        encode = self._waves if self.form == "waves" else self._axes
        return (x.astype(exact) + encode(at.position, x.shape[-1], exact)).astype(x.dtype)

    def _waves(self, position: Num[Array, "L 2"], width: int, exact: jnp.dtype) -> Float[Array, "L D"]:
        n = self._check(width)
        c = np.arange(n)
        length = np.pi * 10.0 ** (c / max(n - 1, 1))
        phase = angles(position[:, 0], length * np.cos(c), exact) + angles(position[:, 1], length * np.sin(c), exact)
        return jnp.concatenate([jnp.cos(phase), jnp.sin(phase)], -1)

    def _axes(self, position: Num[Array, "L 2"], width: int, exact: jnp.dtype) -> Float[Array, "L D"]:
        frequency = frequencies(2 * self._check(width), self.base)
        order = (0, 1) if self.order == "straight" else (1, 0)
        phase = jnp.stack([angles(position[:, a], frequency, exact) for a in order], 1)  # [L, axis, band]
        outer = {"halves": 2, "sines_first": 1, "interleaved": 3}[self.layout]
        waves = jnp.stack([jnp.sin(phase), jnp.cos(phase)], outer)
        return waves.reshape(waves.shape[0], -1)[:, :width]

    def _check(self, width: int) -> int:
        """How many waves there are, or bands of an axis; a `ValueError` where the width does not hold them."""
        if self.form == "axes" and self.layout == "interleaved":
            return -(-width // 4)
        parts, what = (2, "cosines and sines") if self.form == "waves" else (4, "sines and cosines of two axes")
        if width % parts:
            raise ValueError(
                f"'sinusoidal_2d' has as many features for {what}, so {parts} must divide the width, {width}; take"
                f" {' or '.join(str(n) for n in (width // parts * parts, width // parts * parts + parts) if n)}."
            )
        return width // parts


OF_AXES = {"layout": "halves", "order": "straight", "base": 10000.0}
"""The settings that the form "axes" alone uses, and their defaults."""
