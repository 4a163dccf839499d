"""Schemes together, in normal form: `a + b` on one attention, `a @ coordinates`, `a + window(512)`, `[a, b]` by layers,
`{a, b}` by heads.

Hooks run on a plain scheme or on a `Chain` of plain schemes. A `Composed` adds what stands around these: the
coordinates of each part (`posenc.place` reads them) and a window that narrows the mask. `normal_form` gives that form
of whatever one layer may have; a `Pattern` belongs to a model of many layers.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, NamedTuple, get_args

import jax

from posenc.core.chain import Chain as Chain
from posenc.core.masks import Window, check_keys, lesser
from posenc.core.scheme import Scheme
from posenc.core.shares import Shares as Shares
from posenc.language.echo import echoed
from posenc.numerics.sizes import FAR

SEVERAL = Chain, Shares
"""Types that hold several plain schemes; whatever belongs to these is a tuple with an entry for each."""
WindowOf = Literal["index", "positions"]
DECLARED = tuple(n for n in Scheme.__annotations__ if not n.startswith("_"))
"""Names that every scheme declares of itself, beside its settings."""


class Draw(NamedTuple):
    """The coordinates of one scheme, or of `parts` neighbouring schemes of a sum that share their positions."""

    coordinates: Any
    """The coordinates; the index if it is None."""
    parts: int = 1


class _Sum:
    """Base of what can stand in a sum beside schemes."""

    def __add__(self, other):
        return add(self, other)

    def __matmul__(self, coordinates):
        return under(self, coordinates)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Composed(_Sum):
    """Normal form of one layer: a plain scheme or a chain, the coordinates of its parts, and a window of the mask.

    `(rope + alibi) @ offset(3) + nope + window(9)` is
    `Composed(Chain((rope, alibi, nope)), (Draw(offset(3), 2), Draw(None)), 9)`. Declarations such as `limits` and
    `reads` are forwarded to the inner scheme. Hooks are not forwarded, because they would ignore the window.
    """

    scheme: Scheme
    coordinates: tuple[Draw, ...] = ()
    """In the order of the parts; empty where all have the index."""
    window: int | None = None
    """The number of keys that a query sees, including its own; None leaves the mask as it is."""
    sinks: int = 0
    """How many first tokens of each document are seen from beyond the window."""
    of: WindowOf = "index"
    """The quantity that the window counts: keys by their index, or how far their positions are from the query's."""
    unplaced: int | None = None
    """The position, below 0, of tokens that have no place, such as registers; None where all have one."""

    def __post_init__(self):
        if not isinstance(self.scheme, Scheme):
            raise TypeError(f"A scheme was expected, such as posenc.parse('rope'), not {self.scheme!r}.")
        if all(draw.coordinates is None for draw in self.coordinates):
            object.__setattr__(self, "coordinates", ())
        elif sum(draw.parts for draw in self.coordinates) != len(parts(self.scheme)):
            raise ValueError(f"{self.coordinates!r} does not fit a sum of {len(parts(self.scheme))} schemes.")
        check_keys(self.window)
        Window(None if self.window is None else self.window - 1, 0, self.sinks)  # refuses sinks that it cannot have
        if self.of not in get_args(WindowOf):
            raise ValueError(f"A window counts of='index' or of='positions', not {self.of!r}.")
        check_unplaced(self.scheme, self.unplaced)

    def __getattr__(self, name: str) -> Any:
        if name in DECLARED:
            return getattr(self.scheme, name)
        raise AttributeError(f"A scheme with coordinates or a window has no {name!r}; look at its attribute scheme.")

    def overrides(self, *hooks: str) -> bool:
        """Tell whether the scheme within has any of these hooks of its own."""
        return self.scheme.overrides(*hooks)

    def scale(self, d: int) -> float:
        """Return the factor of q·k, as the scheme within has it."""
        return self.scheme.scale(d)

    @property
    def draws(self) -> tuple[tuple[Any, tuple[Scheme, ...]], ...]:
        """Coordinates, None for the index, and the plain schemes whose positions one draw of them gives."""
        left, draws = list(parts(self.scheme)), []
        for coordinates, count in self.coordinates or (Draw(None),) * len(left):
            draws.append((coordinates, tuple(left[:count])))
            del left[:count]
        return tuple(draws)

    def bind(self, dims):
        for coordinates, schemes in (draw for draw in self.draws if draw[0] is not None):
            coordinates.check_axes(schemes)
        filled = tuple(Draw(d.coordinates and d.coordinates.bind(dims), d.parts) for d in self.coordinates)
        return dataclasses.replace(self, scheme=self.scheme.bind(dims), coordinates=filled)

    def narrow(self, mask: Window) -> Window:
        """Return the mask under this window. If the future is visible, the window is split evenly."""
        if self.window is None:
            return mask
        if mask.right == 0:
            left, right = self.window - 1, 0
        elif self.window % 2:
            left = right = self.window // 2
        else:
            raise ValueError(
                f"window({self.window}) cannot lie evenly around a token that sees both ways; take an odd number."
            )
        if (mask.left is not None or mask.back is not None) and (self.sinks or mask.sinks):
            raise ValueError("A window with sinks cannot be narrowed by another one; give one of the two.")
        if self.of == "positions":
            ahead = None if mask.right == 0 else right  # no index lies ahead, whatever its position
            return Window(mask.left, mask.right, self.sinks, lesser(left, mask.back), lesser(ahead, mask.ahead))
        return Window(lesser(left, mask.left), lesser(right, mask.right), self.sinks, mask.back, mask.ahead)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Pattern(_Sum):
    """One period of layers, and what acts on the input before the first: `learned + [rope, nope]`."""

    layers: tuple[Any, ...]
    input: Any = None

    def __post_init__(self):
        if len(self.layers) > 1024:
            raise ValueError(f"A list of {len(self.layers)} layers was given; one period has at most 1024.")
        if any(isinstance(s, Pattern) for s in self.layers):
            raise ValueError("A period of layers cannot hold another; write one list.")
        if any(normal_form(s).scheme.overrides("embed") for s in self.layers):
            raise ValueError("Inside a list no scheme may act on the input; write it before: 'learned + [rope, nope]'.")
        if self.input is None:
            return
        before = normal_form(self.input)
        if before.window is not None:
            raise ValueError(WINDOW_IN_LIST)
        if before.scheme.overrides("query", "key", "value", "score", "normalize", "value_bias"):
            raise ValueError("Before a list stands only what acts on the input; write the rest inside the list.")

    def bind(self, dims):
        return Pattern(tuple(s.bind(dims) for s in self.layers), self.input and self.input.bind(dims))


