"""Continued training: parameters trained under one scheme go on under another, in a Transformer of the same sizes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from posenc.core.compose import Chain, normal_form, parts
from posenc.lab.models.ends import tied_name
from posenc.lab.models.transformer import Transformer
from posenc.naming import spec


def carried(before: PyTree, fresh: PyTree) -> PyTree:
    """The tree before, such as a model and its optimiser moments, in the form of a fresh one under another scheme.

    Layers keep their weights whatever the period. Of positional parameters a layer keeps those of equal parts of its
    scheme, in order; the others stay as they are in `fresh`, and `fresh_parameters` names them.
    """
    whole = lambda a: isinstance(a, Transformer)  # noqa: E731
    return jax.tree.map(lambda a, b: _continued(a, b) if whole(b) else a, before, fresh, is_leaf=whole)


def fresh_parameters(before: Transformer, fresh: Transformer) -> tuple[str, ...]:
    """The positional parameters that `carried` leaves at their initial values: "kerple (layer 1, layer 3)".

    Raises `ValueError` if any other parameter would stay at its initial value.
    """
    known = {name for names in _names(before) for every in names for name in every}
    found: dict[str, dict[str, None]] = {}
    for kind, n, *rest in (every[0] for names in _names(fresh) for every in names if known.isdisjoint(every)):
        if kind == "weight":
            raise ValueError(
                f"The model before has other sizes: it has no parameter {'.'.join(map(str, rest))}; continue with the"
                " same depth, width and model."
            )
        found.setdefault(rest[0], {})["shared" if kind == "shared" else f"layer {n + 1}"] = None
    return tuple(f"{part} ({', '.join(where)})" for part, where in found.items())


def _continued(before: Transformer, fresh: Transformer) -> Transformer:
    fresh_parameters(before, fresh)  # raises where sizes differ
    known: dict[tuple, Array] = {}
    for names, a in zip(_names(before), _turns(before), strict=True):
        for every, one in zip(names, a, strict=True):
            known = dict.fromkeys(every, one) | known  # where several match a name, the first
    made = []
    for names, a in zip(_names(fresh), _turns(fresh), strict=True):
        kept = [next((known[name] for name in every if name in known), a[n]) for n, every in enumerate(names)]
        made.append(jnp.stack(kept))
    whole, tree = jax.tree.flatten(fresh)
    return jax.tree.unflatten(tree, [a.reshape(b.shape) for a, b in zip(made, whole, strict=True)])


def _turns(model: Transformer) -> list[Array]:
    """The leaves, all with a leading axis: the steps of the scan, or 1."""
    found = jax.tree_util.tree_leaves_with_path(model)
    return [a if step_name(path[0]) == "blocks" else a[None] for path, a in found]


def _names(model: Transformer) -> list[list[list[tuple]]]:
    """For each leaf and scan step, names of the parameter that depend neither on the period nor on other schemes.

    A parameter that layers share has several names: one for each layer that uses it, then one for "any".
    """
    return [_named(model, [step_name(key) for key in path]) for path, _ in jax.tree_util.tree_leaves_with_path(model)]


def _named(model: Transformer, path: list[Any]) -> list[list[tuple]]:
    period, depth = len(model.layers), model.shape.depth
    match path:
        case ["blocks", i, "attention", "position", _, *rest]:
            return [[("head", n, *_part(model.layers[i], rest))] for n in range(i, depth, period)]
        case ["blocks", i, *rest]:
            return [[("weight", n, *rest)] for n in range(i, depth, period)]
        case ["tied", _, text, *rest]:
            users = {"input": model.input} | {n: model.layers[n % period] for n in range(depth)}
            users = {user: s for user, s in users.items() if s is not None and tied_name(s) == text}
            part = _part(next(iter(users.values())), rest)
            return [[("shared", user, *part) for user in (*users, "any")]]
    return [[("weight", None, *path)]]


def _part(scheme: Any, path: list[Any]) -> tuple:
    """A plain scheme within a sum, how many equal ones precede it, and the rest of a path to a parameter."""
    n, *rest = path if isinstance(normal_form(scheme).scheme, Chain) else (0, *path)
    names = [spec(s) for s in parts(scheme)]
    return names[n], names[:n].count(names[n]), *rest


def step_name(key: Any) -> Any:
    """The name, key or index that a step of a tree path holds."""
    return next(getattr(key, kind) for kind in ("name", "key", "idx") if hasattr(key, kind))
