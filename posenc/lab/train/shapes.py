"""The shape of a program: what a step depends on, so that tasks of one shape are trained by one compiled program.

Tasks differ in their symbols and classes, so both are padded to a few numbers: further symbols never occur, and further
classes have no probability and no gradient. Tasks also differ in how many tokens their longest example has, which is
left out of the shape where the scheme's parameters do not depend on it.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from posenc.core.compose import layers, parts
from posenc.core.parameters import init
from posenc.core.scheme import Dims
from posenc.lab.models.interface import Shape, build
from posenc.lab.train.batches import Batching
from posenc.naming import bind

NEUTRAL = 128
"""The trained and the longest length in the shape of a program whose scheme depends on neither."""


class StepShape(NamedTuple):
    """What decides the program of a step; equal ones are compiled once."""

    scheme: Any
    shape: Shape
    """That of the model, its symbols and classes padded."""
    schedule: str
    batches: tuple[tuple[tuple[int, ...], ...], ...]
    """The shapes of a batch's arrays, for each padded size."""


def step_shape(scheme: Any, shape: Shape, schedule: str, batching: Batching) -> StepShape:
    """The shape of the program that trains a model of this `shape` on such batches."""
    padded = shape._replace(
        dims=_without_lengths(scheme, shape.dims), vocab=few(shape.vocab), classes=few(shape.classes)
    )
    sizes = tuple(tuple(a.shape for a in jax.tree.leaves(one)) for one in batching.shapes())
    return StepShape(scheme, padded, schedule, sizes)


def few(n: int) -> int:
    """One of few numbers, at least n: 16, 32, or a multiple of 64."""
    return next((m for m in (16, 32) if n <= m), -(-n // 64) * 64)


def known_classes(logits: Float[Array, "*rows classes"], classes: Any) -> Bool[Array, "*rows classes"]:
    """Which classes of a model the task has: the first so many."""
    return jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1) < classes


def true_model(model: PyTree, scheme: Any, shape: Shape) -> PyTree:
    """The model without further symbols and classes; its arrays may have more axes before, such as one of trials."""
    target = jax.eval_shape(lambda: build(scheme, shape, jax.random.key(0)))
    leaves, tree = jax.tree.flatten(target)
    cut = lambda a, to: a[(..., *map(slice, to.shape))] if to.ndim else a  # noqa: E731
    return jax.tree.unflatten(tree, map(cut, jax.tree.leaves(model), leaves))


def _without_lengths(scheme: Any, dims: Dims) -> Dims:
    """The sizes with neutral lengths, where the scheme is bound and drawn alike under these."""
    neutral = dataclasses.replace(dims, trained=NEUTRAL, longest=NEUTRAL)
    if bind(scheme, dims) != bind(scheme, neutral):
        return dims
    return neutral if _drawn(scheme, dims) == _drawn(scheme, neutral) else dims


def _drawn(scheme: Any, dims: Dims) -> tuple[str, list[Any]]:
    """How the initial parameters of a scheme are computed."""
    every = [one for layer in layers(bind(scheme, dims)) for one in parts(layer) if one.overrides("init", "init_head")]
    traced = jax.make_jaxpr(lambda: [init(one, jax.random.key(0), dims) for one in every])()
    return str(traced), [a.tolist() for a in traced.consts]
