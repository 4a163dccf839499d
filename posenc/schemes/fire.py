"""FIRE: a learned function of the distance as a share of the query's position."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype, by_settings
from posenc.numerics.precision import product


class FIRE(Scheme, name="fire"):
    """A learned function of the distance to the key divided by the query's position (Li et al., 2024, §3).

        s_ij + f_h(ψ(|p_i - p_j|) / (ψ(max(p_i, |m L|)) + ε)),   ψ(x) = log(1 + |c x|)

    f is a perceptron with one hidden layer and an output per head; c and m are learned. Before the position |m L|
    distances are divided by that constant. The authors train on 2048 tokens and set L = 512; other codebases use half
    of the training length. Here it is the training length unless it is set, so that every quotient in a longer sequence
    occurs in training. With `bidirectional`, our own form, the divisor is the larger of both positions, max(p_i, p_j).

    ```bibtex
    @inproceedings{li2024functional,
      title = {Functional Interpolation for Relative Positions Improves Long Context Transformers},
      author = {Li, Shanda and You, Chong and Guruganesh, Guru and Ainslie, Joshua and Ontanon, Santiago and
                Zaheer, Manzil and Sanghai, Sumit and Yang, Yiming and Kumar, Sanjiv and Bhojanapalli, Srinadh},
      booktitle = {International Conference on Learning Representations},
      year = {2024},
      eprint = {2310.04418},
    }
    ```
    """

    hidden: int = 32
    threshold: float | None = None
    """L; the training length, unless set."""
    c: float = 0.1
    """The initial value of c."""
    eps: float = 1e-6
    bidirectional: bool | None = None
    """True if the divisor is the larger position of query and key; True for models that are not causal, unless set."""

    family = "kernel"
    extrapolates = "strongly (Li et al., 2024)"
    reads = "positions"
    limits = by_settings(
        lambda self: {"bidirectional": "its share is of the query's position"} if self.bidirectional is False else {}
    )
    samples = ({"threshold": 3.0, "bidirectional": False}, {"threshold": 3.0, "bidirectional": True, "hidden": 4})

    def validate(self):
        if self.hidden < 1:
            raise ValueError(f"'fire' has hidden={self.hidden}; it must be at least 1.")
        if not self.eps > 0:
            raise ValueError(f"'fire' has eps={self.eps}; it must be above 0, since the first token divides by it.")
        if self.threshold is not None and self.threshold < 0:
            raise ValueError(f"'fire' has threshold={self.threshold}; it must be a position of at least 0.")

    def bind(self, dims):
        threshold = float(dims.trained) if self.threshold is None else self.threshold
        bidirectional = not dims.causal if self.bidirectional is None else self.bidirectional
        return dataclasses.replace(self, threshold=threshold, bidirectional=bidirectional)

    def init(self, key, dims):
        inner = jax.random.uniform(key, (2, self.hidden), minval=-1, maxval=1)
        return {"c": jnp.full((), self.c, jnp.float32), "m": jnp.ones(()), "w1": inner[0], "b1": inner[1]}

    def init_head(self, key, dims):
        reach = self.hidden**-0.5
        outer = jax.random.uniform(key, (self.hidden + 1,), minval=-reach, maxval=reach)
        return {"w2": outer[:-1], "b2": outer[-1]}

    def score(self, p, s, tile):
        exact = bias_dtype(s)
        p = {name: a.astype(exact) for name, a in p.items()}
        far = tile.query_info.astype(exact)[:, None]
        if self.bidirectional:
            far = jnp.maximum(far, tile.key_info.astype(exact)[None, :])
        far = jnp.maximum(far, jnp.abs(p["m"] * self.threshold))
        psi = lambda x: jnp.log1p(jnp.abs(p["c"] * x))  # noqa: E731
        share = psi(tile.distance.astype(exact)) / (psi(far) + self.eps)
        inner = jax.nn.relu(
            share[:, :, None] * p["w1"][None, None, :] + p["b1"][None, None, :]
        )  # [Q, K, hidden], the same for all heads
        return s + product(inner, p["w2"]) + p["b2"]
