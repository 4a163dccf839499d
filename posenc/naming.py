"""One text names one scheme, both ways: `spec(parse(text))` is the shortest text of the same object.

The text is the command line's value, the settings' value, the key of results and the label in figures. Names resolve
through the registries alone; no text is ever imported or evaluated. `mine:Mine` is a class of a module that is imported
already, and afterwards its own name, `mine`, is known too.
"""

from __future__ import annotations

import functools
from typing import Any

from posenc.coordinates import COORDINATES, Coordinates
from posenc.core.compose import Chain, Composed, Pattern, Shares, add, beside, parts, under, windowed, with_unplaced
from posenc.core.scheme import SCHEMES, Dims, Scheme, check_dims
from posenc.language import grammar
from posenc.language.modules import notebook
from posenc.language.registry import Registry, call, identity

ALONE = (
    "window(n) narrows the mask of a scheme, unplaced names tokens without a place, and neither can stand alone; write"
    " for example 'nope + window(512)'."
)

for kind in (Scheme, Composed, Pattern):  # notebooks show the card; the core, whose files are hashed, has no pages
    setattr(kind, "_repr_html_", notebook("posenc.catalog.schemes:as_html"))  # noqa: B010


def parse(text: str) -> Any:
    """The scheme that a text names: `parse("rope(base=500000.0) + alibi")`. Raises one `ValueError` sentence.

    `mine:Mine(rate=0.5)` is class `Mine` of the module `mine`, which the caller has imported: a text imports nothing.
    """
    return _build(grammar.read(text))


def scheme_of(scheme: Any) -> Any:
    """The scheme that a text names; what is not a text stays as it is."""
    return parse(scheme) if isinstance(scheme, str) else scheme


def spec(scheme: Any) -> str:
    """The text of a scheme; `parse(spec(scheme)) == scheme`. Settings at their default are left out."""
    return grammar.write(_tree(scheme))


def full(scheme: Any) -> str:
    """Return the text of a scheme with every setting written out, so that a new default is a new text. A setting that
    came later is left out if it changes nothing (`posenc.language.registry.later`)."""
    return grammar.write(_tree(scheme, _full_call))


def names(kind: str = "schemes") -> list[str]:
    """The names of all schemes, or of all "coordinates"."""
    kinds: dict[str, Registry] = {"schemes": SCHEMES, "coordinates": COORDINATES}
    if kind not in kinds:
        raise ValueError(f"{kind!r} has no names; choose {' or '.join(map(repr, kinds))}.")
    return kinds[kind].names()


def bind(scheme: Any, dims: Dims) -> Any:
    """The scheme, or that of a text, for a model of these sizes: settings left `None` are filled.

    Serves every composition; binding twice is binding once. Raises `ValueError` where a text names no scheme and where
    the scheme cannot serve these sizes, and `TypeError` for anything but a scheme, a text and a `posenc.Dims`.
    """
    scheme = scheme_of(scheme)
    if not isinstance(scheme, Scheme | Composed | Pattern):
        raise TypeError(f"A scheme was expected, such as posenc.parse('rope'), not {scheme!r}.")
    check_dims(dims)
    return scheme.bind(dims)


def _build(tree: grammar.Tree) -> Any:
    match tree:
        case grammar.Call(name) if name in AROUND:
            raise ValueError(ALONE)
        case grammar.Call():
            return SCHEMES.make(tree)
        case grammar.Located(what, where):
            return under(_build(what), COORDINATES.make(where))
        case grammar.Period(layers):
            return Pattern(tuple(_build(layer) for layer in layers))
        case grammar.Shared(shares):
            return beside(tuple(_build(what) for what, _ in shares), tuple(count for _, count in shares))
        case grammar.Sum(parts):
            around = [p for p in parts if isinstance(p, grammar.Call) and p.name in AROUND]
            if len(around) == len(parts):
                raise ValueError(ALONE)
            joined = functools.reduce(add, [_build(p) for p in parts if p not in around])
            return functools.reduce(lambda scheme, call: AROUND[call.name](scheme, call), around, joined)
    raise TypeError(f"{tree!r} is not a tree of the grammar.")


