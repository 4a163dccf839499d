"""What is trained under one scheme goes on under another, in a Transformer of the same sizes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from posenc.core.compose import Chain, bare, leaves
from posenc.lab.models.transformer import Transformer
from posenc.naming import spec


def carried(before: PyTree, fresh: PyTree) -> PyTree:
    """The tree before, such as a model and its moments, in the form of a fresh one, whose scheme may be another.

    Layers keep their weights whatever the period. Of positional parameters a layer keeps those of equal parts of its
    scheme, in order; `anew` names the others, which stay as they are in `fresh`.
    """
    whole = lambda a: isinstance(a, Transformer)  # noqa: E731
    return jax.tree.map(lambda a, b: _continued(a, b) if whole(b) else a, before, fresh, is_leaf=whole)


def anew(before: Transformer, fresh: Transformer) -> tuple[str, ...]:
    """The positional parameters that `carried` leaves fresh: "kerple (layer 1, layer 3)", "t5 (shared)".

    Raises `ValueError` where any other parameter would be left.
    """
    known = {name for names in _names(before) for every in names for name in every}
    found: dict[str, dict[str, None]] = {}
    for kind, n, *rest in (every[0] for names in _names(fresh) for every in names if known.isdisjoint(every)):
        if kind == "weight":
            raise ValueError(f"A model of other sizes goes on: there is no {'.'.join(map(str, rest))} before it.")
        found.setdefault(rest[0], {})["shared" if kind == "shared" else f"layer {n + 1}"] = None
    return tuple(f"{part} ({', '.join(where)})" for part, where in found.items())


def _continued(before: Transformer, fresh: Transformer) -> Transformer:
    anew(before, fresh)  # refuses
    known: dict[tuple, Array] = {}
    for names, a in zip(_names(before), _turns(before), strict=True):
        for every, one in zip(names, a, strict=True):
            known = dict.fromkeys(every, one) | known  # of several that would do anywhere, the first
    made = []
    for names, a in zip(_names(fresh), _turns(fresh), strict=True):
        kept = [next((known[name] for name in every if name in known), a[n]) for n, every in enumerate(names)]
        made.append(jnp.stack(kept))
    whole, tree = jax.tree.flatten(fresh)
    return jax.tree.unflatten(tree, [a.reshape(b.shape) for a, b in zip(made, whole, strict=True)])


def _turns(model: Transformer) -> list[Array]:
    """The leaves, all with a leading axis: the turns of the scan, or one."""
    found = jax.tree_util.tree_leaves_with_path(model)
    return [a if word(path[0]) == "blocks" else a[None] for path, a in found]


def _names(model: Transformer) -> list[list[list[tuple]]]:
    """What each turn of each leaf is, in words that do not depend on the period or on the rest of a sum.

    What layers share has several names: one for each place that it serves, then one for any.
    """
    return [_named(model, [word(key) for key in path]) for path, _ in jax.tree_util.tree_leaves_with_path(model)]


def _named(model: Transformer, words: list[Any]) -> list[list[tuple]]:
    period, depth = len(model.layers), model.shape.depth
    match words:
        case ["blocks", i, "attention", "position", _, *rest]:
            return [[("own", n, *_part(model.layers[i], rest))] for n in range(i, depth, period)]
        case ["blocks", i, *rest]:
            return [[("weight", n, *rest)] for n in range(i, depth, period)]
        case ["tied", _, text, *rest]:
            served = {"input": model.input} | {n: model.layers[n % period] for n in range(depth)}
            places = [place for place, s in served.items() if s is not None and spec(bare(s)) == text]
            part = _part(served[places[0]], rest)
            return [[("shared", place, *part) for place in (*places, "any")]]
    return [[("weight", None, *words)]]


def _part(scheme: Any, path: list[Any]) -> tuple:
    """A plain scheme within a sum, how many equal ones stand before it, and the rest of a path to a parameter."""
    scheme, passed = bare(scheme), []
    while isinstance(scheme, Chain):
        n, *path = path
        passed += [spec(s) for part in scheme.parts[:n] for s in leaves(part)]
        scheme = bare(scheme.parts[n])
    return spec(scheme), passed.count(spec(scheme)), *path


def word(key: Any) -> Any:
    """A step of a path, without its kind."""
    return next(getattr(key, kind) for kind in ("name", "key", "idx") if hasattr(key, kind))