WINDOW_IN_LIST = "A window stands inside a list, beside what it narrows: '[rope + window(512), nope]'."


def normal_form(scheme: Any) -> Composed:
    """The normal form of what one layer has; a plain scheme has nothing around it. A pattern is refused by name."""
    if isinstance(scheme, Composed):
        return scheme
    if isinstance(scheme, Pattern):
        raise TypeError(
            "A list of schemes is a pattern of layers; give one layer's scheme at a time: posenc.layer(scheme, n)."
        )
    return Composed(scheme)


def layers(scheme: Any) -> tuple[Composed, ...]:
    """The normal forms of a pattern: of what acts on its input, if anything, then of its layers. Else one layer's."""
    if isinstance(scheme, Pattern):
        return tuple(normal_form(s) for s in (scheme.input, *scheme.layers) if s is not None)
    return (normal_form(scheme),)


def parts(scheme: Any) -> tuple[Scheme, ...]:
    """The plain schemes of one layer, in the order of their sum."""
    if not isinstance(scheme, Scheme):
        scheme = normal_form(scheme).scheme
    return scheme.parts if isinstance(scheme, SEVERAL) else (scheme,)


def _least(form: Composed) -> Any:
    """A scheme itself, where nothing stands around it."""
    around = form.coordinates or form.window is not None or form.unplaced is not None
    return form if around else form.scheme


def add(a: Any, b: Any) -> Any:
    """Return `a + b`, flat and in order. A window narrows the whole sum, and what acts on the input may stand before a
    list."""
    if isinstance(a, Pattern) or isinstance(b, Pattern) and b.input is not None:
        raise ValueError("A list ends a sum, and has one sum before it: 'learned + [rope, nope]'.")
    if isinstance(b, Pattern):
        return Pattern(b.layers, a)
    for s in (a, b):
        if not isinstance(s, Scheme | Composed):
            raise TypeError(f"{s!r} cannot be added to a scheme.")
    left, right = normal_form(a), normal_form(b)
    if shared := [form for form in (left, right) if isinstance(form.scheme, Shares)]:
        raise ValueError(
            f"Each head of {shared[0].scheme.name} has one scheme already, so nothing is added to all; add it within"
            " the braces: '{rope + alibi, rope}'."
        )
    if left.window is not None and right.window is not None:
        raise ValueError("A sum has one window; leave one out.")
    draws = tuple(Draw(coordinates, len(schemes)) for form in (left, right) for coordinates, schemes in form.draws)
    chain = Chain(parts(left.scheme) + parts(right.scheme))
    narrow = right if left.window is None else left
    if left.unplaced is not None and right.unplaced is not None:
        raise ValueError("A sum says once which tokens have no place; leave one unplaced out.")
    unplaced = right.unplaced if left.unplaced is None else left.unplaced
    return _least(Composed(chain, draws, narrow.window, narrow.sinks, narrow.of, unplaced))