def _with_window(scheme: Any, call: grammar.Call) -> Any:
    return windowed(scheme, *_window(call))


def _with_unplaced(scheme: Any, call: grammar.Call) -> Any:
    named = dict(call.settings)
    if len(call.positional) + len(named) > 1 or named.keys() - {"position"}:
        raise ValueError("unplaced takes one position below 0, -1 unless given: 'alibi + unplaced(-1)'.")
    position: Any = (*call.positional, *named.values(), -1)[0]
    return with_unplaced(scheme, position)


AROUND = {"window": _with_window, "unplaced": _with_unplaced}
"""Functions for what stands in a sum beside schemes, and is none."""


def _window(call: grammar.Call) -> tuple[Any, Any, Any]:
    """The keys and the sinks of a window, and what it counts."""
    named = dict(call.settings)
    keys = (*call.positional, *(named[name] for name in ("keys",) if name in named))
    if len(keys) != 1 or len(named) != len(call.settings) or named.keys() - {"keys", "sinks", "of"}:
        raise ValueError(
            "A window has a number of keys, and maybe of sinks: window(512), or window(512, sinks=4); of='positions'"
            " counts positions."
        )
    return keys[0], named.get("sinks", 0), named.get("of", "index")


def _full_call(thing: Any, name: str) -> grammar.Call:
    return grammar.Call(name, (), tuple(identity(thing).items()))


def _tree(scheme: Any, named: Any = call) -> grammar.Tree:
    match scheme:
        case Composed():
            addends = _located(scheme.scheme, scheme.draws, named)
            more = (("sinks", scheme.sinks),) * (scheme.sinks > 0) + (("of", scheme.of),) * (scheme.of != "index")
            around = [] if scheme.window is None else [grammar.Call("window", (scheme.window,), more)]
            if scheme.unplaced is not None:
                around.append(grammar.Call("unplaced", () if scheme.unplaced == -1 else (scheme.unplaced,)))
            return _sum(*addends, *around)
        case Pattern(layers, before):
            period = grammar.Period(tuple(_tree(s, named) for s in layers))
            return period if before is None else _sum(*grammar.addends(_tree(before, named)), period)
        case Shares():
            return grammar.Shared(tuple(zip((_tree(s, named) for s in scheme.each), scheme.counts, strict=True)))
        case Scheme():
            return _sum(*(named(s, s.name) for s in parts(scheme)))
        case Coordinates():
            return named(scheme, scheme.name)
    raise TypeError(f"A scheme was expected, such as posenc.parse('rope'), not {scheme!r}.")


def _located(scheme: Scheme, draws: tuple[Any, ...], named: Any) -> list[grammar.Tree]:
    """The addends of a sum with its coordinates; shares of the heads are one."""
    if not isinstance(scheme, Shares):
        return [a for coordinates, schemes in draws for a in _addends(coordinates, schemes, named)]
    if len(draws) == 1:
        return [grammar.Located(_tree(scheme, named), named(draws[0][0], draws[0][0].name))]
    left, shares = list(draws), []
    for s, count in zip(scheme.each, scheme.counts, strict=True):
        of, missing = [], len(s.parts) if isinstance(s, Chain) else 1
        while missing > 0:
            of.append(left.pop(0))
            missing -= len(of[-1][1])
        shares.append((_sum(*(a for draw in of for a in _addends(draw[0], draw[1], named))), count))
    return [grammar.Shared(tuple(shares))]


def _addends(coordinates: Coordinates | None, schemes: tuple[Scheme, ...], named: Any) -> list[grammar.Tree]:
    """The addends of a sum that share one draw of coordinates."""
    each = [named(s, s.name) for s in schemes]
    return each if coordinates is None else [grammar.Located(_sum(*each), named(coordinates, coordinates.name))]


def _sum(*addends: grammar.Tree) -> grammar.Tree:
    return addends[0] if len(addends) == 1 else grammar.Sum(addends)
