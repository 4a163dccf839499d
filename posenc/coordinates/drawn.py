"""Positions that are drawn: sorted numbers, whole or real, distances in place of positions, shifts and skips."""

from __future__ import annotations

import dataclasses
from typing import Literal, cast

import jax
import jax.numpy as jnp
import numpy as np

from posenc.coordinates.base import Coordinates, sequences, uniforms
from posenc.core.distances import Distances
from posenc.language.registry import later

MOST = 2**24
"""The largest limit of sorted draws, which permute all numbers below it."""


class RandomSorted(Coordinates, name="random_sorted"):
    """`length` different numbers below `limit`, sorted (Ruoss et al., 2023, §3): order is kept, distances vary.

    Drawn in evaluation too, as in the authors' code. The draw uses the true length, so that padding changes nothing:
    sorting draws for the padded length and keeping the first would favour small numbers. The first `length` tokens get
    the numbers, so real tokens come first; padding, which stands after them, gets `limit` - 1.

    Over "distances", it is not positions that are drawn but how far tokens 1, 2, … places apart are from one another,
    different numbers from 1 to `limit` - 1, the same for keys after the query unless `both_sides` are drawn: what the
    authors do for ALiBi and relative encodings. Of the latter there are two versions. "as_described" is the paper's.
    "as_released" is that of their code for both directions, whose table of `limit` rows is read at key - query +
    `limit` and so, by JAX's clamping, at its last row for the token itself and for every later key: those share the
    distance 1 - `limit`, and a key d before the query has the distance d - `limit`. Published numbers come from that
    code, with a new draw for each layer where attention reads it (rope, alibi, relative), and one for the batch always:

        alibi(form='half') @ random_sorted(2048, 'layer', over='distances')
        transformer_xl(form='scored') @ random_sorted(2048, 'layer', over='distances', version='as_released')

    ```bibtex
    @inproceedings{ruoss2023randomized,
      title = {Randomized Positional Encodings Boost Length Generalization of Transformers},
      author = {Ruoss, Anian and Delétang, Grégoire and Genewein, Tim and Grau-Moya, Jordi and
                Csordás, Róbert and Bennani, Mehdi and Legg, Shane and Veness, Joel},
      booktitle = {Proceedings of the 61st Annual Meeting of the Association for Computational Linguistics},
      year = {2023},
      eprint = {2305.16843},
    }
    ```
    """

    limit: int = 2048
    resample: Literal["forward", "layer"] = "forward"
    each: Literal["batch", "example"] = "batch"
    over: Literal["positions", "distances"] = later("positions")
    both_sides: bool = later(False)
    version: Literal["as_described", "as_released"] = later("as_described")

    axes = 1

    def validate(self):
        if self.limit < 1:
            raise ValueError(f"random_sorted draws below limit, which is {self.limit}; it is at least 1.")
        if self.limit > MOST:
            raise ValueError(
                f"random_sorted permutes all numbers below limit, which is {self.limit}; give up to {MOST}."
            )
        if self.over == "positions" and (self.both_sides or self.version == "as_released"):
            setting = "both_sides=True" if self.both_sides else "version='as_released'"
            raise ValueError(f"{setting} is a setting of distances; write over='distances' beside it, or leave it out.")

    def __call__(self, key, inputs, train):
        index = inputs["index"]
        if index.shape[-1] > self.limit:
            raise ValueError(f"{index.shape[-1]} tokens need as many numbers, but limit is {self.limit}; raise it.")
        return sequences(
            self.each, self._positions if self.over == "positions" else self._distances, key, inputs, index
        )

    def largest(self, inputs, train):
        return np.full_like(inputs["index"], self.limit - 1) if self.over == "positions" else None

    def _positions(self, key, length, index):
        return _several(key, self.limit, length, index.shape[-1])

    def _distances(self, key, length, index):
        def side(key):
            return jnp.pad(1 + _several(key, self.limit - 1, length - 1, index.shape[-1] - 1), (1, 0))

        past = side(key)
        return self.versioned(Distances(past, -side(jax.random.fold_in(key, 1)) if self.both_sides else -past))

    def versioned(self, distances: Distances) -> Distances:
        """Return the distances that replace those drawn."""
        if self.version == "as_described":
            return distances
        return jax.tree.map(lambda d: jnp.maximum(d, 1) - self.limit, distances)


def _several(key, limit, count, size):
    """`count` different numbers below `limit`, sorted, in `size` places; the rest get the largest."""
    order = jax.random.permutation(key, limit)
    kept = jnp.zeros(limit, bool).at[order].set(jnp.arange(limit) < count)
    return jnp.nonzero(kept, size=size, fill_value=limit - 1)[0]


