"""Parameters of a scheme: plain dicts that the caller owns, made here and split into what layers share and own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from posenc.core.compose import SEVERAL, Composed, Shares, normal_form, parts
from posenc.core.scheme import Dims, Scheme, check_dims
from posenc.numerics.sizes import check_memory


def init(scheme: Any, key: PRNGKeyArray, dims: Dims) -> Any:
    """All parameters of one layer: `{"layer": {...}, "heads": {...}}`, the latter with a leading head axis.

    Several schemes have a tuple of those, one for each. Raises `ValueError` where settings are still open:
    `posenc.bind`, and where no memory holds them, and `TypeError` for anything but a scheme, one random key and a
    `posenc.Dims`.
    """
    form = normal_form(scheme)
    scheme = bound(form.scheme)
    check_dims(dims)
    check_key("key", key)
    shapes = jax.eval_shape(lambda key: init_parameters(form, key, dims), key)
    names = " + ".join(repr(getattr(s, "name", type(s).__name__)) for s in parts(scheme))
    what = f"The parameters of {names}, with what drawing them needs,"
    check_memory(what, shapes, "longest, the size of tables, or its settings", copies=4)
    return init_parameters(form, key, dims)


def init_parameters(form: Composed, key: PRNGKeyArray, dims: Dims) -> Any:
    """Return the parameters, without the checks of `init`."""
    scheme = form.scheme
    if isinstance(scheme, SEVERAL):
        sizes = scheme.dims_of_parts(dims) if isinstance(scheme, Shares) else (dims,) * len(scheme.parts)
        each = zip(scheme.parts, _keys(form, key), sizes, strict=True)
        return tuple(init_parameters(normal_form(s), k, size) for s, k, size in each)
    for_layer, for_heads = jax.random.split(key)
    heads = jax.vmap(lambda k: scheme.init_head(k, dims))(jax.random.split(for_heads, dims.heads))
    return {"layer": scheme.init(for_layer, dims), "heads": heads}


def _keys(form: Composed, key: PRNGKeyArray) -> list[PRNGKeyArray]:
    """A key for each part of a sum. Parts that share a draw of positions split one: so it was when that was a sum of
    its own within the sum, and the same seed still gives the same parameters."""
    draws = form.draws
    outer = [key] if len(draws) == 1 else jax.random.split(key, len(draws))
    pairs = zip(outer, (len(schemes) for _, schemes in draws), strict=True)
    return [part_key for k, count in pairs for part_key in ([k] if count == 1 else jax.random.split(k, count))]


def check_key(name: str, key: Any) -> None:
    """Refuse what is not one random key."""
    if not _is_key(key):
        shape = getattr(key, "shape", None)
        shown = repr(key) if isinstance(key, int) else f"of type {type(key).__name__}"
        shown += "" if shape is None else f" and of the shape {shape}"
        raise TypeError(f"{name} is {shown}; give one random key, such as jax.random.key(0).")


def _is_key(key: Any) -> bool:
    """Tell whether this is one random key, of the new kind or the old."""
    dtype, shape = getattr(key, "dtype", None), getattr(key, "shape", None)
    if dtype is None or shape is None:
        return False
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return shape == ()
    return dtype == "uint32" and shape == jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0))).shape


def bound(scheme: Scheme) -> Scheme:
    """The scheme itself, if no setting is left open."""
    for s in parts(scheme):
        left = [f.name for f in dataclasses.fields(s) if getattr(s, f.name) is None]
        if left:
            name = getattr(s, "name", type(s).__name__)
            raise ValueError(f"{name!r} leaves {', '.join(left)} open; call posenc.bind(scheme, dims) first.")
    return scheme


GROUPS = ("layer", "heads")
STRANGE = "The parameters are not those of this scheme; make them with posenc.init(scheme, key, dims)."


def complete(scheme: Scheme, params: Any) -> Any:
    """Parameters as plain dicts, whatever mapping held them, with every group: one that is missing is empty.

    Files of named arrays drop empty dicts, so `None`, `{}` and `{"layer": {}}` are the parameters of a scheme that
    learns nothing. What is not of this form stays as it is, for `posenc.core.shapes.check_params` to refuse.
    """
    return _with_groups(scheme, _plain(params))


def _plain(params: Any) -> Any:
    if isinstance(params, Mapping):
        return {name: _plain(value) for name, value in params.items()}
    return tuple(_plain(p) for p in params) if type(params) is tuple else params


def _with_groups(scheme: Scheme, params: Any) -> Any:
    params = {} if params is None else params
    if isinstance(scheme, SEVERAL):
        each = ({},) * len(scheme.parts) if params == {} else params
        if not isinstance(each, tuple) or len(each) != len(scheme.parts):
            return params
        return tuple(_with_groups(s, p) for s, p in zip(scheme.parts, each, strict=True))
    if not isinstance(params, dict) or not params.keys() <= set(GROUPS):
        return params
    return {group: {} if params.get(group) is None else params[group] for group in GROUPS}


def split(scheme: Any, params: Any) -> tuple[Any, Any]:
    """The parameters that all layers share, and those that each layer owns; both of the shape that `init` gives.

    Raises `TypeError` for anything but a scheme and parameters in the groups that `init` gives.
    """
    scheme = normal_form(scheme).scheme
    params = complete(scheme, params)
    if isinstance(scheme, SEVERAL):
        if not isinstance(params, tuple) or len(params) != len(scheme.parts):
            raise TypeError(STRANGE)
        pairs = [split(s, p) for s, p in zip(scheme.parts, params, strict=True)]
        return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    if not isinstance(params, dict) or not all(isinstance(params.get(group), dict) for group in GROUPS):
        raise TypeError(STRANGE)

    def keep(shared: bool):
        return {g: {n: x for n, x in ps.items() if (n in scheme.tied) == shared} for g, ps in params.items()}

    return keep(True), keep(False)


def join(tied: Any, own: Any) -> Any:
    """One layer's parameters from what all layers share and what it owns; the inverse of `split`.

    Raises `ValueError` for a parameter that both hold and `TypeError` for what `split` does not give.
    """
    if isinstance(tied, tuple) and isinstance(own, tuple) and len(tied) == len(own):
        return tuple(join(a, b) for a, b in zip(tied, own, strict=True))
    if not all(isinstance(p, Mapping) and p.keys() == set(GROUPS) for p in (tied, own)):
        raise TypeError("Shared parameters and a layer's own do not fit together; part them with posenc.split.")
    if twice := sorted(name for group in tied for name in tied[group].keys() & own[group].keys()):
        raise ValueError(f"{twice[0]!r} is among the layer's own parameters and the shared ones; give it once.")
    return {group: {**cast(Mapping, tied)[group], **cast(Mapping, own)[group]} for group in GROUPS}
