"""Temperatures: queries multiplied by a number that grows with the number of keys, so that attention stays sharp."""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp

from posenc.core.scheme import Dims, Scheme, bias_dtype, bound_setting, later
from posenc.numerics.temperatures import log_of, multiplied, scalable


class LogN(Scheme, name="log_n"):
    """Queries multiplied by log n / log L beyond the training length L (Su, 2021; Chiang & Cholak, 2022, §5.3).

        q'_i = q_i · max(1, log(p_i + 1) / log L)
        q'_i = q_i · log(p_i + a) / log a                with an offset a

    The entropy of attention then stays about what it was in training. n is the position plus one, as in Su's code;
    without a causal mask that is not the number of keys, which `ssmax` uses. L is `trained`, filled with the training
    length. An `offset` above 1 gives the second form, which grows from 1 on, without a maximum, and in which a is L too
    (HyPE: Chen et al., 2026; 362 or 500 in MiniCPM-SALA, on layers without rotation).

    ```bibtex
    @inproceedings{chiang2022overcoming,
      title = {Overcoming a Theoretical Limitation of Self-Attention},
      author = {Chiang, David and Cholak, Peter},
      booktitle = {Proceedings of the 60th Annual Meeting of the Association for Computational Linguistics},
      year = {2022},
      eprint = {2202.12172},
    }
    @misc{chen2026hybrid,
      title = {Hybrid Linear Attention Done Right: Efficient Distillation and Effective Architectures for Extremely Long
               Contexts},
      author = {Chen, Yingfa and Thai, Zhen Leng and Zhou, Zihan and Zhang, Zhu and Shen, Xingyu and Wang, Shuo and
                Xiao, Chaojun and Han, Xu and Liu, Zhiyuan},
      year = {2026},
      eprint = {2601.22156},
    }
    ```
    """

    trained: int | None = None
    offset: float = later(1.0)

    family = "temperature"
    extrapolates = "some, beside others (Chiang & Cholak, 2022)"
    precedence = "temperature"
    samples = ({"trained": 4}, {"offset": 3.0})

    def validate(self):
        if self.trained is not None:
            log_of("log_n", self.trained)
        if self.offset < 1 or self.offset != int(self.offset):
            raise ValueError(
                f"The offset of 'log_n' is {self.offset}; it is a whole number of at least 1, such as 362."
            )
        if self.offset != 1 and self.trained not in (None, self.offset):
            raise ValueError(
                f"'log_n' with offset={self.offset} divides by the logarithm of that, not of trained={self.trained};"
                " leave trained out."
            )

    def bind(self, dims):
        trained = dims.trained if self.offset == 1 else int(self.offset)
        return dataclasses.replace(self, trained=trained if self.trained is None else self.trained)

    def query(self, p, q, info):
        place, exact = jnp.maximum(info, 0), bias_dtype(q)
        if self.offset != 1:
            log = jnp.log(place.astype(exact) + self.offset)
            return multiplied(q, log / math.log(self.offset)), info
        log = jnp.log1p(place.astype(exact))
        return multiplied(q, jnp.maximum(1, log / log_of("log_n", bound_setting(self.trained)))), info


class SSMax(Scheme, name="ssmax"):
    """Queries multiplied by s log n, with n visible keys and s learned for each head (Nakanishi, 2025, §2).

        q'_i = q_i · s_h log n_i

    The paper leaves the initial s open. Here it is 1 / log L for the training length L, so that a query with L visible
    keys starts with ordinary softmax. n counts the visible keys of each query, with any mask, window or packing.

    ```bibtex
    @misc{nakanishi2025scalable,
      title = {Scalable-Softmax Is Superior for Attention},
      author = {Nakanishi, Ken M.},
      year = {2025},
      eprint = {2501.19399},
    }
    ```
    """

    family = "temperature"
    extrapolates = "some (Nakanishi, 2025)"
    precedence = "temperature"

    def bind(self, dims):
        log_of("ssmax", dims.trained)
        return self

    def init_head(self, key, dims: Dims):
        return {"s": jnp.asarray(1 / log_of("ssmax", dims.trained), jnp.float32)}

    def locate(self, p, x, at, carry):
        return at.visible, carry

    def query(self, p, q, info):
        return multiplied(q, scalable(p["s"], info, bias_dtype(q))), info


class Llama4(Scheme, name="llama4"):
    """Queries multiplied by a logarithm of their position, in steps (Llama 4, 2025; `Llama4TextAttention`).

        q'_i = q_i · (1 + strength · log(1 + ⌊(p_i + offset) / floor⌋))

    The authors use it only on layers without rotation: `[rope, rope, rope, llama4]`. Mistral's models have it with
    `offset=0` on every layer, before YaRN, and `floor` is YaRN's original length (Ministral 3 and Mistral 4).

    ```bibtex
    @misc{meta2025llama4,
      title = {The Llama 4 herd: The beginning of a new era of natively multimodal AI innovation},
      author = {{Meta AI}},
      year = {2025},
      howpublished = {Technical report and released code},
    }
    ```
    """

    strength: float = 0.1
    floor: int = 8192
    offset: int = later(1)

    family = "temperature"
    extrapolates = "some, on layers without rotation (Llama 4, 2025)"
    precedence = "temperature"
    samples = ({"strength": 0.5, "floor": 3}, {"strength": 0.5, "floor": 3, "offset": 0})

    def validate(self):
        if self.floor < 1:
            raise ValueError(
                f"The setting 'floor' of 'llama4' is {self.floor}; it must be a whole number of at least 1."
            )
        if self.offset < 0:
            raise ValueError(f"The offset of 'llama4' is {self.offset}; it is a whole number of at least 0.")

    def query(self, p, q, info):
        steps = jnp.maximum((info + self.offset) // self.floor, 0).astype(bias_dtype(q))
        return multiplied(q, 1 + self.strength * jnp.log1p(steps)), info
