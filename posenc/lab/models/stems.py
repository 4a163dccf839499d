"""Stems: layers that mix neighbouring tokens before the first layer, as controls that have order without positions.

A stem is part of the model, not a registered scheme: `Run(stem="conv(k=4)")`. Stems are small frozen dataclasses and
pure functions of one sequence. In a decoder they read earlier tokens only; they never read another document, and they
skip padding. Parameters are a plain dict that the model holds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, dataclass_transform

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from posenc.core.scheme import Dims, bias_dtype
from posenc.language import grammar
from posenc.language.registry import Registry, convert
from posenc.numerics.segment_scans import none, recent

STEMS = Registry("stem", "posenc.lab.models.stems")
NONE = "none"
Normal = Callable[[tuple[int, ...]], Array]


@dataclass_transform(frozen_default=True)
class Stem:
    """A function from `x [L, D]` to `[L, D]`. Subclasses are final frozen dataclasses, named by the class statement."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field]]
    name: ClassVar[str]
    revision: ClassVar[int] = 1

    def __init_subclass__(cls, name: str):
        if cls.__mro__[1] is not Stem:
            raise TypeError(f"{cls.__name__} extends {cls.__mro__[1].__name__}, but stems are final.")
        dataclasses.dataclass(frozen=True)(cls)
        jax.tree_util.register_static(cls)
        cls.name = name
        STEMS.add(name, cls)

    def __post_init__(self):
        convert(self)
        self.validate()

    def validate(self) -> None:
        """Raise `ValueError`, in one sentence, for settings without a meaning."""

    def init(self, normal: Normal, dims: Dims) -> dict[str, Array]:
        """Initial parameters; `normal(shape)` draws unit normal numbers."""
        return {}

    def __call__(
        self, p: dict[str, Array], x: Float[Array, "L D"], segment: Int[Array, " L"], causal: bool
    ) -> Float[Array, "L D"]:
        """The sequence, every token mixed with its neighbours."""
        raise TypeError(
            f"{type(self).__name__} must define __call__(p, x, segment, causal), which returns the new sequence."
        )


class Conv(Stem, name="conv"):
    """A short convolution of each feature, added to it (as Thinking Machines' Inkling, 2026, has on keys and values).

        y_t = x_t + Σ_{n<k} w_{k-1-n} ⊙ x_{t-n}

    Taps are in the order of the sequence. In a bidirectional model they are centred on the token, with the odd tap in
    the past. They start as N(0, 1/k).
    """

    k: int = 4

    def validate(self):
        if self.k < 1:
            raise ValueError(f"The setting 'k' of 'conv' must be at least 1, not {self.k}.")

    def init(self, normal, dims):
        return {"taps": normal((self.k, dims.width)) * self.k**-0.5}

    def __call__(self, p, x, segment, causal):
        ahead = 0 if causal else (self.k - 1) // 2
        window = before(x, segment, self.k - 1 - ahead)
        if ahead:
            after = before(x[::-1], segment[::-1], ahead)[::-1, ::-1]
            window = jnp.concatenate([window, after[:, 1:]], 1)
        return x + jnp.einsum("lkd,kd->ld", window, p["taps"].astype(x.dtype))


class Shift(Stem, name="shift"):
    """Each head's features mixed with those of the token before (token shift of RWKV; KV shift of GRAPE, 2025).

        y_t = α_t x_{t-1} + (1 - α_t) x_t,   α_t = σ(A x_t + a),  one for each head

    The token before the first of a document counts as zeros. The authors shift keys and values; here the input is
    shifted, in bidirectional models too. Initially A is N(0, 1/D) and a is 0, so both terms weigh about a half.
    """

    def init(self, normal, dims):
        return {"mix": normal((dims.width, dims.heads)) * dims.width**-0.5, "bias": jnp.zeros(dims.heads)}

    def __call__(self, p, x, segment, causal):
        return shifted(x, x, p["mix"], p["bias"], segment)


class GRU(Stem, name="gru"):
    """A gated recurrent unit added to its input (Cho et al., 2014; the form with the reset gate after the product).

        z, r = σ(W x_t + U h_{t-1} + b),   n = tanh(W x_t + b + r ⊙ (U h_{t-1} + c)),   h_t = (1 - z) n + z h_{t-1}
        y_t = x_t + h_t

    Each gate has its own rows of W, U and b. In a bidirectional model a second unit runs from the end, and both are
    added. h is zero before each document. Weights start as N(0, 1/D), biases as 0.
    """

    def init(self, normal, dims):
        ways, width = 1 if dims.causal else 2, dims.width
        w, u = (normal((ways, width, 3 * width)) * width**-0.5 for _ in "wu")
        return {"w": w, "u": u, "b": jnp.zeros((ways, 3 * width)), "c": jnp.zeros((ways, width))}

    def __call__(self, p, x, segment, causal):
        way = lambda n: {name: a[n].astype(bias_dtype(x)) for name, a in p.items()}  # noqa: E731
        h = recurrent(way(0), x, segment)
        if not causal:
            h = h + recurrent(way(1), x[::-1], segment[::-1])[::-1]
        return x + h.astype(x.dtype)


def parse(text: str) -> Stem | None:
    """The stem that a text names; `None` for "none"."""
    tree = grammar.read(text)
    if not isinstance(tree, grammar.Call):
        raise ValueError(f"{text!r} is not one stem; write one name with settings, for example 'conv(k=4)'.")
    if tree.name == NONE and tree != grammar.Call(NONE):
        raise ValueError(
            f"{NONE!r} means that there is no stem, so it takes no settings; leave them out or name a stem."
        )
    return None if tree.name == NONE else STEMS.make(tree)


def before(x: Float[Array, "L D"], segment: Int[Array, " L"], n: int) -> Float[Array, "L n+1 D"]:
    """Each token with the n tokens before it in its document; zeros where there are fewer."""
    return recent(x, segment, none(n, x.shape[-1]))[0]


def shifted(
    y: Float[Array, "L W"],
    x: Float[Array, "L D"],
    mix: Float[Array, "D H"],
    bias: Float[Array, " H"],
    segment: Int[Array, " L"],
) -> Float[Array, "L W"]:
    """y mixed with the y of the token before; x determines the share for each head."""
    share = jax.nn.sigmoid(x @ mix.astype(x.dtype) + bias[None, :].astype(x.dtype))
    share = jnp.repeat(share, y.shape[-1] // share.shape[-1], -1)
    return share * before(y, segment, 1)[:, 0] + (1 - share) * y


def recurrent(p: dict[str, Any], x: Float[Array, "L D"], segment: Int[Array, " L"]) -> Float[Array, "L D"]:
    """The states of a gated recurrent unit, zero at padding."""
    inside = x.astype(p["w"].dtype) @ p["w"] + p["b"][None, :]

    def step(carry, token):
        h, document = carry
        projected, segment = token
        h = jnp.where((segment > 0) & (segment != document), 0.0, h)
        now, past = jnp.split(projected, 3), jnp.split(h @ p["u"], 3)
        z, r = (jax.nn.sigmoid(a + b) for a, b in zip(now[:2], past[:2], strict=True))
        new = (1 - z) * jnp.tanh(now[2] + r * (past[2] + p["c"])) + z * h
        real = segment > 0
        return (jnp.where(real, new, h), jnp.where(real, segment, document)), jnp.where(real, new, 0.0)

    first = jnp.zeros(x.shape[-1], inside.dtype), jnp.zeros((), segment.dtype)
    return jax.lax.scan(step, first, (inside, segment))[1]
