"""A probe of near neighbours and their order: fill the blanks of a linear recurrence (ours, after the bag of words).

A model that averages its neighbours knows which numbers are next to a blank but not on which side. Here the sides
matter, so the gain from order can be measured.
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from posenc.lab.tasks.draw import INT, integers, uniforms
from posenc.lab.tasks.layout import tagged
from posenc.lab.tasks.task import BIDIRECTIONAL, Layout, Sizes, Task

MODULUS = 31
BLANK = MODULUS


class FillBlank(Task, name="fill_blank"):
    """Fill the blanks of x_{t+1} = 2 x_t + 3 x_{t-1} + 1 mod 31 (ours).

    5 7 _ 20 …  ->  30 at the blank          x₀, x₁ uniform, n ≥ 3; the blank is the token 31

    From left to right, a token is hidden with probability `hide` unless one of the two before it is. With `window=1`
    the ends are never blanks, blanks are at least five apart, and everything but a blank's two neighbours is hidden as
    well: then only a blank between two visible tokens is scored, and nothing else within three of it is visible. The
    best answer that ignores which neighbour is left and which right is correct in 51.6 %. A row may have no blank.
    """

    layout = Layout.TOKENS
    directions = BIDIRECTIONAL
    ability = "offset"
    suites = ("probes",)
    samples = ({"window": 1, "hide": 0.5},)
    alphabet, classes = MODULUS + 1, MODULUS
    vocabulary = {BLANK: "_"}
    sizes = Sizes(3, (16, 32), (33, 48, 64, 96, 128))

    hide: float = 0.15
    window: Literal[0, 1] = 0

    def validate(self):
        super().validate()
        if not 0 < self.hide <= 1:
            raise ValueError(f"The setting 'hide' of 'fill_blank' must be a probability above 0, not {self.hide}.")

    def make(self, key, n, n_max):
        start, where = jax.random.split(key)
        first = integers(start, n.shape[0], 2, MODULUS)
        x = (first @ jnp.asarray(_powers(n_max), INT)[:2] + jnp.asarray(_powers(n_max), INT)[2:]) % MODULUS
        i = jnp.arange(n_max, dtype=INT)[None, :]
        may = i < n[:, None]
        if self.window:
            may = (i >= 1) & (i < n[:, None] - 1)
        blank = _apart((uniforms(where, n.shape[0], n_max) < self.hide) & may, 5 if self.window else 3)
        hidden = blank
        if self.window:
            beside = jnp.pad(blank, ((0, 0), (1, 1)))
            hidden = ~(beside[:, :-2] | beside[:, 2:])
        return tagged(self, n, jnp.where(hidden, BLANK, x), n, x, blank)

    def answer(self, prompt):
        def agrees(values, i):
            return i + 2 >= len(values) or values[i + 2] == (2 * values[i + 1] + 3 * values[i] + 1) % MODULUS

        answer = []
        for t, token in enumerate(prompt):
            beside = prompt[max(t - 1, 0) : t] + prompt[t + 1 : t + 2]
            if token != BLANK or BLANK in beside or len(beside) < 1 + self.window:
                continue
            low = max(min(t - 1, len(prompt) - 3), t - 2, 0)
            tries = [prompt[:t] + [value] + prompt[t + 1 :] for value in range(MODULUS)]
            answer += [tried[t] for tried in tries if agrees(tried, low)]
        return answer


def _powers(length: int) -> np.ndarray:
    """x_t = a_t x₀ + b_t x₁ + c_t mod 31: the three rows of coefficients, exact on the host."""
    rows = [np.array([1, 0, 0]), np.array([0, 1, 0])]
    while len(rows) < length:
        rows.append((2 * rows[-1] + 3 * rows[-2] + np.array([0, 0, 1])) % MODULUS)
    return np.stack(rows[:length], axis=1)


def _apart(candidates, gap: int):
    """The candidates that remain when each, from left to right, must be at least `gap` after the last one kept."""

    def step(since, candidate):
        kept = candidate & (since >= gap)
        return jnp.where(kept, 1, since + 1), kept

    return jax.lax.scan(step, jnp.full(candidates.shape[0], gap, INT), candidates.T)[1].T
