"""RNNsearch: a bidirectional GRU reads, a second GRU writes and attends to it (Bahdanau et al., 2014, appendix A).

    h_j = [→h_j; ←h_j]                              annotations of the source
    e_tj = vᵀ tanh(W_a s_{t-1} + U_a h_j),          c_t = Σ_j softmax(e_t)_j h_j,   s_0 = tanh(W_s ←h_1)
    s_t = GRU(s_{t-1}, [E y_t; c_t])                y_t is the input token at t: the token written before it
    logits_t = W_o maxout(O [s_{t-1}; E y_t; c_t])  of neighbours in pairs

`depth` is that of the reader; the writer has one layer. If a task has no source, the reader reads the tokens. Two
things depart from the authors. Flax's GRU has its reset gate after the product, theirs before it. Reader and writer
share one embedding table.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from posenc.attention.kernels.dense import softmax
from posenc.core.scheme import bias_dtype
from posenc.lab.models.draws import cut
from posenc.lab.models.ends import Ends, only_input
from posenc.lab.models.interface import Inputs, Shape, source_inputs
from posenc.lab.models.parts import dropout
from posenc.lab.models.recurrent import cell, stack
from posenc.lab.models.weights import Weight


class RNNSearch(Ends):
    """Tokens, and a source where there is one, to logits at every token."""

    def __init__(self, scheme: Any, shape: Shape, key: PRNGKeyArray):
        self.input, self.shape = only_input(scheme, shape), shape
        builds = [*stack(shape.model, shape), (self._writing, None), (self._outer, None)]
        *blocks, (writer, *rest), outer = cut(builds, key)
        self.blocks, self.writer = nnx.List(blocks), writer
        self.from_state, self.from_source, self.to_score, self.start, self.output = map(Weight, rest)
        self._set_outer(*outer)

    def _writing(self, rngs: Any) -> tuple[Any, ...]:
        d, normal = self.shape.dims.width, rngs.params.normal
        shapes = ((d, d), (2 * d, d), (d,), (d, d), (4 * d, 2 * d))
        return cell(self.shape.model, 3 * d, d, rngs), *(normal(s) * s[0] ** -0.5 for s in shapes)

    def __call__(self, inputs: Inputs, key: PRNGKeyArray, *, train: bool = False) -> Float[Array, "B T classes"]:
        """Padding affects no other token. `key` draws random positions and dropout."""
        drop = dropout(self.shape.dropout, key, train)
        y = self.enter(inputs, key, train)
        h, visible = self.read(inputs, key, train)
        s, c = self.write(y, h, visible)
        z = jnp.concatenate([s, y, c], -1) @ self.output.get_value().astype(y.dtype)
        return self.leave(drop.at("feed")(z.reshape(*z.shape[:-1], -1, 2).max(-1)))

    def read(self, inputs: Inputs, key: PRNGKeyArray, train: bool = False) -> tuple[Array, Array]:
        """The annotation of every token of the source, `[B, S, 2 D]`, and which of them are real."""
        if inputs.source is not None:
            inputs, key = source_inputs(inputs, key)
        x = self.enter(inputs, key, train)
        drop = dropout(self.shape.dropout, key, train)
        for n, block in enumerate(self.blocks):
            x = drop.at("layer", n)(block(x, inputs.valid))
        return x, inputs.valid

    def write(self, y: Array, h: Array, visible: Array) -> tuple[Float[Array, "B T D"], Float[Array, "B T 2*D"]]:
        """The state before each token and its context vector. Weights and states are float32 at least."""
        exact = bias_dtype(y)
        matrices = (self.from_state, self.from_source, self.to_score, self.start)
        w, u, v, start = (a.get_value().astype(exact) for a in matrices)
        h = h.astype(exact)
        keys = h @ u

        def step(s, token):
            scores = jnp.tanh((s @ w)[:, None] + keys) @ v
            c = jnp.einsum("bs,bsd->bd", softmax(scores, visible), h)
            return self.writer(s, jnp.concatenate([token, c], -1))[0], (s, c)

        first = jnp.tanh(h[:, 0, h.shape[-1] // 2 :] @ start)
        outputs = jax.lax.scan(step, first, y.astype(exact).swapaxes(0, 1))[1]
        s, c = (a.swapaxes(0, 1).astype(y.dtype) for a in outputs)
        return s, c
