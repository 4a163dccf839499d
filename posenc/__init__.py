"""posenc: positional encodings for Transformers, compared honestly and fast.

The public surface, loaded when first asked for: importing posenc imports no jax.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from posenc.attention import attend as attend
    from posenc.attention import embed as embed
    from posenc.cache import Cache as Cache
    from posenc.catalog import cite as cite
    from posenc.catalog import describe as describe
    from posenc.contract import check as check
    from posenc.coordinates import place as place
    from posenc.lab.results import load as load
    from posenc.masks import Window as Window
    from posenc.naming import bind as bind
    from posenc.naming import names as names
    from posenc.naming import parse as parse
    from posenc.naming import spec as spec
    from posenc.parameters import init as init
    from posenc.parameters import split as split
    from posenc.scheme import At as At
    from posenc.scheme import Dims as Dims
    from posenc.scheme import Scheme as Scheme
    from posenc.scheme import Tile as Tile

_HOMES = {
    "attention": ("attend", "embed"),
    "cache": ("Cache",),
    "catalog": ("cite", "describe"),
    "contract": ("check",),
    "coordinates": ("place",),
    "lab.results": ("load",),
    "masks": ("Window",),
    "naming": ("bind", "names", "parse", "spec"),
    "parameters": ("init", "split"),
    "scheme": ("At", "Dims", "Scheme", "Tile"),
}
__all__ = sorted(name for public in _HOMES.values() for name in public)


def __getattr__(name: str):
    for home, public in _HOMES.items():
        if name in public:
            return getattr(importlib.import_module(f"posenc.{home}"), name)
    raise AttributeError(f"posenc has no {name!r}; it has {', '.join(__all__)}.")


def __dir__():
    return [*__all__, "__version__"]
