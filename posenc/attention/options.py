"""Options of one call beside its tokens: the mask, and how scores become weights. Each is checked, and in its final
type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from posenc.attention.kernels import Pairs, Weighting
from posenc.attention.kernels.dropout import seeds
from posenc.attention.kernels.form import CapOf
from posenc.core.compose import Composed, makes_products, parts
from posenc.core.masks import Mask, Window, split
from posenc.core.parameters import check_key
from posenc.core.scheme import Scheme
from posenc.core.shapes import label
from posenc.numerics.sizes import FAR

SHARE, FACTOR = "a share of the weights, at least 0 and below 1", "a finite number above 0, or left out"


class Options(NamedTuple):
    """The arguments of `posenc.attend` of these names."""

    mask: Mask = "causal"
    scale: float | None = None
    cap: float | None = None
    sinks: Any = None
    dropout: float = 0.0
    dropout_key: Any = None
    cap_of: CapOf = "sum"

    def weighting(self, scheme: Scheme, q: Any) -> tuple[Weighting, Any]:
        """How scores become weights, and the sinks. `q` is `[..., Q, H, d]`."""
        above_zero = lambda n: math.isfinite(n) and n > 0  # noqa: E731
        scale = scheme.scale(q.shape[-1]) if self.scale is None else _number("scale", self.scale, FACTOR, above_zero)
        cap = None if self.cap is None else _number("cap", self.cap, FACTOR, above_zero)
        if self.cap_of not in get_args(CapOf):
            raise ValueError(f"cap_of is {self.cap_of!r}; it is one of {', '.join(map(repr, get_args(CapOf)))}.")
        if cap is None and self.cap_of != "sum":
            raise ValueError(
                f"cap_of={self.cap_of!r} says what a cap bounds, and there is none; pass cap, or leave it out."
            )
        if cap is not None and self.cap_of == "score" and (own := [s for s in parts(scheme) if makes_products(s)]):
            raise ValueError(
                f"{label(own[0])} makes products of queries and keys of its own, which cap_of='score' would not bound;"
                " leave cap_of out."
            )
        rate = _number("dropout", self.dropout, SHARE, lambda n: 0 <= n < 1)
        if rate and self.dropout_key is None:
            raise ValueError(f"dropout is {rate}, so it needs dropout_key, such as jax.random.key(0); pass one.")
        return Weighting(scale, cap, rate, self.cap_of), _sinks(scheme, self.sinks, q.shape[-2])

    def pairs(self, form: Composed, q: Any, keys: int, packed: bool) -> tuple[Window, Pairs]:
        """The window of the mask and of the scheme, and what else was given about pairs of tokens.

        `packed` says that queries and keys are two sequences, each with segments.
        """
        mask, prefix, allowed = split(self.mask)
        if allowed is self.mask and allowed is not None:  # an array alone
            if form.scheme.limits.get("bidirectional"):
                mask = Window(None, 0)
            elif form.window is not None:
                raise ValueError(
                    f"window({form.window}) lies before a token or around it, by whether the mask is causal, which an"
                    " array does not say; pass mask=('causal', array) or mask=('full', array)."
                )
        window, lead = form.narrow(mask), q.shape[:-3]
        if prefix is not None and (why := form.scheme.limits.get("bidirectional")):
            raise ValueError(f"{label(form.scheme)} is causal only: {why}; a prefix sees itself whole: leave it out.")
        if packed and (prefix is not None or window.sinks):
            raise ValueError(
                "A prefix and sinks are counted from where a document began, which is unknown where queries and keys"
                " are two sequences with segments; pass one sequence, or leave segments out."
            )
        seed = None
        if self.dropout and self.dropout_key is not None:
            check_key("dropout_key", self.dropout_key)
            seed = seeds(self.dropout_key, math.prod(lead)).reshape(*lead, 2)
        return window, Pairs(_prefix(prefix, lead), _allowed(allowed, (*lead, q.shape[-3], keys)), seed)


def _number(name: str, value: Any, what: str, fits: Callable[[float], bool]) -> float:
    """A number that is known before tracing."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(f"{name} is traced; it is {what}, fixed before the program is compiled.")
    kind = np.asarray(value).dtype
    real = jnp.issubdtype(kind, jnp.floating) or jnp.issubdtype(kind, jnp.integer)
    if np.ndim(value) or not real:
        raise TypeError(f"{name} is {value!r}; it is {what}.")
    if not fits(float(value)):
        raise ValueError(f"{name} is {value!r}; it is {what}.")
    return float(value)


def _sinks(scheme: Scheme, sinks: Any, heads: int) -> Any:
    """A score for each head."""
    if sinks is None:
        return None
    if scheme.overrides("normalize"):
        raise ValueError(f"{label(scheme)} has no softmax for sinks to stand in; leave them out.")
    if not hasattr(sinks, "dtype") or not jnp.issubdtype(sinks.dtype, jnp.floating):
        raise TypeError(f"sinks is of type {type(sinks).__name__}; it is floating numbers, one for each head.")
    if sinks.shape != (heads,):
        raise ValueError(f"sinks has the shape {sinks.shape}; it is {(heads,)}, a score for each head.")
    return jnp.asarray(sinks)


def _prefix(length: Any, lead: tuple[int, ...]) -> Any:
    """How long the prefix is, for all sequences or for each."""
    if length is None:
        return None
    a = length if isinstance(length, jax.Array) else np.asarray(length)
    if not jnp.issubdtype(a.dtype, jnp.integer):
        raise TypeError(f"The length of a prefix is {length!r}; it is a whole number, or an array of them.")
    if a.shape not in ((), lead):
        raise ValueError(f"The length of a prefix has the shape {a.shape}; it is one number, or {lead}, one for each.")
    if not isinstance(a, jax.core.Tracer) and a.size and a.min() < 0:
        raise ValueError(f"The length of a prefix is {a.min()}; it is at least 0.")
    if not isinstance(a, jax.core.Tracer) and a.size and a.max() >= FAR:
        raise ValueError(f"The length of a prefix is {a.max()}; it is below {FAR}.")
    return jnp.asarray(a, jnp.int32)


def _allowed(mask: Any, shape: tuple[int, ...]) -> Any:
    """Return the keys that each query may see, for all sequences or for each."""
    if mask is None:
        return None
    if mask.dtype != bool:
        raise TypeError(f"mask is an array of {mask.dtype}; it holds booleans, True where a query sees a key.")
    if mask.shape not in (shape[-2:], shape):
        raise ValueError(
            f"mask has the shape {mask.shape}; it is {shape[-2:]} or {shape}, queries and keys, for all heads alike."
        )
    return jnp.asarray(mask)
