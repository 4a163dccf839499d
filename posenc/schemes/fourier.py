"""Learned Fourier features: a position's sines and cosines at learned frequencies, through a perceptron."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.precision import product
from posenc.numerics.rotation import angles


class Fourier(Scheme, name="fourier"):
    """Sines and cosines at learned frequencies, through a perceptron, added to the input (Li et al., 2021, §3, alg. 1).

        x'_i = x_i + W_2 gelu(W_1 r_i + b_1) + b_2,   r_i = [cos(W_r p_i); sin(W_r p_i)] / √features

    Positions have `axes` numbers and may be real; W_r mixes the axes, so that distance and not each axis counts. It
    starts as N(0, 1 / γ²), and then r_i · r_j is a bell of the distance whose width is γ = `gamma`. The features are as
    many as the model's width unless given. All of it is learned, once for all layers; W_1 and W_2 start as N(0, 1 / n)
    of n inputs, on which the paper says nothing. Of its groups of axes there is one here. gelu is the exact one.

    Angles take the plain product, for nobody knows more digits of learned frequencies than float32 holds.

    ```bibtex
    @inproceedings{li2021learnable,
      title = {Learnable {Fourier} Features for Multi-Dimensional Spatial Positional Encoding},
      author = {Li, Yang and Si, Si and Li, Gang and Hsieh, Cho-Jui and Bengio, Samy},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2021},
      eprint = {2106.02795},
    }
    ```
    """

    axes: int = 1
    features: int | None = None
    """Half of them cosines; the model's width, to the next even number, unless given."""
    hidden: int = 32
    gamma: float = 1.0

    family = "absolute"
    extrapolates = "some, by smoothness of its features (Li et al., 2021)"
    tied = frozenset({"frequency", "w1", "b1", "w2", "b2"})
    samples = ({"axes": 2, "features": 6, "hidden": 5}, {"features": 10, "gamma": 4.0})

    def validate(self):
        for name in ("axes", "hidden"):
            if getattr(self, name) < 1:
                raise ValueError(f"The setting {name!r} of 'fourier' is {getattr(self, name)}; it is at least 1.")
        if self.features is not None and (self.features < 2 or self.features % 2):
            raise ValueError(f"'fourier' pairs cosines with sines, so its features are even, not {self.features}.")
        if not self.gamma > 0:
            raise ValueError(f"The gamma of 'fourier' is a width above 0, not {self.gamma}.")

    def bind(self, dims):
        features = dims.width + dims.width % 2 if self.features is None else self.features
        return dataclasses.replace(self, features=features)

    def init(self, key, dims):
        draw = lambda k, n, *shape: n**-0.5 * jax.random.normal(k, shape)  # noqa: E731
        r, one, two = jax.random.split(key, 3)
        return {
            "frequency": draw(r, self.gamma**2, self.axes, self.features // 2),
            "w1": draw(one, self.features, self.features, self.hidden),
            "b1": jnp.zeros(self.hidden),
            "w2": draw(two, self.hidden, self.hidden, dims.width),
            "b2": jnp.zeros(dims.width),
        }

    def embed(self, p, x, at):
        exact = bias_dtype(x)
        p = {name: jnp.asarray(a, exact) for name, a in p.items()}
        position = at.position if self.axes > 1 else at.position[:, None]
        angle = sum(angles(position[:, n], p["frequency"][n], exact) for n in range(self.axes))
        r = jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], -1) / self.features**0.5
        inner = jax.nn.gelu(product(r, p["w1"]) + p["b1"][None, :], approximate=False)
        e = product(inner, p["w2"]) + p["b2"][None, :]
        return (x.astype(exact) + e).astype(x.dtype)
