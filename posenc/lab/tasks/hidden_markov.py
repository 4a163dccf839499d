"""A hidden Markov chain: a source whose memory ends, so that its best loss beyond training is that within it (ours).

The best reader is the forward algorithm (Rabiner, 1989, §III.A).

@article{rabiner1989tutorial, title={A Tutorial on Hidden Markov Models and Selected Applications in Speech
  Recognition}, author={Rabiner, Lawrence R.}, journal={Proceedings of the IEEE}, year={1989}}
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from posenc.lab.tasks.draw import FLOAT, INT, between, uniforms
from posenc.lab.tasks.layout import continued
from posenc.lab.tasks.readers import exact_losses
from posenc.lab.tasks.task import CAUSAL, Layout, Sizes, Task

SYMBOLS = 16
TABLE = 23
"""The seed of all emissions. It was taken of 30 seeds and 3 powers (`PEAKED`, how far from even they are). At 16 states
the best loss should be near 2.28 nats and that of a bag near 2.74; they are 2.29 and 2.74."""
PEAKED = 1.75


@functools.cache
def emissions(states: int) -> Float[np.ndarray, "states 16"]:
    """The law of a symbol in each state: exponential draws to the power `PEAKED`, as shares of their sum."""
    bits = np.random.PCG64(TABLE).random_raw(states * SYMBOLS)  # whose stream NumPy never changes
    weights = (-np.log(((bits >> np.uint64(11)) + 0.5) * 2.0**-53)) ** PEAKED
    table = weights.reshape(states, SYMBOLS)
    return table / table.sum(1, keepdims=True)


class HiddenMarkov(Task, name="hidden_markov"):
    """Name the next symbol of a hidden Markov chain (ours, after Rabiner, 1989).

    7 7 2 9 9  ->  7 2 9 9 4           after each symbol the next one, the last included

    The states are a ring: from one place to the next the state stays with probability `stay`, or else moves on by one.
    The first state is uniform, which is the stationary law. Each state has a law of its own over 16 symbols, the same
    in every run. The token 16 positions back tells hardly anything. This is the control: a window loses nothing on it.

    The score is the share of what the bag of symbols leaves to gain: 0 is the loss of the law of one symbol, 1 that of
    the forward algorithm.
    """

    layout = Layout.TOKENS
    directions = CAUSAL
    metric = "gain"
    ability = "language"
    least = {"states": 2}
    next_token = True
    samples = ({"states": 3}, {"stay": 0.95})

    states: int = 16
    stay: float = 0.8

    alphabet = classes = SYMBOLS
    sizes = Sizes(2, (64, 64), (128, 256, 512, 1024))

    def validate(self):
        super().validate()
        if not 0 <= self.stay <= 1:
            raise ValueError(f"The setting 'stay' of 'hidden_markov' must be a probability, not {self.stay}.")

    def make(self, key, n, n_max):
        begin, move, emit = jax.random.split(key, 3)
        rows, most = n.shape[0], jnp.full_like(n, self.states - 1)
        moves = (uniforms(move, rows, n_max) >= self.stay).astype(INT)
        moved = jnp.pad(jnp.cumsum(moves, axis=1, dtype=INT), ((0, 0), (1, 0)))
        state = (between(begin, 0, most)[:, None] + moved) % self.states
        below = jnp.asarray(np.cumsum(emissions(self.states), axis=1)[:, :-1], FLOAT)
        return continued(self, n, (uniforms(emit, rows, n_max + 1)[:, :, None] >= below[state]).sum(2, dtype=INT))

    def answer(self, prompt):
        return prompt[1:]

    @property
    def unigram(self):
        return emissions(self.states).mean(0)

    def losses(self, texts, window=None, places=None):
        table = emissions(self.states)

        def probabilities(tokens, first):
            """The forward algorithm, normalised at each token; it begins at the stationary law wherever it begins."""
            state = np.full((len(tokens), self.states), 1 / self.states)
            each = np.zeros(tokens.shape)
            for i, token in enumerate(tokens.T):
                joint = state * table[:, token].T
                each[:, i] = joint.sum(1)
                state = joint / each[:, i, None]
                state = self.stay * state + (1 - self.stay) * np.roll(state, 1, axis=1)
            return each[:, 1:]

        return exact_losses(texts, window, places, probabilities, lambda w: self.states)
