"""Parameters of a scheme: plain dicts that the caller owns, made here and parted into what layers share and own."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from posenc.compose import Chain, bare
from posenc.scheme import Dims, Scheme


def init(scheme: Any, key: PRNGKeyArray, dims: Dims) -> Any:
    """All parameters of one layer: `{"layer": {...}, "heads": {...}}`, the latter with a leading head axis.

    A chain has a tuple of those, one for each part. Raises `ValueError` where settings are still open: `posenc.bind`.
    """
    scheme = bound(bare(scheme))
    if isinstance(scheme, Chain):
        return tuple(
            init(s, k, dims) for s, k in zip(scheme.parts, jax.random.split(key, len(scheme.parts)), strict=True)
        )
    ours, every = jax.random.split(key)
    heads = jax.vmap(lambda k: scheme.init_head(k, dims))(jax.random.split(every, dims.heads))
    return {"layer": scheme.init(ours, dims), "heads": heads}


def bound(scheme: Scheme) -> Scheme:
    """The scheme itself, if no setting is left open."""
    for s in scheme.parts if isinstance(scheme, Chain) else (scheme,):
        if isinstance(s, Chain):
            bound(s)
            continue
        left = [f.name for f in dataclasses.fields(s) if getattr(s, f.name) is None]
        if left:
            name = getattr(s, "name", type(s).__name__)
            raise ValueError(f"{name!r} leaves {', '.join(left)} open; call posenc.bind(scheme, dims) first.")
    return scheme


def split(scheme: Any, params: Any) -> tuple[Any, Any]:
    """The parameters that all layers share, and those that each layer owns; both of the shape that `init` gives."""
    scheme = bare(scheme)
    if isinstance(scheme, Chain):
        pairs = [split(s, p) for s, p in zip(scheme.parts, params, strict=True)]
        return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)

    def keep(shared: bool):
        return {g: {n: x for n, x in ps.items() if (n in scheme.tied) == shared} for g, ps in params.items()}

    return keep(True), keep(False)


def join(tied: Any, own: Any) -> Any:
    """One layer's parameters from what all layers share and what it owns; the inverse of `split`."""
    if isinstance(tied, tuple):
        return tuple(join(a, b) for a, b in zip(tied, own, strict=True))
    return {group: tied[group] | own[group] for group in tied}


def has_head_parameters(scheme: Scheme, dims: Dims) -> bool:
    """Whether any parameter belongs to a query head."""
    if isinstance(scheme, Chain):
        return any(has_head_parameters(bare(s), dims) for s in scheme.parts)
    return bool(jax.eval_shape(lambda k: scheme.init_head(k, dims), jax.random.key(0)))
