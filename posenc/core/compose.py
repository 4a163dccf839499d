"""Schemes together: `a + b` on one attention, `a @ coordinates`, `a + window(512)`, and `[a, b]` by layers.

Hooks run on plain schemes and chains only. `Placed` and `Windowed` are wrappers that `bare` takes off: the first says
which positions to draw (`posenc.place`), the second narrows the mask. A `Pattern` belongs to a model of many layers.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax

from posenc.core.masks import Window
from posenc.core.scheme import LIMITS, ORDER, At, Dims, Scheme, Tile


class Chain(Scheme, name=None):
    """Several schemes on one attention, in order. Everything of a chain is a tuple with an entry for each part."""

    parts: tuple[Any, ...]

    reads = property(lambda self: max((bare(s).reads for s in self.parts), key=ORDER.index))
    contextual = property(lambda self: any(bare(s).contextual for s in self.parts))
    family = property(lambda self: bare(self.parts[0]).family)

    def validate(self):
        if len(self.parts) < 2:
            raise ValueError("A chain has at least two parts; one scheme stands alone.")
        plain = [one for s in self.parts for one in leaves(s)]  # the order of a sum within a sum counts too
        label = [_named(s) for s in plain]
        if sum(s.overrides("normalize") for s in plain) > 1:
            raise ValueError(f"Of {', '.join(label)}, at most one may make weights of its own; leave one out.")
        for n, s in enumerate(plain):
            before, after, others = plain[:n], plain[n + 1 :], plain[:n] + plain[n + 1 :]
            if s.precedence == "temperature" and any(
                o.overrides("query") and o.precedence != "temperature" for o in before
            ):
                raise ValueError(f"{label[n]!r} is a temperature, so it stands before what it scales; write it first.")
            if s.precedence == "first" and (
                any(o.overrides("score") for o in before) or any(o.overrides("query", "key") for o in others)
            ):
                raise ValueError(f"{label[n]!r} replaces q·k, so it comes first and nothing else may change q or k.")
            late = [label[n + 1 + m] for m, o in enumerate(after) if o.overrides("query", "key")]
            if s.precedence == "last" and late:
                raise ValueError(
                    f"{label[n]!r} gives q and k more features, so {late[0]!r} cannot change them after it; write"
                    f" {label[n]!r} last."
                )

    @property
    def limits(self):
        every = [s.limits for s in leaves(self)]
        joined = {n: "; ".join(limits[n] for limits in every if n in limits) for n in LIMITS}
        if joined["reencoded"] and self.contextual and not joined["cache"]:
            read = next(_named(s) for s in leaves(self) if s.contextual)
            joined["cache"] = (
                f"{joined['reencoded']}, and {read!r} would have to read features again that no cache keeps"
            )
        return {name: why for name, why in joined.items() if why}

    def bind(self, dims: Dims):
        fitted = Chain(tuple(s.bind(dims) for s in self.parts))
        bare(fitted).scale(dims.head)
        return fitted

    def check_positions(self, p, position):
        for n, s in enumerate(self.parts):
            s.check_positions(p[n], position[n])

    def init(self, key, dims):
        raise TypeError("A chain has no parameters of its own; posenc.init makes those of its parts.")

    init_head = init

    def carry(self, dims: Dims):
        return tuple(s.carry(dims) for s in self.parts)

    def scale(self, d: int) -> float:
        chosen = {s.scale(d): s for s in self.parts if s.overrides("scale")}
        if len(chosen) > 1:
            said = " and ".join(f"{_named(s)} by {value:.6g}" for value, s in chosen.items())
            raise ValueError(f"Two schemes multiply q·k differently, {said}; combine schemes of one scale.")
        return next(iter(chosen), d**-0.5)

    def embed(self, p, x, at: At):
        for n, s in enumerate(self.parts):
            x = s.embed(p[n], x, _told(at, n))
        return x

    def locate(self, p, x, at: At, carry):
        told = [s.locate(p[n], x, _told(at, n), carry[n]) for n, s in enumerate(self.parts)]
        return tuple(c for c, _ in told), tuple(new for _, new in told)

    def query(self, p, q, info):
        said = []
        for n, s in enumerate(self.parts):
            q, word = s.query(p[n], q, info[n])
            said.append(word)
        return q, tuple(said)

    def key(self, p, k, info):
        said = []
        for n, s in enumerate(self.parts):
            k, word = s.key(p[n], k, info[n])
            said.append(word)
        return k, tuple(said)

    def value(self, p, v, info):
        for n, s in enumerate(self.parts):
            v = s.value(p[n], v, info[n])
        return v

    def score(self, p, s, tile: Tile):
        for n, one in enumerate(self.parts):
            s = one.score(p[n], s, _tile(tile, n))
        return s

    def normalize(self, p, s, tile: Tile):
        n = next(n for n, one in enumerate(self.parts) if one.overrides("normalize"))
        return self.parts[n].normalize(p[n], s, _tile(tile, n))

    def value_bias(self, p, a, tile: Tile):
        adds = [n for n, one in enumerate(self.parts) if one.overrides("value_bias")]
        return sum(self.parts[n].value_bias(p[n], a, _tile(tile, n)) for n in adds)

    def output(self, p, o, info):
        for n, s in reversed(list(enumerate(self.parts))):
            o = s.output(p[n], o, info[n])
        return o

    def overrides(self, *hooks):
        return any(bare(s).overrides(*hooks) for s in self.parts)

    def lookup(self, asked, whole, rows):
        return tuple(s.lookup(asked[n], whole[n], rows) for n, s in enumerate(self.parts))


def _named(s: Any) -> str:
    return getattr(s, "name", type(s).__name__)


def _told(at: At, n: int) -> At:
    return at._replace(position=at.position[n])


def _tile(tile: Tile, n: int) -> Tile:
    return tile._replace(query_info=tile.query_info[n], key_info=tile.key_info[n], distance=tile.distance[n])


class _Sum:
    """What can stand in a sum beside schemes."""

    def __add__(self, other):
        return add(self, other)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Placed(_Sum):
    """A scheme, or a sum of them, under coordinates of its own: `rope @ random_sorted(2048)`."""

    scheme: Any
    coordinates: Any

    def __post_init__(self):
        c = self.coordinates  # known by what it does: coordinates are a registry above this file
        if isinstance(c, type) or not callable(c) or not hasattr(c, "resample"):
            raise TypeError(
                f"Coordinates were expected after @, not {c!r}; write for example"
                " posenc.parse('rope @ random_sorted(2048)')."
            )
        if isinstance(self.scheme, Placed):
            raise ValueError("Coordinates are given once; write them once.")
        if isinstance(self.scheme, Windowed):
            raise ValueError(
                "A window narrows the mask, not the positions, so it stands after them: 'rope @ index + window(512)'."
            )
        if isinstance(self.scheme, Chain) and any(isinstance(s, Placed) for s in self.scheme.parts):
            raise ValueError("A part of this sum has coordinates already; give them once, to the parts or to the sum.")

    def bind(self, dims):
        return Placed(self.scheme.bind(dims), self.coordinates.bind(dims))


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Windowed(_Sum):
    """A scheme whose queries see `keys` keys, themselves among them: `rope + window(512)`."""

    scheme: Any
    keys: int

    def __post_init__(self):
        if not isinstance(self.keys, int) or isinstance(self.keys, bool) or self.keys < 1:
            raise ValueError(f"window takes a whole number of keys of at least 1, not {self.keys!r}.")
        if isinstance(self.scheme, Windowed):
            raise ValueError("A sum has one window; leave one out.")
        if isinstance(self.scheme, Pattern):
            raise ValueError("A window stands inside a list, beside what it narrows: '[rope + window(512), nope]'.")

    def bind(self, dims):
        return Windowed(self.scheme.bind(dims), self.keys)

    def narrow(self, mask: Window) -> Window:
        """The mask that is left of `mask`. Where the future is seen, the window is split evenly."""
        if mask.right == 0:
            left, right = self.keys - 1, 0
        elif self.keys % 2:
            left = right = self.keys // 2
        else:
            raise ValueError(
                f"window({self.keys}) cannot lie evenly around a token that sees both ways; take an odd number."
            )
        return Window(
            left if mask.left is None else min(left, mask.left), right if mask.right is None else min(right, mask.right)
        )


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Pattern(_Sum):
    """One period of layers, and what acts on the input before the first: `learned + [rope, nope]`."""

    layers: tuple[Any, ...]
    input: Any = None

    def __post_init__(self):
        for s in self.layers:
            if isinstance(s, Pattern):
                raise ValueError("A period of layers cannot hold another; write one list.")
            if bare(s).overrides("embed"):
                raise ValueError(
                    "Inside a list no scheme may act on the input; write it before: 'learned + [rope, nope]'."
                )
        if isinstance(self.input, Windowed):
            raise ValueError("A window stands inside a list, beside what it narrows: '[rope + window(512), nope]'.")
        if self.input is not None and bare(self.input).overrides(
            "query", "key", "value", "score", "normalize", "value_bias"
        ):
            raise ValueError("Before a list stands only what acts on the input; write the rest inside the list.")

    def bind(self, dims):
        return Pattern(tuple(s.bind(dims) for s in self.layers), self.input and self.input.bind(dims))


def add(a: Any, b: Any) -> Any:
    """`a + b`: flat, in order; a window stays around the sum, and what acts on the input may stand before a list."""
    if isinstance(a, Pattern) or isinstance(b, Pattern) and b.input is not None:
        raise ValueError("Nothing stands after a list, and one sum before it: 'learned + [rope, nope]'.")
    if isinstance(b, Pattern):
        return Pattern(b.layers, a)
    windows = [s for s in (a, b) if isinstance(s, Windowed)]
    if len(windows) > 1:
        raise ValueError("A sum has one window; leave one out.")
    inner = [s.scheme if isinstance(s, Windowed) else s for s in (a, b)]
    chain = Chain(_parts(inner[0]) + _parts(inner[1]))
    return Windowed(chain, windows[0].keys) if windows else chain


def _parts(s: Any) -> tuple[Any, ...]:
    if isinstance(s, Chain):
        return s.parts
    if isinstance(s, Scheme | Placed):
        return (s,)
    raise TypeError(f"{s!r} cannot be added to a scheme.")


def bare(scheme: Any) -> Scheme:
    """The scheme whose hooks run: coordinates and windows taken off. A pattern is refused by name."""
    if isinstance(scheme, Placed | Windowed):
        return bare(scheme.scheme)
    if isinstance(scheme, Chain) and not all(isinstance(s, Scheme) for s in scheme.parts):
        return Chain(tuple(bare(s) for s in scheme.parts))
    if isinstance(scheme, Pattern):
        raise TypeError("A list of schemes is a pattern of layers; give attention one layer's scheme.")
    if isinstance(scheme, Scheme):
        return scheme
    raise TypeError(f"A scheme was expected, such as posenc.parse('rope'), not {scheme!r}.")


def leaves(scheme: Any) -> list[Scheme]:
    """The schemes of a sum in order, those of a sum within it too; one scheme alone is a list of itself."""
    scheme = bare(scheme)
    return [one for s in scheme.parts for one in leaves(s)] if isinstance(scheme, Chain) else [scheme]


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
    """Positions as hooks want them: a tuple for a chain, where one array serves all parts."""
    if not isinstance(scheme, Chain):
        if isinstance(positions, tuple):
            raise ValueError(f"A tuple of {len(positions)} positions was given to one scheme; give it one array.")
        return positions
    given = positions if isinstance(positions, tuple) else (positions,) * len(scheme.parts)
    if len(given) != len(scheme.parts):
        raise ValueError(f"{len(given)} positions were given to a sum of {len(scheme.parts)} schemes; give one each.")
    return tuple(spread(s, p) for s, p in zip(scheme.parts, given, strict=True))


def imply(scheme: Scheme, index: Any) -> Any:
    """The index as positions: the same number on every axis, and an array for each part of a chain."""
    if isinstance(scheme, Chain):
        return tuple(imply(s, index) for s in scheme.parts)
    return index if scheme.axes == 1 else index[..., None].repeat(scheme.axes, -1)


def axes(scheme: Scheme) -> Any:
    """How many numbers a position has; for a chain, of each part."""
    return tuple(axes(s) for s in scheme.parts) if isinstance(scheme, Chain) else scheme.axes