def beside(schemes: tuple[Any, ...], counts: tuple[int, ...]) -> Composed:
    """`{a: 3, b: 1}`: the heads of one layer, shared among schemes."""
    forms = [normal_form(s) for s in schemes]
    if any(form.window is not None or form.unplaced is not None for form in forms):
        raise ValueError(
            "A window and unplaced tokens are of all heads, so they stand behind: '{rope, nope} + window(512)'."
        )
    draws = tuple(Draw(coordinates, len(of)) for form in forms for coordinates, of in form.draws)
    return _least(Composed(Shares(tuple(form.scheme for form in forms), counts), draws))


def under(scheme: Any, coordinates: Any) -> Any:
    """`scheme @ coordinates`: one draw of positions for a scheme, or for a sum as a whole."""
    # known by what they do: coordinates are a registry above this file
    if isinstance(coordinates, type) or not callable(coordinates) or not hasattr(coordinates, "resample"):
        raise TypeError(
            f"Coordinates were expected after @, not {coordinates!r}; write for example"
            " posenc.parse('rope @ random_sorted(2048)')."
        )
    form = normal_form(scheme)
    if form.window is not None:
        raise ValueError(
            "A window narrows the mask, not the positions, so it stands after them: 'rope @ index + window(512)'."
        )
    if form.coordinates:
        raise ValueError("A part of this sum has coordinates already; write them once, after the parts or the sum.")
    return Composed(form.scheme, (Draw(coordinates, len(parts(form.scheme))),))


def windowed(scheme: Any, keys: int, sinks: int = 0, of: WindowOf = "index") -> Composed:
    """`scheme + window(keys, sinks=sinks, of=of)`."""
    if isinstance(scheme, Pattern):
        raise ValueError(WINDOW_IN_LIST)
    form = normal_form(scheme)
    if form.window is not None:
        raise ValueError("A sum has one window; leave one out.")
    return dataclasses.replace(form, window=keys, sinks=sinks, of=of)


def with_unplaced(scheme: Any, position: int = -1) -> Composed:
    """`scheme + unplaced(position)`: tokens at this position have no place."""
    if isinstance(scheme, Pattern):
        raise ValueError(
            "Tokens without a place are of one layer, so they stand inside a list: '[t5 + unplaced, nope]'."
        )
    form = normal_form(scheme)
    if form.unplaced is not None:
        raise ValueError("A sum says once which tokens have no place; leave one unplaced out.")
    return dataclasses.replace(form, unplaced=position)


def check_unplaced(scheme: Scheme, position: Any) -> None:
    """Refuse a number that a token with a place could have, and a scheme of which nothing is left without places."""
    if position is None:
        return
    if not isinstance(position, int) or isinstance(position, bool) or not -FAR < position < 0:
        raise ValueError(f"unplaced takes a whole number below 0, which no index is, not {echoed(position)}.")
    for s in parts(scheme):
        if makes_products(s) or s.overrides("normalize"):
            raise ValueError(f"{s.name!r} makes scores or weights of its own, which no token without a place has.")
        if s.precedence == "last":
            raise ValueError(f"{s.name!r} gives queries and keys more features, in which every token has a place.")


def makes_products(scheme: Scheme) -> bool:
    """Tell whether a plain scheme scores by other products of queries and keys than q·k."""
    return scheme.precedence == "first" or scheme.products


def without_window(scheme: Any) -> Any:
    """Return the scheme without its window."""
    return _least(dataclasses.replace(normal_form(scheme), window=None, sinks=0, of="index"))


def merge(layer: Any, head: Any) -> Any:
    """The parameters that hooks see: one layer's and one head's, in one dict for each scheme."""
    if isinstance(layer, tuple):
        return tuple(merge(a, b) for a, b in zip(layer, head, strict=True))
    return layer | head


def pick(params: Any, group: str) -> Any:
    """The "layer" or the "heads" of parameters as `posenc.init` makes them."""
    if isinstance(params, tuple):
        return tuple(pick(p, group) for p in params)
    return params[group]


def spread(scheme: Scheme, positions: Any) -> Any:
    """Positions as hooks want them: a tuple for several schemes, where one array serves all parts."""
    if not isinstance(scheme, SEVERAL):
        if isinstance(positions, tuple):
            raise ValueError(f"positions is a tuple of {len(positions)}, but there is one scheme; give one, no tuple.")
        return positions
    count = len(scheme.parts)
    each = positions if isinstance(positions, tuple) else (positions,) * count
    if len(each) != count:
        raise ValueError(f"positions is a tuple of {len(each)}, but the sum has {count} schemes; pass one for each.")
    return each


def imply(scheme: Scheme, index: Any) -> Any:
    """The index as positions: the same number on every axis, and an array for each of several schemes."""
    positions = tuple(index if s.axes == 1 else index[..., None].repeat(s.axes, -1) for s in parts(scheme))
    return positions if isinstance(scheme, SEVERAL) else positions[0]


def axes(scheme: Scheme) -> Any:
    """How many numbers a position has; of several schemes, for each."""
    return tuple(s.axes for s in scheme.parts) if isinstance(scheme, SEVERAL) else scheme.axes
