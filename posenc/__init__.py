"""posenc: positional encodings for Transformers, compared honestly and fast.

The public surface, loaded at its first use: importing posenc does not import jax.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.3.0"

if TYPE_CHECKING:
    from posenc.attention.attend import attend as attend
    from posenc.attention.attend import embed as embed
    from posenc.attention.cache import Cache as Cache
    from posenc.attention.rotate import rotate as rotate
    from posenc.catalog.schemes import cite as cite
    from posenc.catalog.schemes import describe as describe
    from posenc.contract import check as check
    from posenc.coordinates import place as place
    from posenc.core.access import acts_on_input as acts_on_input
    from posenc.core.access import input_scheme as input_scheme
    from posenc.core.access import layer as layer
    from posenc.core.masks import Prefix as Prefix
    from posenc.core.masks import Window as Window
    from posenc.core.parameters import init as init
    from posenc.core.parameters import split as split
    from posenc.core.scheme import At as At
    from posenc.core.scheme import Dims as Dims
    from posenc.core.scheme import Scheme as Scheme
    from posenc.core.scheme import Tile as Tile
    from posenc.lab.results.table import load as load
    from posenc.naming import bind as bind
    from posenc.naming import names as names
    from posenc.naming import parse as parse
    from posenc.naming import spec as spec

_HOMES = {
    "attention.attend": ("attend", "embed"),
    "attention.cache": ("Cache",),
    "attention.rotate": ("rotate",),
    "catalog.schemes": ("cite", "describe"),
    "contract": ("check",),
    "coordinates": ("place",),
    "core.access": ("acts_on_input", "input_scheme", "layer"),
    "core.masks": ("Prefix", "Window"),
    "core.parameters": ("init", "split"),
    "core.scheme": ("At", "Dims", "Scheme", "Tile"),
    "lab.results.table": ("load",),
    "naming": ("bind", "names", "parse", "spec"),
}
__all__ = sorted(name for public in _HOMES.values() for name in public)
_MODULES = ("equinox", "huggingface", "linen", "models", "nnx", "sharding", "tasks")


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f"posenc.{name}")
    for home, public in _HOMES.items():
        if name in public:
            return getattr(importlib.import_module(f"posenc.{home}"), name)
    raise AttributeError(f"posenc has no {name!r}; it has {', '.join((*__all__, *_MODULES))}.")


def __dir__():
    return [*__all__, *_MODULES, "__version__"]
