"""Recurrent networks: layers of Flax's cells, run from left to right, or in both directions with states concatenated.

    rnn    h' = tanh(W x + U h + b)
    gru    r, z = σ(W x + U h + b),   n = tanh(W x + b + r ⊙ U h),   h' = (1 - z) ⊙ n + z ⊙ h
    lstm   i, f, o = σ(W x + U h + b),   g = tanh(W x + U h + b),   c' = f ⊙ c + i ⊙ g,   h' = o ⊙ tanh(c')

Each gate has its own rows of W, U and b; gru's n has no bias inside r ⊙ U h. States start at zero, and padding does not
change them. Initially W is N(0, 1 / inputs) and U is orthogonal for each gate. Flax draws one orthogonal matrix for all
gates. The U of a plain network can start as N(0, 1 / width) instead. States are float32 at least.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from posenc.core.scheme import bias_dtype
from posenc.lab.models import kinds
from posenc.lab.models.draws import cut
from posenc.lab.models.ends import Ends, only_input
from posenc.lab.models.interface import Inputs, Shape
from posenc.lab.models.parts import dropout
from posenc.lab.models.weights import Weight
from posenc.numerics.orthogonal import haar

CELLS = {"rnn": nnx.SimpleCell, "lstm": nnx.OptimizedLSTMCell, "gru": nnx.GRUCell, "rnnsearch": nnx.GRUCell}


class RecurrentLayer(nnx.Module):
    """One cell from the first token to the last, and in a bidirectional layer a second one backwards."""

    def __init__(self, model: Any, inputs: int, width: int, *, rngs: Any):
        self.ahead = cell(model, inputs, width, rngs)
        self.bidirectional = getattr(model, "bidirectional", True)
        if self.bidirectional:
            self.back = cell(model, inputs, width, rngs)

    def __call__(self, x: Float[Array, "B T D"], valid: Bool[Array, "B T"]) -> Float[Array, "B T features"]:
        h = states(self.ahead, x, valid)
        if not self.bidirectional:
            return h
        return jnp.concatenate([h, states(self.back, x[:, ::-1], valid[:, ::-1])[:, ::-1]], -1)


class Recurrent(Ends):
    """Tokens to logits at every token, by `shape.depth` layers."""

    def __init__(self, scheme: Any, shape: Shape, key: PRNGKeyArray):
        self.input, self.shape = only_input(scheme, shape), shape
        features = (1 + shape.model.bidirectional) * shape.dims.width
        *blocks, outer = cut([*stack(shape.model, shape), (lambda r: self._outer(r, features=features), None)], key)
        self.blocks = nnx.List(blocks)
        self._set_outer(*outer)

    def __call__(self, inputs: Inputs, key: PRNGKeyArray, *, train: bool = False) -> Float[Array, "B T classes"]:
        """Padding changes no state. `key` draws random positions and dropout."""
        drop = dropout(self.shape.dropout, key, train)
        x = self.enter(inputs, key, train)
        for n, block in enumerate(self.blocks):
            x = drop.at("layer", n)(block(x, inputs.valid))
        return self.leave(x)


def stack(model: Any, shape: Shape) -> list[tuple[Any, None]]:
    """A builder for each layer: the first reads the input, the others the states of the layer below."""
    width = shape.dims.width
    features = (1 + getattr(model, "bidirectional", True)) * width
    return [
        (lambda rngs, reads=features if n else width: RecurrentLayer(model, reads, width, rngs=rngs), None)
        for n in range(shape.depth)
    ]


def cell(model: Any, inputs: int, width: int, rngs: Any) -> Any:
    """A Flax cell with weights from `rngs.params.normal`."""
    scaled = lambda key, shape, dtype: rngs.params.normal(shape) * shape[0] ** -0.5  # noqa: E731
    rotation = lambda key, shape, dtype: orthogonal(rngs.params.normal, *shape)  # noqa: E731
    states = scaled if getattr(model, "start", "orthogonal") == "normal" else rotation
    made = CELLS[model.name](inputs, width, dtype=None, kernel_init=scaled, recurrent_kernel_init=states, rngs=rngs)
    for dense in (made.dense_i, made.dense_h):
        dense.kernel = Weight(dense.kernel.get_value())
    if isinstance(model, kinds.LSTMModel):
        made.dense_h.bias = nnx.Param(jnp.repeat(jnp.array([0.0, model.forget, 0.0, 0.0]), width))
    return made


def orthogonal(normal: Any, width: int, columns: int) -> Float[Array, "width columns"]:
    """A random rotation or reflection for each gate, side by side."""
    return jax.vmap(haar)(normal((columns // width, width, width))).swapaxes(0, 1).reshape(width, columns)


def states(cell: Any, x: Float[Array, "B T D"], valid: Bool[Array, "B T"]) -> Float[Array, "B T width"]:
    """The state after each token, zero at padding."""

    def step(carry, token):
        here, real = token
        fresh, state = cell(carry, here)
        carry = jax.tree.map(lambda new, old: jnp.where(real[:, None], new, old), fresh, carry)
        return carry, jnp.where(real[:, None], state, 0)

    exact = bias_dtype(x)
    zero = jnp.zeros((x.shape[0], cell.hidden_features), exact)
    start = (zero, zero) if isinstance(cell, nnx.OptimizedLSTMCell) else zero
    outputs = jax.lax.scan(step, start, (x.astype(exact).swapaxes(0, 1), valid.T))[1]
    return outputs.swapaxes(0, 1).astype(x.dtype)
