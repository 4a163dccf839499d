"""Which position a token gets: its index, sorted random numbers, a shifted or scaled index, or what the task gives.

A second small registry of frozen dataclasses. Each is a function `(key, given, train) -> positions`, where `given`
holds `index` (`[L]` or `[batch, L]`), the true `length` (traced; `[]` or `[batch]`) and whatever the task offers.
Real tokens come first and padding after them. Kinds that draw do so in evaluation too unless their paper does not;
padding never changes a token's position.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Num, PRNGKeyArray

from posenc.compose import Chain, Pattern, Placed, Windowed
from posenc.registry import Registry, convert
from posenc.scheme import Scheme

COORDINATES = Registry("kind of coordinates", "posenc.coordinates")
Given = Mapping[str, Any]


@dataclass_transform(frozen_default=True)
class Coordinates:
    """How positions are made. Subclasses are final frozen dataclasses, named by the class statement."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field]]
    name: ClassVar[str]
    revision: ClassVar[int] = 1
    resample: ClassVar[str] = "forward"
    """Whether all layers of a forward pass share one draw ("forward") or each has its own ("layer")."""

    def __init_subclass__(cls, name: str):
        if cls.__mro__[1] is not Coordinates:
            raise TypeError(f"{cls.__name__} extends {cls.__mro__[1].__name__}, but coordinates are final.")
        dataclasses.dataclass(frozen=True)(cls)
        jax.tree_util.register_static(cls)
        cls.name = name
        COORDINATES.add(name, cls)

    def __post_init__(self):
        convert(self)
        self.validate()

    def validate(self) -> None:
        """Refuse settings that have no meaning, in one `ValueError` sentence."""

    def __call__(self, key: PRNGKeyArray, given: Given, train: bool) -> Num[Array, "*batch L"]:
        """The position of each token, or a `ValueError` where `given` does not serve."""
        raise TypeError(f"{type(self).__name__} does not say which positions it gives.")


class Index(Coordinates, name="index"):
    """The token's place in the sequence."""

    def __call__(self, key, given, train):
        return given["index"]


class RandomSorted(Coordinates, name="random_sorted"):
    """`length` different numbers below `limit`, sorted (Ruoss et al., 2023, §3): order is kept, distances vary.

    Drawn in evaluation too, as in the authors' code. The draw uses the true length, so that padding changes nothing:
    sorting draws for the padded length and keeping the first would favour small numbers. The first `length` tokens get
    the numbers, so real tokens come first; padding, which stands after them, gets `limit` - 1.

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

    def validate(self):
        if self.limit < 1:
            raise ValueError(f"random_sorted draws below limit, which is {self.limit}; it is at least 1.")

    def __call__(self, key, given, train):
        check_given(given)
        index, length = given["index"], jnp.asarray(given["length"])
        if index.shape[-1] > self.limit:
            raise ValueError(f"{index.shape[-1]} tokens need as many numbers, but limit is {self.limit}; raise it.")
        return _each(self, lambda key, index, length: self._draw(key, index.shape[-1], length), key, index, length)

    def _draw(self, key, size, length):
        order = jax.random.permutation(key, self.limit)
        kept = jnp.zeros(self.limit, bool).at[order].set(jnp.arange(self.limit) < length)
        return jnp.nonzero(kept, size=size, fill_value=self.limit - 1)[0]


class Offset(Coordinates, name="offset"):
    """The index plus a random shift of at most `limit` (SHAPE; Kiyono et al., 2021, §3), drawn anew each time.

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

    def validate(self):
        if self.limit < 0:
            raise ValueError(f"offset shifts by at most limit, which is {self.limit}; it is at least 0.")

    def __call__(self, key, given, train):
        if not train:
            return given["index"] + (self.limit + 1 if self.evaluate == "largest" else 0)
        draw = lambda key, index, length: index + jax.random.randint(key, (), 0, self.limit + 1)  # noqa: E731
        return _each(self, draw, key, given["index"], jnp.asarray(given["length"]))


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

    def validate(self):
        if self.factor <= 0:
            raise ValueError(f"scale divides positions by factor, which is {self.factor}; it is above 0.")

    def __call__(self, key, given, train):
        return given["index"] / jnp.asarray(self.factor, jnp.promote_types(given["index"].dtype, jnp.float32))


