"""Coordinates: frozen dataclasses with a name, with the checks and the draws per sequence that they share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Num, PRNGKeyArray, PyTree

from posenc.core.scheme import Dims, Scheme
from posenc.language.registry import Registry, convert
from posenc.numerics.sizes import FAR
from posenc.numerics.token_numbers import concrete, exact

COORDINATES = Registry("kind of coordinates", "posenc.coordinates")
Given = Mapping[str, Any]


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class Coordinates:
    """How positions are made. Subclasses are final frozen dataclasses, named by the class statement."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field]]
    name: ClassVar[str]
    revision: ClassVar[int] = 1
    resample: ClassVar[str] = "forward"
    """Sharing of draws: all layers of a forward pass share one ("forward") or each has its own ("layer")."""
    axes: ClassVar[int | None] = None
    """How many numbers it gives each token, where that is known without tokens."""

    def __init_subclass__(cls, name: str):
        if cls.__mro__[1] is not Coordinates:
            raise TypeError(f"{cls.__name__} extends {cls.__mro__[1].__name__}, but coordinates are final.")
        dataclasses.dataclass(frozen=True)(cls)
        jax.tree_util.register_static(cls)
        cls.name = name
        COORDINATES.add(name, cls)

    def __post_init__(self):
        convert(self, below=FAR)
        self.validate()

    def validate(self) -> None:
        """Refuse settings that have no meaning, in one `ValueError` sentence."""

    def bind(self, dims: Dims) -> Coordinates:
        """Return the coordinates with their open settings filled from a model's sizes."""
        return self

    def check_axes(self, schemes: Sequence[Scheme]) -> None:
        """Refuse a scheme whose positions have another number of axes than these coordinates."""
        if odd := [s for s in schemes if self.axes not in (None, s.axes)]:
            name = getattr(odd[0], "name", type(odd[0]).__name__)
            example = {1: "index", 2: "axes('row', 'col')"}.get(odd[0].axes, "axes('time', 'row', 'col')")
            raise ValueError(
                f"The coordinates {self.name!r} are {_plural(self.axes)} for each token, and {name!r} takes"
                f" {odd[0].axes}; give it as many, such as @ {example}."
            )

    def __call__(self, key: PRNGKeyArray, inputs: Given, train: bool) -> PyTree[Num[Array, "*batch L"]]:
        """The position of each token, or a `ValueError` where `inputs` do not serve; `posenc.place` checked its index
        and length."""
        raise TypeError(f"{type(self).__name__} does not say which positions it gives.")

    def largest(self, inputs: Given, train: bool) -> Num[Array, "*batch L"] | None:
        """The largest position that a draw can give each token, for a scheme to refuse before anything is drawn.

        None where it is not known, or where nothing is drawn. `inputs` are concrete.
        """
        return None


def checked(given: Given) -> dict[str, Any]:
    """Return what a task gives, its numbers in types that hold sums of them. It refuses inputs without the index or the
    length, and lengths that are not whole or not of these tokens."""
    if not isinstance(given, Mapping):
        raise TypeError(f"given is of type {type(given).__name__}; it is a dict that holds 'index' and 'length'.")
    if missing := [name for name in ("index", "length") if name not in given]:
        raise ValueError(f"given lacks {' and '.join(map(repr, missing))}; it holds 'index' and the true 'length'.")
    index, length = (_array(given[name]) for name in ("index", "length"))
    if index.ndim not in (1, 2) or length.ndim > 1 or index.ndim + length.ndim == 3 and len(index) != len(length):
        raise ValueError(
            f"An index of the shape {index.shape} was given with a length of the shape {length.shape}; they are [L] or"
            " [batch, L], and [] or [batch]."
        )
    if not jnp.issubdtype(length.dtype, jnp.integer):
        raise TypeError(f"The length is {length.dtype}; it counts tokens, so it is a whole number.")
    values = concrete(length)
    wrong = [] if values is None else [n for n in np.ravel(values) if not 0 <= n <= index.shape[-1]]
    if wrong:
        raise ValueError(
            f"A length of {wrong[0]} was given with {index.shape[-1]} tokens; it counts the real ones among them."
        )
    return {name: _wide(name, a) for name, a in given.items()}


def offered(inputs: Given, name: str, integer: bool = False) -> Array:
    """Return what the task gives under a name, `[L]` or `[batch, L]`, a number for each token; whole ones with
    `integer`."""
    if name not in inputs:
        others = ", ".join(repr(n) for n in inputs if n not in ("index", "length")) or "none"
        raise ValueError(f"The task offers no coordinates called {name!r}; it offers {others}.")
    numbers, index, length = (_array(_wide(n, inputs[n])) for n in (name, "index", "length"))
    batch = index.shape[:-1] or length.shape or numbers.shape[:-1]
    if numbers.shape not in (index.shape[-1:], (*batch, index.shape[-1])) or numbers.ndim > 2:
        raise ValueError(
            f"{name!r} has the shape {numbers.shape}; with an index {index.shape} and a length {length.shape} it is"
            f" {index.shape[-1:]} or {(*batch, index.shape[-1])}, a number for each token."
        )
    if integer and not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise TypeError(f"{name!r} is {numbers.dtype}; it holds whole numbers here.")
    return cast(Array, numbers)


def _wide(name: str, a: Any) -> Any:
    """Numbers of tokens in a type that holds them; what holds none stays as it is."""
    numbers = _array(a)
    if numbers.dtype == bool:
        return numbers.astype(np.int32)
    real = jnp.issubdtype(numbers.dtype, jnp.integer) or jnp.issubdtype(numbers.dtype, jnp.floating)
    if not real:
        return a
    wide = exact(repr(name), numbers)
    values = concrete(wide) if wide.dtype == np.int32 else None
    if values is not None and (far := values[np.abs(values.astype(float)) >= FAR]).size:
        raise ValueError(f"{name!r} holds {far.flat[0]}; positions lie between -{FAR} and {FAR}.")
    return wide


def _plural(count: int | None) -> str:
    return "one number" if count == 1 else f"{count} numbers"


def _array(a: Any) -> Array | np.ndarray:
    return a if isinstance(a, jax.Array) else np.asarray(a)


def sequences(each: str, draw: Callable[..., PyTree], key: PRNGKeyArray, inputs: Given, *tokens: Array) -> PyTree:
    """`draw(key, length, *tokens)` of every sequence: one draw for the whole batch, or one for each example.

    `tokens` are `[L, ...]` for all sequences alike, or have a batch axis before.
    """
    length, numbers = jnp.asarray(inputs["length"]), tuple(jnp.asarray(a) for a in tokens)
    rows = {a.shape[0] for a in numbers if a.ndim == 2} | {n for n in length.shape}
    if not rows:
        return draw(key, length, *numbers)
    many = [jnp.broadcast_to(length, (max(rows),))]
    many += [jnp.broadcast_to(a, (max(rows), a.shape[-1])) for a in numbers]
    if each == "batch":
        return jax.vmap(draw, (None, *(0 for _ in many)))(key, *many)
    return jax.vmap(draw)(jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(max(rows))), *many)


def uniforms(key: PRNGKeyArray, tokens: int, shape: tuple[int, ...] = ()) -> Num[Array, "L ..."]:
    """Uniform numbers in [0, 1) for each token, each from a key of its own: more tokens change none of them."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(tokens))
    return jax.vmap(lambda key: jax.random.uniform(key, shape, jnp.float32))(keys)
