"""Parameters trained under one scheme, in a model of the same sizes under another: to train on, or to evaluate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from posenc.core.compose import SEVERAL, normal_form, parts
from posenc.lab.models.ends import tied_name
from posenc.lab.models.transformer import Transformer
from posenc.naming import spec


def carried(before: PyTree, fresh: PyTree) -> PyTree:
    """The tree before, such as a model and its optimiser moments, in the form of a fresh one under another scheme.

    Layers keep their weights whatever the period. Of positional parameters a layer keeps those of equal parts of its
    scheme, in order; the others stay as they are in `fresh`, and `fresh_parameters` names them.
    """
    is_transformer = lambda a: isinstance(a, Transformer)  # noqa: E731
    return jax.tree.map(
        lambda a, b: _continued(a, b) if is_transformer(b) else a, before, fresh, is_leaf=is_transformer
    )


def fresh_parameters(before: Transformer, fresh: Transformer) -> tuple[str, ...]:
    """The positional parameters that `carried` leaves at their initial values: "kerple (layer 1, layer 3)".

    Raises `ValueError` if any other parameter would stay at its initial value.
    """
    names_before = {name for names in _names(before) for aliases in names for name in aliases}
    anew = [aliases[0] for names in _names(fresh) for aliases in names if names_before.isdisjoint(aliases)]
    for kind, _, *rest in anew:
        if kind == "weight":
            raise ValueError(
                f"The model before has other sizes: it has no parameter {'.'.join(map(str, rest))}; continue with the"
                " same depth, width and model."
            )
    return _grouped(anew)


def differences(trained: PyTree, other: PyTree) -> tuple[str, ...]:
    """In what the parameters of a model under another scheme differ from those trained: "needs t5 (shared) too". Empty
    where each has one counterpart of its shape and type, in a part of the same class; the settings may differ.

    Models may be abstract. Others than Transformers are compared by the paths to their parameters.
    """
    theirs, ours = _shapes(trained), _shapes(other)
    used, anew, reshaped = set(), [], []
    pairs = zip(_counterparts(trained, other, _class), _names(other, _class), ours, strict=True)
    for counterparts, names, shape in pairs:
        for at, aliases in zip(counterparts, names, strict=True):
            used.add(at)
            if at is None:
                anew.append(aliases[0])
            elif theirs[at[0]] != shape:
                reshaped.append(aliases[0])
    steps = ((i, n, aliases) for i, names in enumerate(_names(trained, _class)) for n, aliases in enumerate(names))
    unused = [aliases[0] for i, n, aliases in steps if (i, n) not in used]
    kinds = (("needs {} too", anew), ("has no {}", unused), ("has {} in another shape", reshaped))
    return tuple(text.format(", ".join(_grouped(names))) for text, names in kinds if names)


def moved(trained: PyTree, other: PyTree) -> PyTree:
    """The parameters of a trained model under another scheme, where there are no `differences`. `other` is that model,
    which may be abstract."""
    turns, (leaves, tree) = _turns(trained), jax.tree.flatten(other)
    made = [jnp.stack([turns[i][n] for i, n in at]) for at in _counterparts(trained, other, _class)]
    return jax.tree.unflatten(tree, [a.reshape(b.shape) for a, b in zip(made, leaves, strict=True)])


def _continued(before: Transformer, fresh: Transformer) -> Transformer:
    fresh_parameters(before, fresh)  # raises where sizes differ
    turns, (leaves, tree), made = _turns(before), jax.tree.flatten(fresh), []
    for counterparts, a in zip(_counterparts(before, fresh, spec), _turns(fresh), strict=True):
        made.append(jnp.stack([a[n] if at is None else turns[at[0]][at[1]] for n, at in enumerate(counterparts)]))
    return jax.tree.unflatten(tree, [a.reshape(b.shape) for a, b in zip(made, leaves, strict=True)])


def _counterparts(before: PyTree, fresh: PyTree, called: Callable[[Any], str]) -> list[list[tuple[int, int] | None]]:
    """Return for each leaf and scan step of a fresh model the earlier leaf and scan step that has one of its names, the
    first of several."""
    places: dict[tuple, tuple[int, int]] = {}
    for i, names in enumerate(_names(before, called)):
        for n, aliases in enumerate(names):
            for name in aliases:
                places.setdefault(name, (i, n))
    find = lambda aliases: next((places[name] for name in aliases if name in places), None)  # noqa: E731
    return [list(map(find, names)) for names in _names(fresh, called)]


def _shapes(model: PyTree) -> list[tuple[Any, Any]]:
    """For each leaf the shape and type of its parameter in one layer."""
    return [(a.shape[1:] if stacked else a.shape, a.dtype) for stacked, a in _leaves(model)]


def _leaves(model: PyTree) -> list[tuple[bool, Any]]:
    """The leaves, and whether each has a leading axis for the steps of a scan over layers."""
    leaves, layers = jax.tree_util.tree_leaves_with_path(model), isinstance(model, Transformer)
    return [(layers and step_name(path[0]) == "blocks", a) for path, a in leaves]


def _turns(model: PyTree) -> list[Array]:
    """The leaves, all with a leading axis: the steps of the scan, or 1."""
    return [a if stacked else a[None] for stacked, a in _leaves(model)]


def _grouped(names: Iterable[tuple]) -> tuple[str, ...]:
    """The parts of schemes that these parameters belong to, each with its layers: "kerple (layer 1, layer 3)"."""
    layers_by_part: dict[str, dict[str, None]] = {}
    for kind, n, *rest in names:
        if kind == "weight":
            layers_by_part[".".join(map(str, rest))] = {}
        else:
            layers_by_part.setdefault(rest[0], {})["shared" if kind == "shared" else f"layer {n + 1}"] = None
    return tuple(f"{part} ({', '.join(where)})" if where else part for part, where in layers_by_part.items())


def _class(scheme: Any) -> str:
    """Return the name of a part of a scheme, whatever its settings."""
    return getattr(scheme, "name", type(scheme).__name__)


def _names(model: PyTree, called: Callable[[Any], str] = spec) -> list[list[list[tuple]]]:
    """For each leaf and scan step, names of the parameter that depend neither on the period nor on other schemes.

    A parameter that layers share has several names: one for each layer that uses it, then one for "any". Models
    other than Transformers have one name for each, its path.
    """
    paths = [[step_name(key) for key in path] for path, _ in jax.tree_util.tree_leaves_with_path(model)]
    if not isinstance(model, Transformer):
        return [[[("weight", None, *path)]] for path in paths]
    return [_named(model, path, called) for path in paths]


def _named(model: Transformer, path: list[Any], called: Callable[[Any], str]) -> list[list[tuple]]:
    period, depth = len(model.layers), model.shape.depth
    match path:
        case ["blocks", i, "attention", "position", _, *rest]:
            return [[("head", n, *_part(model.layers[i], rest, called))] for n in range(i, depth, period)]
        case ["blocks", i, *rest]:
            return [[("weight", n, *rest)] for n in range(i, depth, period)]
        case ["tied", _, text, *rest]:
            users = {"input": model.input} | {n: model.layers[n % period] for n in range(depth)}
            users = {user: s for user, s in users.items() if s is not None and tied_name(s) == text}
            part = _part(next(iter(users.values())), rest, called)
            return [[("shared", user, *part) for user in (*users, "any")]]
    return [[("weight", None, *path)]]


def _part(scheme: Any, path: list[Any], called: Callable[[Any], str]) -> tuple:
    """A plain scheme within a sum, how many equal ones precede it, and the rest of a path to a parameter."""
    n, *rest = path if isinstance(normal_form(scheme).scheme, SEVERAL) else (0, *path)
    names = [called(s) for s in parts(scheme)]
    return names[n], names[:n].count(names[n]), *rest


def step_name(key: Any) -> Any:
    """The name, key or index that a step of a tree path holds."""
    return next(getattr(key, kind) for kind in ("name", "key", "idx") if hasattr(key, kind))
