"""Tasks of order alone: which of two came first, and whether two strings agree in order (ours).

They are negative controls. A bidirectional model without positions sees a bag of tokens, in which both answers are
equally likely, so it must stay at exactly one half. A causal mask reveals order by itself, hence bidirectional models
only.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import FLOAT, INT, between, distinct_positions, gather, integers, pick, put, uniforms
from posenc.lab.tasks.layout import one_slot
from posenc.lab.tasks.task import BIDIRECTIONAL, Layout, Sizes, Task


class Before(Task, name="before"):
    """Decide whether A is before B (ours).

    x₀ … B … A … x_{n-1} ?  ->  0      A, B at distinct uniform indices in noise over `symbols`, n ≥ 2

    A is the token `symbols`, B the next.
    """

    layout = Layout.CLASSIFY
    directions = BIDIRECTIONAL
    ability = "order"
    suites = ("probes",)
    least = {"symbols": 1}
    samples = ({"symbols": 2},)
    classes = 2
    sizes = Sizes(2, (8, 32), (33, 48, 64, 96, 128))

    symbols: int = 16

    alphabet = property(lambda task: task.symbols + 2)
    vocabulary = property(lambda task: {task.symbols: "A", task.symbols + 1: "B"})

    def make(self, key, n, n_max):
        word, place = jax.random.split(key)
        a, b = distinct_positions(place, n, 2, n_max).T  # in drawing order, so each is first equally often
        x = put(put(integers(word, n.shape[0], n_max, self.symbols), a, self.symbols), b, self.symbols + 1)
        return one_slot(self, n, self.tokens(n_max), x, n, (a < b).astype(INT), {"distance": jnp.abs(a - b)})

    def answer(self, prompt):
        return [int(prompt.index(self.symbols) < prompt.index(self.symbols + 1))]


class SameOrder(Task, name="same_order"):
    """Decide whether the second string is the first, or the first with two unequal entries exchanged (ours).

    x₀ … x_{n-1} SEP x′₀ … x′_{n-1} ?  ->  1 if x = x′      a fair choice, n ≥ 2

    x is uniform over the strings that are not constant; the exchanged pair is a uniform index and a uniform one among
    those with another symbol. SEP is the token `symbols`.
    """

    layout = Layout.CLASSIFY
    directions = BIDIRECTIONAL
    ability = "order"
    suites = ("probes",)
    least = {"symbols": 2}
    samples = ({"symbols": 2},)
    classes = 2
    sizes = Sizes(2, (8, 16), (17, 24, 32, 48, 64))

    symbols: int = 16

    alphabet = property(lambda task: task.symbols + 1)
    vocabulary = property(lambda task: {task.symbols: "SEP"})

    def tokens(self, n):
        return 2 * n + 2

    def make(self, key, n, n_max):
        word, first, other, fair = jax.random.split(key, 4)
        x = self._uneven(word, n, n_max)
        i = between(first, 0, n - 1)
        row = jnp.arange(n_max, dtype=INT)[None, :]
        unequal = (x != pick(x, i)[:, None]) & (row < n[:, None])
        j = jnp.argmax(jnp.where(unequal, uniforms(other, n.shape[0], n_max), -1.0), axis=1).astype(INT)
        same = jax.random.bernoulli(fair, 0.5, n.shape)
        swapped = put(put(x, i, pick(x, j)), j, pick(x, i))
        second = jnp.where(same[:, None], x, swapped)
        at = jnp.arange(2 * n_max + 1, dtype=INT)[None, :]
        start = n[:, None]
        after = jnp.where(at == start, self.symbols, gather(second, at - start - 1))
        prompt = jnp.where(at < start, gather(x, jnp.broadcast_to(at, after.shape)), after)
        distance = jnp.where(same, 0, jnp.abs(i - j))
        return one_slot(self, n, self.tokens(n_max), prompt, 2 * n + 1, same.astype(INT), {"distance": distance})

    def _uneven(self, key, n, n_max):
        """Uniform over the strings of length n that are not constant: draws the first index with another symbol."""
        rest, leave, to = jax.random.split(key, 3)
        x = integers(rest, n.shape[0], n_max, self.symbols)
        row = jnp.arange(n_max, dtype=INT)[None, :]
        stay = 1 / self.symbols
        u = jax.random.uniform(leave, n.shape, FLOAT)
        steps = jnp.log1p(-u * (1 - stay ** (n - 1).astype(FLOAT))) / jnp.log(stay)
        t = 1 + jnp.minimum(steps.astype(INT), n - 2)
        first = x[:, :1]
        new = (first[:, 0] + 1 + jax.random.randint(to, n.shape, 0, self.symbols - 1, INT)) % self.symbols
        return put(jnp.where(row < t[:, None], first, x), t, new)

    def answer(self, prompt):
        half = len(prompt) // 2
        return [int(prompt[:half] == prompt[half + 1 :])]
