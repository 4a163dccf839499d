"""Weights on which weight decay acts: a model labels its weight matrices where it makes them.

`Weight` is a matrix that decays. Biases, norms and stems are plain `nnx.Param`. The parameters of schemes are
`Positional` and do not decay, apart from those of an attention's score and those of `EXCEPTIONS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import jax
from flax import nnx
from jaxtyping import PyTree

from posenc.core.compose import SEVERAL, normal_form
from posenc.lab.models import attentions

EXCEPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "cope": ("embedding",),
        "deberta": ("query",),
        "path": ("up", "down"),
        "selective_rope": ("up", "down"),
        "tupe": ("query",),
    }
)
"""Positional parameters that decay, by scheme. These positional parameters decayed when the names of leaves decided;
kept so that trials keep their numbers. Removing one changes numbers, so it needs a new revision of training."""


class Weight(nnx.Param):
    """A matrix that weight decay acts on."""


class Positional(nnx.Param):
    """Parameters of schemes. `decays` has a bool for each leaf, in the order of `jax.tree.leaves`."""


def positional(scheme: Any, params: PyTree) -> Positional:
    """Parameters of one scheme, labelled."""
    return Positional(params, decays=tuple(jax.tree.leaves(_marks(scheme, params))))


def shared_positional(schemes: Mapping[str, Any], params: Mapping[str, PyTree]) -> Positional:
    """Parameters that layers share, by the name of their scheme, labelled."""
    marks = {name: _marks(schemes[name], p) for name, p in params.items()}
    return Positional(params, decays=tuple(jax.tree.leaves(marks)))


def decaying(model: PyTree) -> PyTree:
    """A tree like the model, True at each array that weight decay acts on."""
    return jax.tree.map(_labels, model, is_leaf=lambda node: isinstance(node, nnx.Variable))


def _labels(node: Any) -> Any:
    leaves, tree = jax.tree.flatten(node)
    if isinstance(node, Positional):
        return tree.unflatten(node.get_metadata("decays"))
    return tree.unflatten([isinstance(node, Weight)] * len(leaves))


def _marks(scheme: Any, params: PyTree) -> PyTree:
    """A tree like the parameters of a scheme, True where weight decay acts."""
    plain = normal_form(scheme).scheme
    if isinstance(plain, SEVERAL):
        return tuple(_marks(s, p) for s, p in zip(plain.parts, params, strict=True))
    additive = isinstance(plain, attentions.Additive)
    names = attentions.WEIGHTS if additive else EXCEPTIONS.get(getattr(plain, "name", None), ())
    mark = lambda name, values: jax.tree.map(lambda _: name in names, values)  # noqa: E731
    return {group: {name: mark(name, a) for name, a in arrays.items()} for group, arrays in params.items()}
