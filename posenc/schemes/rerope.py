"""ReRoPE and SelfExtend: rotations by the exact distance of near keys and a coarser one of far keys."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from posenc.core.scheme import Scheme, Tile, bias_dtype, bound_setting, by_settings
from posenc.numerics.rotation import Layout, angles, check_base, check_pairs, frequencies, rotate


class ReRoPE(Scheme, name="rerope"):
    """RoPE whose distances stop growing at a window, or grow more slowly beyond (Su, 2023, "Rectified Rotary Position
    Embeddings").

        s_ij = q_i · R(-r(p_i - p_j) ω) k_j / √d,   r(Δ) = Δ where Δ < w,   w + (Δ - w) leak beyond

    With `leak` 0 every far key has the distance w; with a leak the part beyond the window is divided by 1 / leak, and 1
    is RoPE. `score` uses two rotations of each token, and a cache stores both, so stored keys are never rotated again.
    The window is an eighth of the training length unless it is set, the proportion of the released code (512 of 4096).
    That code also multiplies queries by a temperature, here `log_n + rerope`. It is causal; with `bidirectional`, our
    own form, keys after the query have r(-Δ) = -r(Δ), which needs a third rotation of the queries.

    ```bibtex
    @misc{su2023rerope,
      title = {Rectified Rotary Position Embeddings},
      author = {Su, Jianlin},
      year = {2023},
      howpublished = {https://github.com/bojone/rerope},
    }
    ```
    """

    window: int | None = None
    leak: float = 0.0
    base: float = 10000.0
    layout: Layout = "half"
    bidirectional: bool | None = None
    """True if distances to later keys are rectified too; True for models that are not causal, unless set."""

    family = "rotary"
    reads = "content"
    positional = True
    precedence = "last"  # others may not change q and k after the second rotation is computed from them
    products = True
    limits = by_settings(
        lambda self: {"bidirectional": "distances ahead are not rectified"} if self.bidirectional is False else {}
    )
    extrapolates = "without training, loss falls up to 4 times it (Su, 2023)"
    samples = (
        {"window": 3, "leak": 0.25, "bidirectional": True},
        {"window": 4, "layout": "interleaved", "base": 100.0, "bidirectional": False},
    )

    def validate(self):
        _check(self)
        if not 0 <= self.leak <= 1:
            raise ValueError(
                f"The leak of 'rerope' is {self.leak}; it must be a slope from 0, no leak, to 1, which is RoPE."
            )

    def bind(self, dims):
        check_pairs("rerope", dims.head)
        window = max(dims.trained // 8, 1) if self.window is None else self.window
        bidirectional = not dims.causal if self.bidirectional is None else self.bidirectional
        return dataclasses.replace(self, window=window, bidirectional=bidirectional)

    def query(self, p, q, info):
        return _queries(self, q, info, self._rough(q, info), bound_setting(self.window) * (1 - self.leak))

    def key(self, p, k, info):
        return _keys(self, k, info, self._rough(k, info))

    def score(self, p, s, tile):
        return _rectified(s, tile, bound_setting(self.window))

    def _rough(self, x, position):
        return angles(position, self.leak * frequencies(x.shape[-1], self.base), bias_dtype(x))


class SelfExtend(Scheme, name="self_extend"):
    """RoPE for near keys, and RoPE of grouped positions for far ones (Jin et al., 2024, §3).

        s_ij = q_i · R(-r_ij ω) k_j / √d,   r_ij = p_i - p_j where that is below w,
                                            ⌊p_i / G⌋ + w - w / G - ⌊p_j / G⌋ beyond

    The two agree at w. As in the released code w / G is a real number, not rounded. `score` uses two rotations of each
    token, and a cache stores both. The window is a quarter of the training length unless it is set, and G is 8, as in
    that code (1024 of 4096 tokens). That code can multiply queries by a temperature, here `log_n + self_extend`. It is
    causal; with `bidirectional`, our own form, r_ji = -r_ij, which needs a third rotation of the queries.

    ```bibtex
    @inproceedings{jin2024llm,
      title = {{LLM} Maybe {LongLM}: {SelfExtend} {LLM} Context Window Without Tuning},
      author = {Jin, Hongye and Han, Xiaotian and Yang, Jingfeng and Jiang, Zhimeng and Liu, Zirui and
                Chang, Chia-Yuan and Chen, Huiyuan and Hu, Xia},
      booktitle = {International Conference on Machine Learning},
      year = {2024},
      eprint = {2401.01325},
    }
    ```
    """

    group: int = 8
    window: int | None = None
    base: float = 10000.0
    layout: Layout = "half"
    bidirectional: bool | None = None
    """True if later keys are grouped too; True for models that are not causal, unless set."""

    family = "rotary"
    reads = "content"
    positional = True
    precedence = "last"  # as above
    products = True
    limits = by_settings(
        lambda self: {"bidirectional": "keys ahead are not in groups"} if self.bidirectional is False else {}
    )
    extrapolates = "extends a trained model without more training (Jin et al., 2024)"
    samples = (
        {"group": 2, "window": 3, "bidirectional": True},
        {"group": 3, "window": 4, "layout": "interleaved", "base": 100.0, "bidirectional": False},
    )

    def validate(self):
        _check(self)
        if self.group < 1:
            raise ValueError(f"'self_extend' has group={self.group}; it must be at least 1 position.")

    def bind(self, dims):
        check_pairs("self_extend", dims.head)
        window = max(dims.trained // 4, 1) if self.window is None else self.window
        bidirectional = not dims.causal if self.bidirectional is None else self.bidirectional
        return dataclasses.replace(self, window=window, bidirectional=bidirectional)

    def query(self, p, q, info):
        return _queries(
            self, q, info, self._rough(q, info), bound_setting(self.window) - bound_setting(self.window) / self.group
        )

    def key(self, p, k, info):
        return _keys(self, k, info, self._rough(k, info))

    def score(self, p, s, tile):
        return _rectified(s, tile, bound_setting(self.window))

    def _rough(self, x, position):
        return angles(position // self.group, frequencies(x.shape[-1], self.base), bias_dtype(x))


Rectified = ReRoPE | SelfExtend


def _check(scheme: Rectified) -> None:
    check_base(scheme.name, scheme.base)
    if scheme.window is not None and scheme.window < 1:
        raise ValueError(f"{scheme.name!r} has window={scheme.window}; it must be a distance of at least 1.")


def _queries(
    scheme: Rectified, q: Float[Array, "L d"], position: Num[Array, " L"], rough: Float[Array, "L n"], shift: float
) -> tuple[Float[Array, "L d"], tuple[Float[Array, "L d"], ...]]:
    """Queries rotated for near keys, and for far ones: earlier keys and, if bidirectional, later keys."""
    check_pairs(scheme.name, q.shape[-1])
    frequency = frequencies(q.shape[-1], scheme.base)
    jump = jnp.asarray(np.float64(shift) * frequency, rough.dtype)[None, :]
    far = (rough + jump, rough - jump) if scheme.bidirectional else (rough + jump,)
    near = angles(position, frequency, rough.dtype)
    return rotate(q, near, scheme.layout), tuple(rotate(q, a, scheme.layout) for a in far)


def _keys(
    scheme: Rectified, k: Float[Array, "L d"], position: Num[Array, " L"], rough: Float[Array, "L n"]
) -> tuple[Float[Array, "L d"], Float[Array, "L d"]]:
    """Keys rotated for near queries, and for far ones."""
    check_pairs(scheme.name, k.shape[-1])
    near = angles(position, frequencies(k.shape[-1], scheme.base), rough.dtype)
    return rotate(k, near, scheme.layout), rotate(k, rough, scheme.layout)


def _rectified(s: Float[Array, "Q K"], tile: Tile, window: int) -> Float[Array, "Q K"]:
    """The score with q·k of far pairs replaced; what other schemes added is kept."""
    exact = {"preferred_element_type": tile.logits.dtype, "precision": "highest"}
    products = [jnp.einsum("qd,kd->qk", q, tile.key_info, **exact) * tile.scale for q in tile.query_info]
    far, distance = products[0], tile.distance
    if len(products) > 1:
        far, distance = jnp.where(distance > 0, *products), jnp.abs(distance)
    return s + jnp.where(distance < window, 0, far - tile.logits)
