"""One text names one scheme, both ways: `spec(parse(text))` is the shortest text of the same object.

The text is the command line's value, the settings' value, the key of results and the label in figures. Names resolve
through the registries alone; no text is ever imported or evaluated.
"""

from __future__ import annotations

from typing import Any

from posenc.coordinates import COORDINATES, Coordinates
from posenc.core.compose import Chain, Pattern, Placed, Windowed, add
from posenc.core.scheme import SCHEMES, Dims, Scheme, check_dims
from posenc.language import grammar
from posenc.language.registry import Registry, call, identity

NO_SCHEME = "window(n) is no scheme but narrows what one sees; write for example 'nope + window(512)'."


def parse(text: str) -> Any:
    """The scheme that a text names: `parse("rope(base=500000.0) + alibi")`. Raises one `ValueError` sentence."""
    return _build(grammar.read(text))


def spec(scheme: Any) -> str:
    """The text of a scheme; `parse(spec(scheme)) == scheme`. Settings at their default are left out."""
    return grammar.write(_tree(scheme))


def full(scheme: Any) -> str:
    """The text of a scheme with every setting written out, so that a new default is a new text; a setting that came
    later is left out where it changes nothing (`posenc.language.registry.later`)."""
    return grammar.write(_tree(scheme, _every))


def names(kind: str = "schemes") -> list[str]:
    """The names of all schemes, or of all "coordinates"."""
    kinds: dict[str, Registry] = {"schemes": SCHEMES, "coordinates": COORDINATES}
    if kind not in kinds:
        raise ValueError(f"{kind!r} has no names; choose {' or '.join(map(repr, kinds))}.")
    return kinds[kind].names()


def bind(scheme: Any, dims: Dims) -> Any:
    """The scheme for a model of these sizes: settings left `None` are filled.

    Serves every composition; binding twice is binding once. Raises `ValueError` where the scheme cannot serve these
    sizes, and `TypeError` for what is no scheme or no `posenc.Dims`.
    """
    if not isinstance(scheme, Scheme | Placed | Windowed | Pattern):
        raise TypeError(f"A scheme was expected, such as posenc.parse('rope'), not {scheme!r}.")
    check_dims(dims)
    return scheme.bind(dims)


def _build(tree: grammar.Tree) -> Any:
    match tree:
        case grammar.Call("window"):
            raise ValueError(NO_SCHEME)
        case grammar.Call():
            return SCHEMES.make(tree)
        case grammar.At(what, where):
            return Placed(_build(what), COORDINATES.make(where))
        case grammar.Period(layers):
            return Pattern(tuple(_build(layer) for layer in layers))
        case grammar.Sum(parts):
            windows = [p for p in parts if isinstance(p, grammar.Call) and p.name == "window"]
            if len(windows) == len(parts):
                raise ValueError(NO_SCHEME)
            first, *rest = [_build(p) for p in parts if p not in windows]
            for part in rest:
                first = add(first, part)
            for window in windows:
                given = (*window.given, *(value for name, value in window.settings if name == "keys"))
                if isinstance(first, Windowed) or len(given) != 1 or len(window.given) + len(window.settings) != 1:
                    raise ValueError("A sum has one window of one number, its keys, such as window(512).")
                first = Windowed(first, given[0])
            return first
    raise TypeError(f"{tree!r} is no tree of the grammar.")


def _every(thing: Any, name: str) -> grammar.Call:
    return grammar.Call(name, (), tuple(identity(thing).items()))


def _tree(scheme: Any, said: Any = call) -> grammar.Tree:
    match scheme:
        case Windowed(inner, keys):
            tree = _tree(inner, said)
            parts = tree.parts if isinstance(tree, grammar.Sum) else (tree,)
            return grammar.Sum((*parts, grammar.Call("window", (keys,))))
        case Placed(inner, coordinates):
            return grammar.At(_tree(inner, said), said(coordinates, coordinates.name))
        case Pattern(layers, before):
            period = grammar.Period(tuple(_tree(s, said) for s in layers))
            if before is None:
                return period
            tree = _tree(before, said)
            return grammar.Sum((*(tree.parts if isinstance(tree, grammar.Sum) else (tree,)), period))
        case Chain(parts):
            return grammar.Sum(tuple(_tree(s, said) for s in parts))
        case Scheme():
            return said(scheme, scheme.name)
        case Coordinates():
            return said(scheme, scheme.name)
    raise TypeError(f"A scheme was expected, such as posenc.parse('rope'), not {scheme!r}.")
