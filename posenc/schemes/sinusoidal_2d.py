"""Plane waves in all directions, added to the input."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.rotation import angles


class Sinusoidal2D(Scheme, name="sinusoidal_2d"):
    """Plane waves, each with its own wavelength and direction, added to the input (Likhomanenko et al., 2021, §3).

        x'_i = x_i + [cos φ_i ‖ sin φ_i],   φ_ic = π ρ_c (cos(c) u_i + sin(c) w_i),   ρ_c = 10^(c / (D/2 - 1)),  c < D/2

    (u, w) is a token's position in the plane, from -1 to 1 across the image in the paper: `augment` with center "unit".
    The directions are c radians. It follows the third-party code that the tests compare with, where the model may
    multiply x by √D first. Positions are pairs of integers or real numbers.

    ```bibtex
    @inproceedings{likhomanenko2021cape,
      title = {{CAPE}: Encoding Relative Positions with Continuous Augmented Positional Embeddings},
      author = {Likhomanenko, Tatiana and Xu, Qiantong and Synnaeve, Gabriel and Collobert, Ronan and
                Rogozhnikov, Alex},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2021},
      eprint = {2106.03143},
    }
    ```
    """

    family = "absolute"
    axes = 2

    def bind(self, dims):
        _pairs(dims.width)
        return self

    def embed(self, p, x, at):
        exact, n = bias_dtype(x), _pairs(x.shape[-1])
        c = np.arange(n)
        length = np.pi * 10.0 ** (c / max(n - 1, 1))
        phase = angles(at.position[:, 0], length * np.cos(c), exact) + angles(
            at.position[:, 1], length * np.sin(c), exact
        )
        return (x.astype(exact) + jnp.concatenate([jnp.cos(phase), jnp.sin(phase)], -1)).astype(x.dtype)


def _pairs(width: int) -> int:
    """Half the width; a `ValueError` where cosines and sines cannot share it."""
    if width % 2:
        raise ValueError(f"'sinusoidal_2d' pairs cosines and sines, so the width must be even, not {width}.")
    return width // 2