class RandomFloat(Coordinates, name="random_float"):
    """Real numbers below `limit`, sorted, in training; even ones in evaluation (RFS; Shimizu et al., 2026, §3).

        training:    p_1 < … < p_L, the sorted of L uniform numbers in [0, limit)
        evaluation:  p_i = limit · (2i - 1) / (2 max(L_trained, L)),  i = 1 … L

    Numbers are in one range whatever the length, so no length shows positions never seen. Written from a reader's
    account of the paper, whose text we have not seen; there `limit` is 1. `trained` is the training length, filled by
    `posenc.bind` unless given. Padding gets `limit` in training.

    ```bibtex
    @inproceedings{shimizu2026position,
      title = {Position Encoding with Random Float Sampling Enhances Length Generalization of Transformers},
      author = {Shimizu, Atsushi and Taniguchi, Shohei and Matsuo, Yutaka},
      booktitle = {Findings of the Association for Computational Linguistics: EACL},
      year = {2026},
      eprint = {2602.14050},
    }
    ```
    """

    limit: float = 1.0
    resample: Literal["forward", "layer"] = "forward"
    each: Literal["batch", "example"] = "batch"
    trained: int | None = None

    axes = 1

    def validate(self):
        if self.limit <= 0:
            raise ValueError(f"random_float draws below limit, which is {self.limit}; it is above 0.")
        if self.trained is not None and self.trained < 1:
            raise ValueError(f"trained is {self.trained}; it is the training length, at least 1.")

    def bind(self, dims):
        return self if self.trained else dataclasses.replace(self, trained=dims.trained)

    def __call__(self, key, inputs, train):
        if self.trained is None:
            raise ValueError("'random_float' leaves trained open; call posenc.bind(scheme, dims) first.")
        return sequences(self.each, self._sample if train else self._even, key, inputs, inputs["index"])

    def _sample(self, key, length, index):
        numbers = uniforms(key, index.shape[-1])
        return self.limit * jnp.sort(jnp.where(jnp.arange(index.shape[-1]) < length, numbers, 1.0))

    def _even(self, key, length, index):
        longest = jnp.maximum(cast(int, self.trained), length).astype(jnp.float32)
        return self.limit * (index.astype(jnp.float32) + 0.5) / longest


class Offset(Coordinates, name="offset"):
    """The index plus a random shift of at most `limit` (SHAPE; Kiyono et al., 2021, §3), drawn again each time.

    The authors evaluate at a shift of `limit` + 1, one more than the largest drawn; so do we, unless `evaluate` says 0.

    ```bibtex
    @inproceedings{kiyono2021shape,
      title = {{SHAPE}: Shifted Absolute Position Embedding for Transformers},
      author = {Kiyono, Shun and Kobayashi, Sosuke and Suzuki, Jun and Inui, Kentaro},
      booktitle = {Proceedings of the 2021 Conference on Empirical Methods in Natural Language Processing},
      year = {2021},
      eprint = {2109.05644},
    }
    ```
    """

    limit: int = 499
    each: Literal["batch", "example"] = "example"
    evaluate: Literal["largest", "zero"] = "largest"

    axes = 1

    def validate(self):
        if self.limit < 0:
            raise ValueError(f"offset shifts by at most limit, which is {self.limit}; it is at least 0.")

    def __call__(self, key, inputs, train):
        if not train:
            return inputs["index"] + (self.limit + 1 if self.evaluate == "largest" else 0)

        def draw(key, length, index):
            return index + jax.random.randint(key, (), 0, self.limit + 1).astype(index.dtype)

        return sequences(self.each, draw, key, inputs, inputs["index"])

    def largest(self, inputs, train):
        return inputs["index"] + self.limit if train else self(cast(jax.Array, None), inputs, train)  # draws nothing


class Skip(Coordinates, name="skip"):
    """Two pieces of the index with a random gap between them, in training only (PoSE; Zhu et al., 2024, §3.2).

        p_i = i for i < m, else i + u;   m ~ U{1 … ⌈L / 2⌉},  u ~ U{0 … target - L}

    So a short sequence shows every position below `target`. Two pieces, the first where it is and at most half of the
    sequence, as in the authors' code; that code also lets the second piece come from later in a longer text, which is
    the data's business. The index alone in evaluation.

    ```bibtex
    @inproceedings{zhu2024pose,
      title = {{PoSE}: Efficient Context Window Extension of {LLMs} via Positional Skip-wise Training},
      author = {Zhu, Dawei and Yang, Nan and Wang, Liang and Song, Yifan and Wu, Wenhao and Wei, Furu and Li, Sujian},
      booktitle = {International Conference on Learning Representations},
      year = {2024},
      eprint = {2309.10400},
    }
    ```
    """

    target: int = 2048
    each: Literal["batch", "example"] = "example"

    axes = 1

    def validate(self):
        if self.target < 1:
            raise ValueError(f"skip reaches a length of target, which is {self.target}; it is at least 1.")

    def __call__(self, key, inputs, train):
        if not train:
            return inputs["index"]
        if inputs["index"].shape[-1] > self.target:
            raise ValueError(
                f"{inputs['index'].shape[-1]} tokens are more than skip's target, {self.target}; raise it."
            )
        return sequences(self.each, self._sample, key, inputs, inputs["index"])

    def largest(self, inputs, train):
        return inputs["index"] + (self.target - np.asarray(inputs["length"])[..., None] if train else 0)

    def _sample(self, key, length, index):
        piece, gap = jax.random.split(key)
        first = jax.random.randint(piece, (), 1, jnp.maximum((length + 1) // 2, 1) + 1)
        skipped = jax.random.randint(gap, (), 0, self.target - length + 1)
        return index + jnp.where(index < first.astype(index.dtype), 0, skipped).astype(index.dtype)
