"""Positions by a fixed rule: the index, scaled or in groups, what the task gives, and counts within and of segments."""

from __future__ import annotations

from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np

from posenc.coordinates.base import Coordinates, offered, sequences
from posenc.language.registry import later
from posenc.numerics.precision import widened


class Index(Coordinates, name="index"):
    """The token's place in the sequence."""

    axes = 1

    def __call__(self, key, inputs, train):
        return inputs["index"]


class Scale(Coordinates, name="scale"):
    """The index divided by `factor` (position interpolation; Chen et al., 2023, eq. 4).

    ```bibtex
    @misc{chen2023extending,
      title = {Extending Context Window of Large Language Models via Positional Interpolation},
      author = {Chen, Shouyuan and Wong, Sherman and Chen, Liangjian and Tian, Yuandong},
      year = {2023},
      eprint = {2306.15595},
    }
    ```
    """

    factor: float = 2.0

    axes = 1

    def validate(self):
        if self.factor <= 0:
            raise ValueError(f"scale divides positions by factor, which is {self.factor}; it is above 0.")

    def __call__(self, key, inputs, train):
        index = jnp.asarray(inputs["index"], widened(inputs["index"].dtype))
        return index / jnp.asarray(self.factor, index.dtype)


class Group(Coordinates, name="group"):
    """The index divided by `size` and rounded down, so that neighbours share a position (Jin et al., 2024, §3).

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

    size: int = 8

    axes = 1

    def validate(self):
        if self.size < 1:
            raise ValueError(f"group takes size tokens together, which is {self.size}; it is at least 1.")

    def __call__(self, key, inputs, train):
        return inputs["index"] // self.size


class Lines(Coordinates, name="grid"):
    """The row and the column of a token where the text is written in lines of `width` tokens (2D-RoPE; "Frontier
    Language Models Struggle to Copy: Text Can Be Better Viewed in 2D", 2026).

        row_i = ⌊i / width⌋,   column_i = i mod width

    A token that repeats the one `width` before it stands in the same column, one row below, wherever it is. So a copy
    of a text of m · `width` tokens reads its own column m rows above: `rope_2d @ grid(8)`. Written from the paper's
    description; no authors' code was found.

    ```bibtex
    @misc{frontier2026copy,
      title = {Frontier Language Models Struggle to Copy: Text Can Be Better Viewed in {2D}},
      year = {2026},
      eprint = {2607.16072},
    }
    ```
    """

    width: int = 8

    axes = 2

    def validate(self):
        if self.width < 1:
            raise ValueError(f"grid has lines of width tokens, which is {self.width}; it is at least 1.")

    def __call__(self, key, inputs, train):
        index = jnp.asarray(inputs["index"])
        return jnp.stack([index // self.width, index % self.width], -1)


class Told(Coordinates, name="given"):  # names of classes are part of the ids of recorded trials
    """What the task offers under a name, such as "coupled" or "digit", 0 where a token has none.

    `shift` adds one random number of at most that many to all that are not 0, in training only: for Abacus 99, one for
    the whole batch (McLeish et al., 2024, §3); in position coupling it is each example's own (Cho et al., 2024, §4).
    `learned @ given("coupled")` is position coupling: tokens that the task couples read one row of a learned table.

    ```bibtex
    @inproceedings{mcleish2024transformers,
      title = {Transformers Can Do Arithmetic with the Right Embeddings},
      author = {McLeish, Sean and Bansal, Arpit and Stein, Alex and Jain, Neel and Kirchenbauer, John and
                Bartoldson, Brian R. and Kailkhura, Bhavya and Bhatele, Abhinav and Geiping, Jonas and
                Schwarzschild, Avi and Goldstein, Tom},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2024},
      eprint = {2405.17399},
    }
    @inproceedings{cho2024position,
      title = {Position Coupling: Improving Length Generalization of Arithmetic Transformers Using Task Structure},
      author = {Cho, Hanseul and Cha, Jaeyoung and Awasthi, Pranjal and Bhojanapalli, Srinadh and Gupta, Anupam and
                Yun, Chulhee},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2024},
      eprint = {2405.20671},
    }
    ```
    """

    which: str = "coupled"
    shift: int = later(0)
    each: Literal["batch", "example"] = later("batch")

    axes = 1

    def validate(self):
        _check_shift("given", self.shift)

    def __call__(self, key, inputs, train):
        numbers = offered(inputs, self.which, self.shift > 0)
        return _shifted(self, key, inputs, numbers) if train and self.shift else numbers

    def largest(self, inputs, train):
        return _farthest(self, offered(inputs, self.which), train)


class Axes(Coordinates, name="axes"):
    """Positions of several axes, stacked from what the task offers: `axes("row", "col")`.

    `shift` is that of `given`, drawn for each axis alone, as the two axes of position coupling are (Cho et al., 2024).
    """

    first: str = "row"
    second: str = "col"
    third: str | None = None
    shift: int = 0
    each: Literal["batch", "example"] = "batch"
    fourth: str | None = later(None)

    axes = cast(Any, property(lambda self: len(self._names)))

    def validate(self):
        _check_shift("axes", self.shift)

    def __call__(self, key, inputs, train):
        numbers = self._offered(inputs)
        if train and self.shift:
            numbers = [_shifted(self, jax.random.fold_in(key, n), inputs, a) for n, a in enumerate(numbers)]
        return jnp.stack(jnp.broadcast_arrays(*numbers), -1)

    def largest(self, inputs, train):
        numbers = np.broadcast_arrays(*(_farthest(self, a, train) for a in self._offered(inputs)))
        return cast(jax.Array, np.stack(numbers, -1))

    def _offered(self, inputs):
        return [offered(inputs, name, self.shift > 0) for name in self._names]

    @property
    def _names(self):
        return [name for name in (self.first, self.second, self.third, self.fourth) if name is not None]


class Segments(Coordinates, name="segments"):
    """Bilevel positions: a token's place "inside" its segment, or "which" segment it is in (He et al., 2024, §3).

    The task offers "separator", 1 at tokens that end a segment and belong to it. BiPE adds a learned or sinusoidal
    embedding of the first to a relative scheme of the second:

        learned @ segments("inside") + rope @ segments("which")
        learned @ segments("inside") + alibi(factor=96.0) @ segments("which")

    With `cap`, places are clamped below it: farther tokens share the last, as the authors' code does beyond the length
    trained on. It is the one clamp of positions, as released and asked for; elsewhere what is out of range is refused.

    ```bibtex
    @inproceedings{he2024two,
      title = {Two Stones Hit One Bird: Bilevel Positional Encoding for Better Length Extrapolation},
      author = {He, Zhenyu and Feng, Guhao and Luo, Shengjie and Yang, Kai and Wang, Liwei and Xu, Jingjing and
                Zhang, Zhi and Yang, Hongxia and He, Di},
      booktitle = {International Conference on Machine Learning},
      year = {2024},
      eprint = {2401.16421},
    }
    ```
    """

    part: Literal["inside", "which"] = "inside"
    cap: int | None = None

    axes = 1

    def validate(self):
        if self.cap is not None and self.cap < 1:
            raise ValueError(f"segments keeps places below cap, which is {self.cap}; it is at least 1.")
        if self.cap is not None and self.part == "which":
            raise ValueError("cap is of places inside segments, and part is 'which'; leave cap out.")

    def __call__(self, key, inputs, train):
        ends = jnp.asarray(offered(inputs, "separator", integer=True), jnp.int32)
        before = jnp.cumsum(ends, -1, dtype=jnp.int32) - ends
        if self.part == "which":
            return before
        index = jnp.broadcast_to(jnp.asarray(inputs["index"], jnp.int32), ends.shape)
        after = jnp.pad(ends[..., :-1], [(0, 0)] * (ends.ndim - 1) + [(1, 0)]) > 0
        start = jnp.where(after, index, index[..., :1])
        inside = index - jax.lax.cummax(start, ends.ndim - 1)
        return inside if self.cap is None else jnp.minimum(inside, self.cap - 1)

    def largest(self, inputs, train):
        return self(cast(jax.Array, None), inputs, train)  # draws nothing


def _check_shift(name: str, shift: int) -> None:
    if shift < 0:
        raise ValueError(f"{name} shifts by at most shift, which is {shift}; it is at least 0.")


def _shifted(coordinates, key, inputs, numbers):
    """All that is not 0, moved on by one draw."""
    draw = lambda key, length, numbers: jnp.where(  # noqa: E731
        numbers > 0, numbers + jax.random.randint(key, (), 0, coordinates.shift + 1, numbers.dtype), numbers
    )
    return sequences(coordinates.each, draw, key, inputs, numbers)


def _farthest(coordinates, numbers, train):
    """Return the largest draw."""
    return np.where(numbers > 0, numbers + train * coordinates.shift, numbers)
