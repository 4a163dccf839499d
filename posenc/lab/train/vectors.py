"""All parameters as two vectors, on which an optimiser does in a few operations what it else does array by array.

It saves a fifth of a step of a small model, and of the time to compile it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from posenc.lab.models.weights import decaying


class Vectors(NamedTuple):
    """The parameters of a model, those that weight decay acts on apart."""

    decaying: Any
    others: Any


class Packing(NamedTuple):
    """Location of a model's arrays in its vectors."""

    tree: Any
    shapes: tuple[jax.ShapeDtypeStruct, ...]
    decays: tuple[bool, ...]

    @classmethod
    def of(cls, model: PyTree) -> Packing:
        """That of a model."""
        leaves, tree = jax.tree.flatten(model)
        shapes = (jax.ShapeDtypeStruct(a.shape, a.dtype) for a in leaves)
        return cls(tree, tuple(shapes), tuple(jax.tree.leaves(decaying(model))))

    def pack(self, model: PyTree) -> Vectors:
        """The vectors of a model, or of what has its form, such as a gradient."""
        leaves = self.tree.flatten_up_to(model)
        parts = (
            [a.ravel() for a, own in zip(leaves, self.decays, strict=True) if own == which] for which in (True, False)
        )
        return Vectors(*(jnp.concatenate(part) if part else jnp.zeros(0) for part in parts))

    def unpack(self, vectors: Vectors) -> PyTree:
        """The model of these vectors."""
        at, leaves = {True: 0, False: 0}, []
        for shape, decays in zip(self.shapes, self.decays, strict=True):
            vector, start = vectors.decaying if decays else vectors.others, at[decays]
            at[decays] += shape.size
            leaves.append(jax.lax.slice_in_dim(vector, start, at[decays]).reshape(shape.shape))
        return self.tree.unflatten(leaves)

    def pack_all(self, state: PyTree) -> PyTree:
        """A state with all that has the form of the model as vectors."""
        has_this_form = lambda a: jax.tree.structure(a) == self.tree  # noqa: E731
        return jax.tree.map(lambda a: self.pack(a) if has_this_form(a) else a, state, is_leaf=has_this_form)

    def unpack_all(self, state: PyTree) -> PyTree:
        """The state that was packed."""
        packed = lambda a: isinstance(a, Vectors)  # noqa: E731
        return jax.tree.map(lambda a: self.unpack(a) if packed(a) else a, state, is_leaf=packed)
