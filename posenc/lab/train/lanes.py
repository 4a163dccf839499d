"""Arrangement of trials: the one module that decides how the lanes of a program run.

On a CPU each of several host devices runs its lanes one after another (`lax.map`). There `vmap` is slower, takes 20
times the memory, and is not bitwise the trial alone. On a GPU or TPU launches are the cost, so lanes are vmapped. The
arrangement is provenance, not identity. On a CPU neither the neighbours of a trial nor their number change a bit of it.
The number of host devices may, since it decides how a product is cut among threads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import PyTree

AXIS = "lanes"


@dataclasses.dataclass(frozen=True)
class Arrangement:
    """Arrangement of lanes: "map" or "vmap" inside each device."""

    inside: str
    devices: int

    def __str__(self) -> str:
        return f"{self.inside} on {self.devices} device{'s' if self.devices > 1 else ''}"

    def padded(self, trials: int) -> int:
        """Return how many lanes `trials` trials take: a multiple of the devices, and under vmap never a lone one in
        each."""
        each = max(-(-trials // self.devices), 2 if self.inside == "vmap" else 1)
        return each * self.devices


def arrangement(requested: str | None = None) -> Arrangement:
    """Return the fastest arrangement for the devices at hand, or a requested one, such as "map", "vmap", "map:1" or
    "vmap:4"."""
    available = jax.device_count()
    inside = "map" if jax.default_backend() == "cpu" else "vmap"
    if requested is None:
        return Arrangement(inside, available)
    word, _, number = requested.partition(":")
    if word not in ("map", "vmap") or (number and not number.isdigit()):
        raise ValueError(f"lanes are {requested!r}; write map or vmap, with a number of devices if need be: vmap:4.")
    devices = int(number) if number else available
    if not 1 <= devices <= available:
        raise ValueError(f"lanes ask for {devices} devices, but {available} are here; ask for 1 to {available}.")
    return Arrangement(word, devices)


def lanes(f: Callable, arrangement: Arrangement, shared: int) -> Callable:
    """`f` of one trial, over a leading axis of trials; its last `shared` arguments are the same for all.

    The results do not depend on `arrangement`, beyond rounding.
    """

    def inner(*args: PyTree) -> PyTree:
        own, common = args[: len(args) - shared], args[len(args) - shared :]
        if arrangement.inside == "vmap":
            return jax.vmap(lambda *own: f(*own, *common))(*own)
        return jax.lax.map(lambda own: f(*own, *common), own)

    if arrangement.devices == 1:
        return inner

    def spread(*args: PyTree) -> PyTree:
        mesh = _mesh(arrangement)
        specs = (P(AXIS),) * (len(args) - shared) + (P(),) * shared
        return jax.shard_map(inner, mesh=mesh, in_specs=specs, out_specs=P(AXIS), check_vma=False)(*args)

    return spread


def placed(lanes: PyTree, arrangement: Arrangement) -> PyTree:
    """Arrays of lanes on the devices where programs over lanes leave theirs, so that these are not compiled again."""
    where = sharding(arrangement)
    return jax.tree.map(jnp.asarray, lanes) if where is None else jax.device_put(lanes, where)


def sharding(arrangement: Arrangement, size: int = 1) -> NamedSharding | None:
    """Return the sharding of an array of `size` numbers from programs over lanes. An empty one lies on all devices. It
    is None on a single device."""
    return None if arrangement.devices == 1 else NamedSharding(_mesh(arrangement), P(AXIS) if size else P())


def _mesh(arrangement: Arrangement) -> Any:
    return jax.make_mesh((arrangement.devices,), (AXIS,), axis_types=(jax.sharding.AxisType.Auto,))


def stack(trials: list[Any], arrangement: Arrangement) -> PyTree:
    """Return one array per field over all trials, padded with copies of the first to the number of lanes of
    `arrangement`."""
    padded = trials + [trials[0]] * (arrangement.padded(len(trials)) - len(trials))
    return jax.tree.map(lambda *values: np.asarray(values), *padded)
