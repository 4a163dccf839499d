"""Both models under one interface: parameters, the forward pass, caches, and training as each library does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from flax.training.train_state import TrainState

import posenc
from tests.importers import originals
from tests.importers.linen_decoder import Decoder
from tests.importers.nnx_gemma import Gemma

KINDS = ("nnx", "linen")
PATTERN = "[rope, rope, rope, nope]"
TEXTS = ("rope", "alibi", "t5", "rope + alibi", PATTERN, "fox")
WORDS, BATCH, LENGTH, HEADS, HEAD = 17, 4, 12, 4, 8
TOKENS = np.random.default_rng(0).integers(0, WORDS, (BATCH, LENGTH), np.int32)
KEY_HEADS = {"linen": HEADS, "nnx": 2}


class Model(NamedTuple):
    """A model as functions of its parameters."""

    params: Any
    apply: Callable[..., Any]
    """`(params, tokens)` to logits, and with caches to those too."""
    empty: Callable[..., Any]
    """`(params, batch, capacity)` to caches."""
    original: Callable[..., Any]
    """`(params, tokens)` to the logits of the model without posenc."""
    train: Callable[[Any, Any, int], tuple[list[float], Any]]
    """`(params, tokens, steps)` to the loss before each step and the parameters after the last."""


def made(kind: str, text: str, *, scan: bool = True, remat: bool = False, dtype: Any = jnp.float32) -> Model:
    """One of the models, of two periods of a pattern or of four equal layers. Its parameters depend on kind and text
    alone."""
    dims = posenc.Dims(HEADS * HEAD, HEADS, HEAD, trained=LENGTH, key_heads=KEY_HEADS[kind])
    scheme = posenc.bind(posenc.parse(text), dims)
    pattern = text[text.index("[") + 1 : -1].split(", ") if "[" in text else [text]
    depth = max(4, 2 * len(pattern))
    about = {"depth": depth, "period": len(pattern), "scan": scan, "remat": remat, "dtype": dtype}
    return {"linen": _linen, "nnx": _nnx}[kind](scheme, dims, pattern, about)


def loss(logits: Any, tokens: Any) -> Any:
    """Cross entropy of each next token."""
    return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()


def _linen(scheme: Any, dims: Any, pattern: list[str], about: dict[str, Any]) -> Model:
    model = Decoder(scheme, dims, WORDS, **about)
    params = jax.jit(model.clone(scan=True).init)(jax.random.key(1), TOKENS)["params"]
    apply = lambda params, *args, **more: model.apply({"params": params}, *args, **more)  # noqa: E731
    original = lambda params, tokens: originals.decoder(params, tokens, pattern, about["depth"])  # noqa: E731

    def train(params, tokens, steps):
        @jax.jit
        def step(state, tokens):
            value, gradient = jax.value_and_grad(lambda p: loss(apply(p, tokens), tokens))(state.params)
            return state.apply_gradients(grads=gradient), value

        state, values = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-2)), []
        for _ in range(steps):
            state, value = step(state, tokens)
            values.append(float(value))
        return values, state.params

    if about["scan"]:
        return Model(params, apply, model.empty, original, train)
    looped = lambda params, *args: apply(unstacked(params), *args)  # noqa: E731
    return Model(params, looped, model.empty, original, train)


def unstacked(params: Any) -> Any:
    """The parameters of a loop over periods from those of a scan."""
    periods = jax.tree.leaves(params["periods"])[0].shape[0]
    each = {f"period_{n}": jax.tree.map(lambda a, n=n: a[n], params["periods"]) for n in range(periods)}
    return {name: a for name, a in params.items() if name != "periods"} | each


def _nnx(scheme: Any, dims: Any, pattern: list[str], about: dict[str, Any]) -> Model:
    model = nnx.jit(lambda: Gemma(scheme, dims, WORDS, **about, rngs=nnx.Rngs(1)))()
    graph, state = nnx.split(model)
    whole = lambda params: nnx.merge(graph, params)  # noqa: E731
    apply = lambda params, *args: whole(params)(*args)  # noqa: E731
    empty = lambda params, batch, capacity: whole(params).empty(batch, capacity)  # noqa: E731
    sizes = pattern, about["depth"], HEADS, HEAD
    original = lambda params, tokens: originals.gemma(nnx.to_pure_dict(params), tokens, *sizes)  # noqa: E731

    def train(params, tokens, steps):
        copy = whole(jax.tree.map(jnp.copy, params))
        optimizer, values = nnx.Optimizer(copy, optax.adam(1e-2), wrt=nnx.Param), []

        @nnx.jit
        def step(model, optimizer, tokens):
            value, gradient = nnx.value_and_grad(lambda model: loss(model(tokens), tokens))(model)
            optimizer.update(model, gradient)
            return value

        for _ in range(steps):
            values.append(float(step(copy, optimizer, tokens)))
        return values, nnx.state(copy)

    return Model(state, apply, empty, original, train)
