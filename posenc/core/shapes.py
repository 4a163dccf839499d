"""Check that parameters belong to a scheme and a model's sizes: names and shapes are those that `posenc.init` makes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from posenc.core.compose import SEVERAL, Chain, Shares, normal_form
from posenc.core.parameters import GROUPS, STRANGE, init_parameters
from posenc.core.scheme import Dims, Scheme

GUESS = 8
"""Size that stands for an unknown one; an axis that changes with it may have any."""


class KnownSizes(NamedTuple):
    """Known sizes of a model; `None` is an unknown one."""

    width: int | None = None
    heads: int | None = None
    head: int | None = None
    key_heads: int | None = None

    def dims(self, guess: int) -> Dims:
        """A model of these sizes; every other one is `guess`."""
        width, heads, head = (guess if n is None else n for n in self[:3])
        return Dims(width, heads, head, trained=4 * guess, longest=8 * guess, key_heads=self.key_heads)

    def of_parts(self, scheme: Any) -> tuple[KnownSizes, ...]:
        """Return the known sizes for each of several schemes; a share of the heads is a model of those heads alone."""
        if not isinstance(scheme, Shares) or self.heads is None:
            return (self,) * len(scheme.parts)
        cuts = scheme.cuts(self.heads, self.key_heads or self.heads)
        return tuple(
            self._replace(heads=cut.heads, key_heads=len(cut.keys))
            for cut in cuts
            for _ in range(cut.parts.start, cut.parts.stop)
        )


def check_params(scheme: Scheme, params: Any, sizes: KnownSizes, *, shared: bool = False) -> None:
    """Refuse parameters that are not such as `posenc.init` makes. With `shared`, what layers own may be missing."""
    if isinstance(scheme, SEVERAL):
        if not isinstance(params, tuple) or len(params) != len(scheme.parts):
            raise TypeError(STRANGE)
        each = sizes.of_parts(scheme)
        for s, p, size in zip(scheme.parts, params, each, strict=True):
            check_params(s, p, size, shared=shared)
        return
    if not isinstance(params, Mapping) or params.keys() != set(GROUPS):
        raise TypeError(STRANGE)
    if not all(isinstance(params[group], Mapping) for group in GROUPS):
        raise TypeError(STRANGE)
    makes = scheme.overrides("init", "init_head")
    if not makes and not hasattr(scheme, "name"):
        return  # a scheme written beside its parameters may make none: nothing says what they are
    expected = _expected(scheme, sizes, params) if makes else {"layer": {}, "heads": {}}
    if expected is not None:
        for group in GROUPS:
            _check_group(scheme, params[group], expected[group], shared)


def _check_group(scheme: Scheme, params: Mapping, expected: dict, shared: bool) -> None:
    if missing := [n for n in expected if n not in params and (n in scheme.tied or not shared)]:
        tied = ", and pass what layers share as tied" if missing[0] in scheme.tied else ""
        hint = f"make them with posenc.init(scheme, key, dims){tied}"
        raise ValueError(f"The parameters lack {missing[0]!r} of {label(scheme)}; {hint}.")
    if unknown := [n for n in params if n not in expected]:
        own = ", ".join(map(repr, expected)) or "none here"
        raise ValueError(f"{label(scheme)} has no parameter {unknown[0]!r}; it has {own}: make them with posenc.init.")
    for name in params:
        ours, theirs = _shapes(expected[name]), _shapes(params[name])
        if len(ours) != len(theirs) or not all(map(_fits, theirs, ours)):
            actual, needed = (" and ".join(map(_shown, shapes)) for shapes in (theirs, ours))
            raise ValueError(
                f"The parameter {name!r} of {label(scheme)} has the shape {actual}, but this attention needs {needed};"
                " make it with posenc.init for the same sizes."
            )


def _expected(scheme: Scheme, sizes: KnownSizes, params: Any) -> Any:
    """The shapes that `posenc.init` makes, `None` for an axis that changes with what is not known.

    `None` as a whole where there is nothing to compare.
    """
    try:
        small = _made(scheme, sizes.dims(GUESS))
        if jax.tree.structure(small) == jax.tree.structure(params) and _shapes(small) == _shapes(params):
            return None  # the parameters are right, and most are: no need to look further
        large = _made(scheme, sizes.dims(2 * GUESS))
    except Exception:  # noqa: BLE001
        return None  # a size that was only guessed is refused, or another library's tracing cannot run what draws
    return jax.tree.map(_alike, small, large) if jax.tree.structure(small) == jax.tree.structure(large) else None


@functools.lru_cache(maxsize=256)
def _made(scheme: Scheme, dims: Dims) -> PyTree:
    """The shapes of what `posenc.init` makes, traced once and not in every call."""
    return jax.eval_shape(lambda: init_parameters(normal_form(scheme), jax.random.key(0), dims))


class _Shape(tuple):
    """A shape as one leaf: jax takes a plain tuple apart."""


def _alike(a: Any, b: Any) -> _Shape | None:
    if a.ndim != b.ndim:
        return None
    return _Shape(n if n == m else None for n, m in zip(a.shape, b.shape, strict=True))


def _shapes(tree: Any) -> list[Any]:
    free = lambda a: a is None or isinstance(a, _Shape)  # noqa: E731
    return [a if free(a) else _Shape(np.shape(a)) for a in jax.tree.leaves(tree, is_leaf=free)]


def _fits(actual: _Shape, expected: _Shape | None) -> bool:
    if expected is None:
        return True
    return len(actual) == len(expected) and all(m in (None, n) for n, m in zip(actual, expected, strict=True))


def _shown(shape: _Shape | None) -> str:
    return "any" if shape is None else f"({', '.join('any' if n is None else str(n) for n in shape)})"


def label(scheme: Scheme) -> str:
    """A scheme's name for messages."""
    if isinstance(scheme, Shares):
        return "{" + ", ".join(map(label, scheme.each)) + "}"
    each = scheme.parts if isinstance(scheme, Chain) else (scheme,)
    return " + ".join(repr(getattr(s, "name", type(s).__name__)) for s in each)
