"""Learned Fourier features: a position's sines and cosines at learned frequencies, through a perceptron."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype, bound_setting
from posenc.numerics.precision import product
from posenc.numerics.rotation import angles


class Fourier(Scheme, name="fourier"):
    """Sines and cosines at learned frequencies, through a perceptron, added to the input (Li et al., 2021, §3, alg. 1).

        x'_i = x_i + W_2 gelu(W_1 r_i + b_1) + b_2,   r_i = [cos(W_r p_i); sin(W_r p_i)] / √features

    Positions have `axes` numbers and may be real; W_r mixes the axes, so that r depends on distances in the plane and
    not on each axis alone. It starts as N(0, 1 / γ²), which makes r_i · r_j a bell-shaped function of the distance with
    width γ = `gamma`. The number of features is the model's width unless it is set. All parameters are learned and
    shared by all layers; W_1 and W_2 start as N(0, 1 / n) for n inputs, which the paper leaves open. The paper's groups
    of axes are not offered: there is one. gelu is exact, not the tanh approximation.

    Angles are plain float32 products, since learned frequencies have no more digits than float32.

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
    """Half of them cosines; the model's width rounded up to an even number, unless set."""
    hidden: int = 32
    gamma: float = 1.0

    family = "absolute"
    extrapolates = "some, by smoothness of its features (Li et al., 2021)"
    tied = frozenset({"frequency", "w1", "b1", "w2", "b2"})
    samples = ({"axes": 2, "features": 6, "hidden": 5}, {"features": 10, "gamma": 4.0})

    def validate(self):
        for name in ("axes", "hidden"):
            if getattr(self, name) < 1:
                raise ValueError(f"The setting {name!r} of 'fourier' is {getattr(self, name)}; it must be at least 1.")
        if self.features is not None and (self.features < 2 or self.features % 2):
            raise ValueError(
                f"'fourier' has features={self.features}; it must be even and at least 2, half cosines and half sines."
            )
        if not self.gamma > 0:
            raise ValueError(f"'fourier' has gamma={self.gamma}; it must be above 0.")

    def bind(self, dims):
        features = dims.width + dims.width % 2 if self.features is None else self.features
        return dataclasses.replace(self, features=features)

    def init(self, key, dims):
        draw = lambda k, n, *shape: n**-0.5 * jax.random.normal(k, shape)  # noqa: E731
        r, first, second = jax.random.split(key, 3)
        return {
            "frequency": draw(r, self.gamma**2, self.axes, bound_setting(self.features) // 2),
            "w1": draw(first, self.features, self.features, self.hidden),
            "b1": jnp.zeros(self.hidden),
            "w2": draw(second, self.hidden, self.hidden, dims.width),
            "b2": jnp.zeros(dims.width),
        }

    def embed(self, p, x, at):
        exact = bias_dtype(x)
        p = {name: jnp.asarray(a, exact) for name, a in p.items()}
        position = at.position if self.axes > 1 else at.position[:, None]
        angle = sum(angles(position[:, n], p["frequency"][n], exact) for n in range(self.axes))
        r = jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], -1) / bound_setting(self.features) ** 0.5
        inner = jax.nn.gelu(product(r, p["w1"]) + p["b1"][None, :], approximate=False)
        e = product(inner, p["w2"]) + p["b2"][None, :]
        return (x.astype(exact) + e).astype(x.dtype)
