"""FIRE: a learned function of the distance as a share of the query's position."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.precision import product


class FIRE(Scheme, name="fire"):
    """A learned function of progress: how far back a key lies, as a share of how far the query has come (Li et al.,
    2024, §3).

        s_ij + f_h(ψ(|p_i - p_j|) / (ψ(max(p_i, |m L|)) + ε)),   ψ(x) = log(1 + |c x|)

    f is a perceptron of one hidden layer, its output per head; c and m are learned, and L is the position from which
    distances count as shares. The authors train on 2048 tokens and set L = 512; other codebases take half of the
    training length. Here it is the training length unless given, so that every share of a longer sequence was seen.
    With `bidirectional`, a form of ours, the share is of the farther of the two, max(p_i, p_j).

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
    """L; the longest sequence trained on, unless given."""
    c: float = 0.1
    """Where c starts."""
    eps: float = 1e-6
    bidirectional: bool | None = None
    """Whether the share is of the farther of query and key; as the model sees, unless given."""

    family = "kernel"
    extrapolates = "strongly (Li et al., 2024)"
    reads = "positions"
    limits = property(
        lambda self: {"bidirectional": "its share is of the query's position"} if self.bidirectional is False else {}
    )
    samples = ({"threshold": 3.0, "bidirectional": False}, {"threshold": 3.0, "bidirectional": True, "hidden": 4})

    def validate(self):
        if self.hidden < 1:
            raise ValueError(f"'fire' has at least 1 hidden unit, not {self.hidden}.")
        if not self.eps > 0:
            raise ValueError(f"'fire' divides by eps at the first token, so eps is above 0, not {self.eps}.")
        if self.threshold is not None and self.threshold < 0:
            raise ValueError(f"The threshold of 'fire' is a position of at least 0, not {self.threshold}.")

    def bind(self, dims):
        threshold = float(dims.trained) if self.threshold is None else self.threshold
        both = not dims.causal if self.bidirectional is None else self.bidirectional
        return dataclasses.replace(self, threshold=threshold, bidirectional=both)

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