class Told(Coordinates, name="given"):
    """What the task offers under a name, such as "coupled" or "digit"."""

    which: str = "coupled"

    def __call__(self, key, given, train):
        if self.which not in given:
            offered = ", ".join(repr(n) for n in given if n not in ("index", "length")) or "none"
            raise ValueError(f"The task offers no coordinates called {self.which!r}; it offers {offered}.")
        return given[self.which]


def place(scheme: Any, key: PRNGKeyArray, given: Given, *, layer: int | Array = 0, train: bool = False) -> Any:
    """The positions of every part of a scheme, as `attend(positions=...)` takes them.

    `given` has `index`, `[L]` or `[batch, L]`, and the true `length`, `[]` or `[batch]`, beside what the task offers.
    Real tokens come first, padding after them. Returns an array like `index`, and for a sum a tuple of one for each
    part. Each part draws with a key of its own, folded by its place in the sum and, where it draws anew in each layer,
    by the layer. A part without coordinates gets the index. Raises `ValueError` where `given` does not serve, and
    `TypeError` for a list of schemes or what is no scheme.
    """
    if not isinstance(scheme, Pattern):
        check_given(given)
    if isinstance(scheme, Windowed):
        return place(scheme.scheme, key, given, layer=layer, train=train)
    if isinstance(scheme, Chain):
        keys = [jax.random.fold_in(key, n) for n in range(len(scheme.parts))]
        return tuple(place(s, k, given, layer=layer, train=train) for s, k in zip(scheme.parts, keys, strict=True))
    if isinstance(scheme, Placed):
        c = scheme.coordinates
        return c(jax.random.fold_in(key, layer) if c.resample == "layer" else key, given, train)
    if isinstance(scheme, Scheme):
        return given["index"]
    if isinstance(scheme, Pattern):
        raise TypeError("A list of schemes is a pattern of layers; place one layer's scheme at a time.")
    raise TypeError(f"A scheme was expected, such as posenc.parse('rope'), not {scheme!r}.")


def check_given(given: Given) -> None:
    """Refuse what lacks the index or the length, and a length, where it is concrete, of other than these tokens."""
    if not isinstance(given, Mapping):
        raise TypeError(f"given is of type {type(given).__name__}; it is a dict that holds 'index' and 'length'.")
    if missing := [name for name in ("index", "length") if name not in given]:
        raise ValueError(f"given lacks {' and '.join(map(repr, missing))}; it holds 'index' and the true 'length'.")
    size, length = jnp.shape(given["index"])[-1], given["length"]
    if isinstance(length, jax.core.Tracer):
        return
    wrong = [n for n in np.ravel(np.asarray(length)) if not 0 <= n <= size]
    if wrong:
        raise ValueError(f"A length of {wrong[0]} was given with {size} tokens; it counts the real ones among them.")


def _each(coordinates: Any, draw: Any, key: PRNGKeyArray, index: Array, length: Array) -> Array:
    """One draw for the whole batch, or one for each example."""
    if index.ndim == 1 and length.ndim == 0:
        return draw(key, index, length)
    rows = max(a.shape[0] for a, n in ((index, 2), (length, 1)) if a.ndim == n)
    every = jnp.broadcast_to(index, (rows, index.shape[-1])), jnp.broadcast_to(length, (rows,))
    if coordinates.each == "batch":
        return jax.vmap(draw, (None, 0, 0))(key, *every)
    return jax.vmap(draw)(jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(rows)), *every)
