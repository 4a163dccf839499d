"""Complex order: each dimension of a word's embedding is a complex number, rotated by the word's position."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Num

from posenc.core.scheme import Scheme, bias_dtype, by_settings
from posenc.numerics.rotation import angles, check_base, frequencies, rotate
from posenc.numerics.token_numbers import check_rows, rows_at


class ComplexOrder(Scheme, name="complex_order"):
    """The embedding of a word as complex numbers that rotate with its position, at learned frequencies (Wang et al.,
    2020, §3).

        z'_jk = z_jk e^{i p ω_jk},   z_jk = r_jk e^{i φ_jk}

    The first half of the features are the real parts, the second the imaginary parts. Length r and initial angle φ are
    contained in the embedding, so neither is a parameter here. The authors' next layers are complex, or use both halves
    as features, as here.

    By default all words share one frequency for each complex dimension, starting at those of the sinusoid. With
    `words` above 0 each of that many words has its own, as in the paper; a position then has two numbers, the position
    itself and the index of the word. The table starts as the released one, word · base^(-2k / K) for K dimensions:
    frequencies grow with the index of the word, so the rotations of late words are nearly random. A word without a row
    is refused, and NaN inside jit. Pass both numbers as positions, in the laboratory with
    `complex_order(words=64) @ axes("index", "token")`; with the index only it would also be read as the word.

    ```bibtex
    @inproceedings{wang2020encoding,
      title = {Encoding Word Order in Complex Embeddings},
      author = {Wang, Benyou and Zhao, Donghao and Lioma, Christina and Li, Qiuchi and Zhang, Peng and
                Simonsen, Jakob Grue},
      booktitle = {International Conference on Learning Representations},
      year = {2020},
      eprint = {1912.12333},
    }
    ```
    """

    words: int = 0
    base: float = 10000.0

    family = "absolute"
    axes = by_settings(lambda self: 2 if self.words else 1)
    coordinate = by_settings(lambda self: "token" if self.words else "")
    tied = frozenset({"frequency"})
    samples = ({"words": 64}, {"base": 100.0})

    def validate(self):
        check_base("complex_order", self.base)
        if self.words < 0:
            raise ValueError(
                f"'complex_order' has words={self.words}; it must be a number of words, or 0 if they share frequencies."
            )

    def bind(self, dims):
        _check_width(dims.width)
        return self

    def init(self, key, dims):
        if not self.words:
            return {"frequency": jnp.asarray(frequencies(dims.width, self.base), jnp.float32)}
        each = jnp.asarray(frequencies(dims.width, self.base) ** 2, jnp.float32)
        return {"frequency": jnp.arange(self.words, dtype=jnp.float32)[:, None] * each[None, :]}

    def check_positions(self, p, position):
        if self.words:
            check_rows("complex_order", position[..., 1], self.words, "make it larger with complex_order(words=...)")

    def embed(self, p, x, at):
        _check_width(x.shape[-1])
        x = jnp.where((at.segment > 0)[:, None], x, 0)  # NaN in padding would reach the gradient of frequencies
        return rotate(x, self._angles(p["frequency"].astype(bias_dtype(x)), at.position), "half")

    def _angles(self, frequency: Array, position: Num[Array, "L ..."]) -> Array:
        if not self.words:
            return angles(position, frequency, frequency.dtype)
        return position[:, :1].astype(frequency.dtype) * rows_at(frequency, position[:, 1])


def _check_width(width: int) -> None:
    if width % 2:
        raise ValueError(
            f"'complex_order' uses half of the features as real parts, and the width {width} is odd; take {width + 1}."
        )
