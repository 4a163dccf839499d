"""One text names one thing: `"rope(base=500000.0) + alibi"` to a tree and back, without jax.

Schemes, coordinates and tasks share this grammar. A name is an identifier. A call gives settings, which are finite
numbers, strings, booleans, None, or tuples of those. `+` adds (flat), `@` gives coordinates and binds tighter. A list
is one period of layers, and braces share the heads of one layer. The name `mine:Mine` is class `Mine` of the module
`mine`, which a text names and never imports. Nothing is ever evaluated: the text is parsed by `ast`, and only these
forms pass.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from posenc.language.echo import cut, echoed

LONGEST = 4096
EXAMPLE = "rope(base=500000.0) + alibi"
_CLASS_IN_A_MODULE = re.compile(
    r"""
      (?P<quote>'{3}|"{3}|'|")(?:\\.|(?!(?P=quote)).)*(?P=quote)
    | \#[^\r\n]*
    | (?<![\w.:]) (?P<name> (?:[^\W\d]\w*\.)* [^\W\d]\w* : [^\W\d]\w* ) (?![\w.]|:\w)
    """,
    re.DOTALL | re.VERBOSE,
)
"""A string or a comment, in which nothing is a name, or else `mine:Mine`."""
Value = bool | int | float | str | None | tuple["Value", ...]


@dataclass(frozen=True)
class Call:
    """A name with settings: `rope(base=500000.0)`. The name of a class in a module is `mine:Mine`."""

    name: str
    positional: tuple[Value, ...] = ()
    settings: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True)
class Sum:
    """Several on one attention, in order: `rope + alibi`. Sums are flat."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Located:
    """Something under coordinates: `rope @ random_sorted(2048)`."""

    what: Tree
    where: Call


@dataclass(frozen=True)
class Period:
    """One period of layers: `[rope, rope, rope, nope]`."""

    layers: tuple[Tree, ...]


@dataclass(frozen=True)
class Shared:
    """The heads of one layer, shared among several: `{alibi, nope}`, or `{rope: 3, nope: 1}` of each four heads."""

    shares: tuple[tuple[Tree, int], ...]


Tree = Call | Sum | Located | Period | Shared


def read(text: str) -> Tree:
    """The tree that a text names. Raises one `ValueError` sentence for any other text."""
    if not isinstance(text, str):
        raise TypeError(f"A text was expected, such as {EXAMPLE!r}, not {echoed(text)}.")
    shown = cut(text)
    if not text.strip():
        raise ValueError(f"An empty text names nothing; write for example {EXAMPLE!r}.")
    if len(text) > LONGEST:
        raise ValueError(f"{shown!r} is {len(text)} characters long; at most {LONGEST} are read.")
    try:
        return _tree(_parsed(text.strip()))
    except _Refused as refusal:
        raise ValueError(f"{shown!r} cannot be read: {refusal}; write for example {EXAMPLE!r}.") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        file = ", or mine:Mine for class Mine of mine.py" if ":" in text else ""
        raise ValueError(
            f"{shown!r} cannot be read as names and settings; write for example {EXAMPLE!r}{file}."
        ) from None


def write(tree: Tree) -> str:
    """The text of a tree; `read(write(tree)) == tree`."""
    match tree:
        case Call(name, positional, settings):
            inside = [repr(v) for v in positional] + [f"{k}={v!r}" for k, v in settings]
            return f"{name}({', '.join(inside)})" if inside else name
        case Sum(parts):
            return " + ".join(write(p) for p in parts)
        case Located(what, where):
            inner = f"({write(what)})" if isinstance(what, Sum) else write(what)
            return f"{inner} @ {write(where)}"
        case Period(layers):
            return f"[{', '.join(write(layer) for layer in layers)}]"
        case Shared(shares):
            alike = all(count == 1 for _, count in shares)
            return f"{{{', '.join(write(what) + ('' if alike else f': {count}') for what, count in shares)}}}"
    raise TypeError(f"{tree!r} is not a tree of this grammar.")


def modules(tree: Tree) -> Iterator[str]:
    """The modules whose classes a tree names, each as often as it does: "mine" of `mine:Mine + alibi`."""
    match tree:
        case Call(name):
            if ":" in name:
                yield name.partition(":")[0]
        case Sum(several) | Period(several):
            for part in several:
                yield from modules(part)
        case Located(what, where):
            yield from modules(what)
            yield from modules(where)
        case Shared(shares):
            for what, _ in shares:
                yield from modules(what)


class _Refused(Exception):
    """Fault of a text, as the middle of a sentence."""


def _parsed(text: str) -> ast.expr:
    """Python's tree of a text, in which `mine:Mine` is one name.

    Python's grammar has no such name, so the text is parsed with another one in its place, which occurs nowhere in it.
    """
    prefix, plain = "_", unicodedata.normalize("NFKC", text)  # as Python compares names
    while prefix in plain:
        prefix += "_"
    names: dict[str, str] = {}

    def stand_in(match: re.Match) -> str:
        if match[0].startswith("#"):
            raise _Refused(f"it has a comment, {echoed(match[0])}, and every part of a text counts")
        if match["name"] is None or any(map(keyword.iskeyword, re.split("[.:]", match["name"]))):
            return match[0]
        key = f"{prefix}{len(names)}"
        names[key] = match["name"]
        return key

    expression = ast.parse(_CLASS_IN_A_MODULE.sub(stand_in, text), mode="eval").body
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return expression


def _tree(node: ast.expr) -> Tree:
    match node:
        case ast.Name(name):
            return Call(name)
        case ast.Call(ast.Name(name), args, keywords):
            names = [k.arg for k in keywords if k.arg is not None]
            if len(names) < len(keywords) or any(isinstance(a, ast.Starred) for a in args):
                raise _Refused("settings are written one by one, without stars")
            for k in names:
                if names.count(k) > 1:
                    raise _Refused(f"the setting {echoed(k)} of {echoed(name)} is given twice")
            return Call(
                name,
                tuple(_value(a) for a in args),
                tuple(zip(names, (_value(k.value) for k in keywords), strict=True)),
            )
        case ast.BinOp(left, ast.Add(), right):
            return Sum(addends(_tree(left)) + addends(_tree(right)))
        case ast.BinOp(left, ast.MatMult(), right):
            what, where = _tree(left), _tree(right)
            if isinstance(what, Located):
                raise _Refused("coordinates are given once")
            if not isinstance(where, Call) or isinstance(what, Period):
                raise _Refused("`@` stands between a scheme and the name of coordinates")
            return Located(what, where)
        case ast.List(items):
            if not items:
                raise _Refused("a period of layers holds at least one")
            return Period(tuple(_tree(item) for item in items))
        case ast.Set(items):
            return _shared(tuple((_tree(item), 1) for item in items))
        case ast.Dict(keys, values):
            if None in keys:
                raise _Refused("shares of heads are written one by one, without stars")
            return _shared(tuple((_tree(k), _count(n)) for k, n in zip(keys, values, strict=True) if k is not None))
    raise _Refused(f"{_shown(node)} is neither a name, a call, a sum, `@`, a list nor heads in braces")


def _shared(shares: tuple[tuple[Tree, int], ...]) -> Shared:
    if len(shares) < 2:
        raise _Refused("braces share heads among at least two, such as {alibi, nope}")
    return Shared(shares)


def _count(node: ast.expr) -> int:
    """How many heads of all those that are counted a share has."""
    match node:
        case ast.Constant(int() as count) if not isinstance(count, bool) and count >= 1:
            return count
    raise _Refused(f"{_shown(node)} is no number of heads, which is whole and at least 1")


def _shown(node: ast.expr) -> str:
    """A piece of a text as messages repeat it."""
    return echoed(ast.unparse(node))


def addends(tree: Tree) -> tuple[Tree, ...]:
    """The parts of a sum; anything else is one."""
    return tree.parts if isinstance(tree, Sum) else (tree,)


def _value(node: ast.expr) -> Value:
    match node:
        case ast.Constant(bool() | int() | str() | None as value):
            return value
        case ast.Constant(float() as value) if math.isfinite(value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)) if not isinstance(value, bool):
            return -cast(float, _value(node.operand))  # which refuses what is not finite
        case ast.Tuple(items):
            return tuple(_value(item) for item in items)
    raise _Refused(f"the setting {_shown(node)} is not a finite number, a string, a boolean, None or a tuple")
