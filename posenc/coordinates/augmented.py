"""CAPE: positions shifted and scaled at random, all of a sequence together and each a little on its own."""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.coordinates.base import Coordinates, offered, sequences, uniforms


class Augment(Coordinates, name="augment"):
    """The index under a random shift, another for each token, and a random scale (Likhomanenko et al., 2021, §3).

        p'_i = (p_i + Δ + ε_i) e^λ,   Δ ~ U(±shift),  ε_i ~ U(±local · delta),  λ ~ U(±log factor)

    In training only, and each example draws its own, as published. p_i is the index times `delta`, which is what two
    neighbours are apart; `center` "mean" first takes off the mean of the real tokens, in evaluation too, and "unit"
    spreads each axis from -1 to 1, as the authors do for images. `which` names what the task offers in place of the
    index, an axis for each: `sinusoidal_2d @ augment(0.5, 0.5, 1.4, 'unit', which=('row', 'col'))`; shifts are then
    drawn for each axis alone, the scale for all. In the order of the third-party code that the tests compare with.

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

    shift: float = 5.0
    local: float = 0.5
    factor: float = 1.03
    center: Literal["none", "mean", "unit"] = "none"
    delta: float = 1.0
    which: tuple[str, ...] = ()
    each: Literal["batch", "example"] = "example"

    axes = cast(Any, property(lambda self: len(self.which) or 1))

    def validate(self):
        for name, least in (("shift", 0.0), ("local", 0.0), ("factor", 1.0)):
            if getattr(self, name) < least:
                raise ValueError(f"The {name} of augment is {getattr(self, name)}; it is at least {least:g}.")
        if self.delta <= 0:
            raise ValueError(f"delta is what neighbours are apart, and is {self.delta}; it is above 0.")

    def __call__(self, key, inputs, train):
        numbers = [offered(inputs, name) for name in self.which] or [inputs["index"]]
        return sequences(self.each, lambda *args: self._place_sequence(train, *args), key, inputs, *numbers)

    def _place_sequence(self, train: bool, key, length, *axes: Array) -> Float[Array, "L ..."]:
        p = self.delta * jnp.stack(axes, -1).astype(jnp.float32)
        p, apart = self.centered(p, (jnp.arange(p.shape[0]) < length)[:, None])
        if train:
            p = self.moved(p, apart, *self.draw(key, *p.shape))
        return p if len(self.which) > 1 else p[:, 0]

    def centered(self, p: Float[Array, "L n"], real: Array) -> tuple[Float[Array, "L n"], Float[Array, "1 n"]]:
        """Positions before any draw, and how far neighbours are apart on each axis."""
        apart = jnp.full((1, p.shape[1]), self.delta, p.dtype)
        if self.center == "mean":
            p = p - jnp.where(real, p, 0).sum(0, keepdims=True) / jnp.maximum(real.sum(), 1).astype(p.dtype)
        if self.center == "unit":
            last = jnp.where(real, p, 0).max(0, keepdims=True)
            last = jnp.where(last > 0, last, 1)
            p, apart = 2 * p / last - 1, 2 * apart / last
        return p, apart

    def draw(self, key, tokens: int, axes: int) -> tuple[Float[Array, "1 n"], Float[Array, "L n"], Float[Array, ""]]:
        """The shift of all, that of each token as a share of what neighbours are apart, and the scale's logarithm."""
        all_, own_key, scale = jax.random.split(key, 3)
        shift = jax.random.uniform(all_, (1, axes), jnp.float32, -self.shift, self.shift)
        own = self.local * (2 * uniforms(own_key, tokens, (axes,)) - 1)
        bound = math.log(self.factor)
        return shift, own, jax.random.uniform(scale, (), jnp.float32, -bound, bound)

    def moved(self, p, apart, shift, own, scale) -> Float[Array, "L n"]:
        """Positions under these draws."""
        return (p + shift + own * apart) * jnp.exp(scale)
