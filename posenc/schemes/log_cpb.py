"""Continuous position bias: a small perceptron of the distance, on a logarithmic or a linear scale."""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.precision import product


class LogCPB(Scheme, name="log_cpb"):
    """A perceptron maps the logarithm of the distance to a bias for each head (Liu et al., 2022, Swin V2, §3.3).

        s_ij + 16 σ(f_h(t)),   t = sign(u) log₈(1 + 8 |u|),   u = (p_i - p_j) / reach,   each axis a feature of t

    The layer's heads share all but the last layer of f. Positions have `axes` numbers. `reach` is the longest distance
    along an axis in training, one number or one for each axis: the window minus one in the authors' code. Left open, it
    is that of the training length, or of a square grid with that many tokens.

    `spacing="linear"` gives u itself. Without `bounded` the bias is f, whose last layer then has a bias too. With
    `activation="silu"`, `depth` hidden layers and `reach=1` this is the dynamic position bias of x-transformers; its
    logarithm of 1 + the distance is `spacing="log"` with `reach=8`, up to the scale of the first layer. Weights start
    as in Swin's code. Swin's cosine attention and learned temperature are left to the model.

    The perceptron runs for one query at a time, and again for the gradient, so that memory holds `hidden` features for
    each key and not for each pair.

    ```bibtex
    @inproceedings{liu2022swin,
      title = {Swin Transformer {V2}: Scaling Up Capacity and Resolution},
      author = {Liu, Ze and Hu, Han and Lin, Yutong and Yao, Zhuliang and Xie, Zhenda and Wei, Yixuan and Ning, Jia and
                Cao, Yue and Zhang, Zheng and Dong, Li and Wei, Furu and Guo, Baining},
      booktitle = {Proceedings of the IEEE/CVF Conference on Computer Vision and Pattern Recognition},
      year = {2022},
      eprint = {2111.09883},
    }
    ```
    """

    axes: int = 1
    reach: float | tuple[float, ...] | None = None
    hidden: int = 512
    depth: int = 1
    """Hidden layers."""
    activation: Literal["relu", "silu"] = "relu"
    spacing: Literal["log", "linear"] = "log"
    bounded: bool = True
    """True if the bias lies between 0 and 16."""

    family = "kernel"
    extrapolates = "some, across window sizes (Liu et al., 2022)"
    reads = "distance"
    samples = (
        {"axes": 2, "reach": (3.0, 2.0), "hidden": 6},
        {"reach": 1.0, "hidden": 4, "depth": 2, "activation": "silu", "spacing": "linear", "bounded": False},
    )

    def validate(self):
        for name in ("axes", "hidden", "depth"):
            if getattr(self, name) < 1:
                raise ValueError(f"The setting {name!r} of 'log_cpb' is {getattr(self, name)}; it must be at least 1.")
        if self.depth > 64:
            raise ValueError(f"The setting 'depth' of 'log_cpb' is {self.depth}; it must be at most 64.")
        if isinstance(self.reach, tuple) and len(self.reach) != self.axes:
            raise ValueError(f"'log_cpb' has {self.axes} axes and {len(self.reach)} reaches; give one for each axis.")
        if self.reach is not None and not np.all(np.array(self.reach) > 0):
            raise ValueError(f"'log_cpb' has reach={self.reach}; it must be above 0.")

    def bind(self, dims):
        side = round(dims.trained ** (1 / self.axes))
        reach = float(max(side - 1, 1)) if self.reach is None else self.reach
        return dataclasses.replace(self, reach=reach)

    def init(self, key, dims):
        p = {}
        for n, k in enumerate(jax.random.split(key, self.depth), 1):
            p |= {
                f"w{n}": _small(k, self.axes if n == 1 else self.hidden, self.hidden),
                f"b{n}": jnp.zeros(self.hidden),
            }
        return p

    def init_head(self, key, dims):
        return {"w": _small(key, self.hidden)} | ({} if self.bounded else {"b": jnp.zeros(())})

    def score(self, p, s, tile):
        exact = bias_dtype(s)
        p = {name: a.astype(exact) for name, a in p.items()}
        distance = tile.distance if self.axes > 1 else tile.distance[:, :, None]
        f = jax.lax.map(jax.checkpoint(functools.partial(self._row, p)), distance.astype(exact))
        return s + (16 * jax.nn.sigmoid(f) if self.bounded else f + p["b"])

    def _row(self, p: dict, distance: Float[Array, "K axes"]) -> Float[Array, " K"]:
        """The perceptron's output for the distances of one query."""
        t = distance / np.broadcast_to(np.asarray(self.reach, distance.dtype), (1, self.axes))
        if self.spacing == "log":
            t = jnp.sign(t) * jnp.log1p(8 * jnp.abs(t)) / np.log(8).astype(t.dtype)
        for n in range(1, self.depth + 1):
            t = getattr(jax.nn, self.activation)(product(t, p[f"w{n}"]) + p[f"b{n}"][None, :])  # [K, hidden]
        return product(t, p["w"])


def _small(key: PRNGKeyArray, *shape: int) -> Float[Array, ...]:
    return 0.02 * jax.random.normal(key, shape)  # the authors truncate at 2, a hundred standard deviations
