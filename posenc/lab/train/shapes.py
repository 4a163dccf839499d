"""The shape of a program: the facts that a step depends on, so that tasks of one shape share one compiled program.

Tasks differ in their symbols and classes, so both are padded to a few numbers. Further symbols never occur, and further
classes have no probability and no gradient. Tasks also differ in how many tokens their longest example has. This is
left out of the shape if the scheme's parameters do not depend on it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from posenc.core.compose import layers, parts
from posenc.core.parameters import init
from posenc.core.scheme import Dims
from posenc.lab.models.interface import Inputs, Shape, build, coordinate_inputs
from posenc.lab.tasks.examples import bucket_classes
from posenc.lab.train.batches import Batching
from posenc.naming import bind

NEUTRAL = 128
"""The trained and the longest length in the shape of a program whose scheme depends on neither."""


class StepShape(NamedTuple):
    """Facts that decide the program of a step; equal ones are compiled once."""

    scheme: Any
    shape: Shape
    """That of the model, its symbols and classes padded."""
    schedule: str
    batches: tuple[tuple[tuple[int, ...], ...], ...]
    """The shapes of a batch's arrays, for each padded size."""
    coordinates: tuple[str, ...]
    """The coordinates of the task that the scheme reads; a batch holds no others."""

    @property
    def model(self) -> tuple[Any, Shape]:
        """Return the facts that decide the program of the initial values."""
        return self.scheme, self.shape


@functools.lru_cache(maxsize=2**10)  # a plan asks for each run's several times, and each is traced
def step_shape(scheme: Any, shape: Shape, schedule: str, batching: Batching) -> StepShape:
    """The shape of the program that trains a model of this `shape` on such batches."""
    padded = shape._replace(
        dims=_without_lengths(scheme, shape.dims),
        vocab=bucket_classes(shape.vocab),
        classes=bucket_classes(shape.classes),
    )
    batches, most = batching.shapes(sampled=places(scheme)), shape.dims.table
    names = _read(bind(scheme, shape.dims), batches[-1].inputs)
    within = lambda a: a.shape if endless(scheme) else (*a.shape[:-1], min(a.shape[-1], most))  # noqa: E731
    sizes = tuple(tuple(map(within, jax.tree.leaves(batch.reading(names)))) for batch in batches)
    return StepShape(scheme, padded, schedule, sizes, names)


def known_classes(logits: Float[Array, "*rows classes"], classes: Any) -> Bool[Array, "*rows classes"]:
    """Return a mask of the classes of a model that the task has, which are the first ones."""
    return jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1) < classes


def places(scheme: Any) -> bool:
    """Tell whether any layer has coordinates, which may draw positions."""
    return any(layer.coordinates for layer in layers(scheme))


def endless(scheme: Any) -> bool:
    """Tell whether a scheme takes sequences of any length, so that they may be padded to more than a run's longest.

    A scheme with a table of positions does not, nor do coordinates that draw from a range.
    """
    return not any(
        coordinates or part.overrides("check_positions")
        for layer in layers(scheme)
        for coordinates, schemes in layer.draws
        for part in schemes
    )


def true_model(model: PyTree, scheme: Any, shape: Shape) -> PyTree:
    """The model without further symbols and classes; its arrays may have more axes before, such as one of trials."""
    target = jax.eval_shape(lambda: build(scheme, shape, jax.random.key(0)))
    leaves, tree = jax.tree.flatten(target)
    cut = lambda a, to: a[(..., *map(slice, to.shape))] if to.ndim else a  # noqa: E731
    return jax.tree.unflatten(tree, map(cut, jax.tree.leaves(model), leaves))


def _without_lengths(scheme: Any, dims: Dims) -> Dims:
    """Return the sizes with neutral lengths, if the scheme is bound and drawn equally under these."""
    neutral = dataclasses.replace(dims, trained=NEUTRAL, longest=NEUTRAL)
    if bind(scheme, dims) != bind(scheme, neutral):
        return dims
    return neutral if _initialisation(scheme, dims) == _initialisation(scheme, neutral) else dims


def _initialisation(scheme: Any, dims: Dims) -> tuple[str, list[Any]]:
    """How the initial parameters of a scheme are computed."""
    learned = [
        part for layer in layers(bind(scheme, dims)) for part in parts(layer) if part.overrides("init", "init_head")
    ]
    traced = jax.make_jaxpr(lambda: [init(part, jax.random.key(0), dims) for part in learned])()
    return str(traced), [a.tolist() for a in traced.consts]


class _Heard(Mapping):
    """Mapping given to coordinates; it keeps the names that they ask for."""

    def __init__(self, coordinates: Mapping[str, Any]):
        self._coordinates, self.names = coordinates, set[str]()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return self._coordinates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._coordinates)

    def __len__(self) -> int:
        return len(self._coordinates)


def _read(scheme: Any, inputs: Inputs) -> tuple[str, ...]:
    """Return the coordinates of the task that the scheme reads."""
    all_coordinates = [
        coordinates for layer in layers(scheme) for coordinates, _ in layer.draws if coordinates is not None
    ]
    names = set[str]()

    def place(inputs: Inputs) -> None:
        for coordinates in all_coordinates:
            heard = _Heard(coordinate_inputs(inputs))
            for train in (True, False):
                coordinates(jax.random.key(0), heard, train)
            names.update(heard.names)

    if inputs.coords:
        jax.eval_shape(place, inputs)
    return tuple(name for name in sorted(inputs.coords) if name in names)
