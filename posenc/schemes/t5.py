"""T5: a learned number for each bucket of distances."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.core.scheme import Scheme, bias_dtype, bound_setting, by_settings, check_whole, later
from posenc.numerics.bias import bucket, check_reach
from posenc.numerics.precision import product


class T5(Scheme, name="t5"):
    """A learned number per head for each bucket of distances, near ones exact, far ones by logarithm (Raffel et al.,
    2020, §2.1).

        s_ij = q_i · k_j + t_h[bucket(p_i - p_j)],   no division by √d

    All layers share one table. With `bidirectional` half of the buckets are for keys after the query; otherwise all are
    for the past, and keys after the query, which must then be masked, fall into bucket 0. The authors round a float32
    logarithm on the device; here buckets are integer thresholds computed on the host, equal to theirs at every
    distance. The initial table is N(0, 1 / width), as in the authors' later code.

    `gate="input"` multiplies the bias by a gate of the query's token, and divides by √d (WavLM; Chen et al., 2022,
    §3.1): head h reads its own d features y of the layer's input, which must be as wide as all heads.

        s_ij = q_i · k_j / √d + g_i t_h[bucket(p_i - p_j)],    g = a (c_h b - 1) + 2,    a, b = σ(Σ₄ (W y + u))

    W y + u has eight numbers, whose first four are summed for a and last four for b. All heads of a layer share W and
    u; c starts at 1. transformers' `wavlm` is `t5(buckets=320, reach=800, bidirectional=True, gate='input')`.

    ```bibtex
    @article{raffel2020exploring,
      title = {Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer},
      author = {Raffel, Colin and Shazeer, Noam and Roberts, Adam and Lee, Katherine and Narang, Sharan and
                Matena, Michael and Zhou, Yanqi and Li, Wei and Liu, Peter J.},
      journal = {Journal of Machine Learning Research},
      volume = {21},
      number = {140},
      year = {2020},
    }
    @article{chen2022wavlm,
      title = {{WavLM}: Large-Scale Self-Supervised Pre-Training for Full Stack Speech Processing},
      author = {Chen, Sanyuan and Wang, Chengyi and Chen, Zhengyang and Wu, Yu and Liu, Shujie and Chen, Zhuo and
                Li, Jinyu and Kanda, Naoyuki and Yoshioka, Takuya and Xiao, Xiong and others},
      journal = {IEEE Journal of Selected Topics in Signal Processing},
      volume = {16},
      number = {6},
      year = {2022},
      eprint = {2110.13900},
    }
    ```
    """

    buckets: int = 32
    reach: int = 128
    """The distance from which all keys share a bucket."""
    bidirectional: bool | None = None
    """True if keys after the query have their own buckets; True for models that are not causal, unless set."""
    gate: Literal["none", "input"] = later("none")

    family = "table"
    extrapolates = "some: 1.5 to 2 times the length on copy-like tasks (Kazemnejad et al., 2023)"
    reads = by_settings(lambda self: "content" if self.gate == "input" else "distance")
    contextual = by_settings(lambda self: self.gate == "input")
    tied = frozenset({"table"})
    limits = by_settings(
        lambda self: {
            "cross": "its distances are within one sequence",
            **({"bidirectional": "its buckets are for keys before the query"} if self.bidirectional is False else {}),
        }
    )
    samples = (
        {"bidirectional": True, "buckets": 8, "reach": 6},
        {"bidirectional": False, "buckets": 4, "reach": 5},
        {"gate": "input"},
    )

    def validate(self):
        side = ", half of them on each side" if self.bidirectional else ""
        least = 4 if self.bidirectional else 2
        if self.buckets < least or self.buckets % least:
            raise ValueError(f"'t5' has buckets={self.buckets}; it must be a multiple of {least}{side}.")
        exact = self.buckets // least
        check_reach("t5", self.reach)
        if self.reach <= exact:
            raise ValueError(
                f"'t5' has reach={self.reach}; it must be more than the {exact} distances with their own bucket."
            )

    def bind(self, dims):
        if self.gate == "input" and dims.width != dims.heads * dims.head:
            raise ValueError(
                f"'t5' with gate='input' reads for each head its own {dims.head} features of the input, and the width"
                f" of {dims.heads} heads is {dims.heads * dims.head}, that of the input {dims.width}; take no gate, or"
                " heads that are together as wide as the input, with none in another share."
            )
        bidirectional = self.bidirectional if self.bidirectional is not None else not dims.causal
        return dataclasses.replace(self, bidirectional=bidirectional)

    def check_positions(self, p, position):
        check_whole("t5", position)

    def init(self, key, dims):
        if self.gate == "none":
            return {}
        return {"gate": 0.02 * jax.random.normal(key, (dims.head, 8)), "gate_bias": jnp.zeros(8)}

    def init_head(self, key, dims):
        table = {"table": dims.width**-0.5 * jax.random.normal(key, (self.buckets,))}
        return table if self.gate == "none" else table | {"gate_scale": jnp.ones(())}

    def overrides(self, *hooks):
        """As of every scheme; without a gate nothing but distances is read, so that `locate` is none of its own."""
        return super().overrides(*(hook for hook in hooks if hook != "locate" or self.gate == "input"))

    def scale(self, d):
        return 1.0 if self.gate == "none" else d**-0.5

    def locate(self, p, x: Float[Array, "L D"], at, carry):
        if self.gate == "none":
            return at.position, carry
        d = p["gate"].shape[0]
        own = jax.lax.dynamic_slice_in_dim(x, at.head * d, d, 1)
        made = product(own, p["gate"]) + p["gate_bias"].astype(bias_dtype(x))[None]
        a, b = jax.nn.sigmoid(made.reshape(-1, 2, 4).sum(-1)).T
        return a * (p["gate_scale"].astype(a.dtype)[None] * b - 1) + 2, carry

    def score(self, p, s, tile):
        row = bucket(tile.distance, self.buckets, self.reach, bound_setting(self.bidirectional))
        bias = p["table"].astype(bias_dtype(s))[row]
        return s + (bias if self.gate == "none" else tile.query_info.astype(bias.dtype)[:, None] * bias)
