"""A probe of counting: how often one symbol occurs (ours). It needs no positions, so it shows what they cost."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import INT, between, distinct_positions, integers
from posenc.lab.tasks.layout import one_slot
from posenc.lab.tasks.task import Layout, Sizes, Task


class CountSymbol(Task, name="count_symbol"):
    """Count the A's (ours).

    x₀ … A … A … x_{n-1} ?  ->  2      the count is U{0..most}, positions are uniform, the rest is noise; n ≥ most

    A is the token `symbols`.
    """

    layout = Layout.CLASSIFY
    ability = "counting"
    suites = ("probes",)
    least = {"most": 1, "symbols": 1}
    samples = ({"most": 3, "symbols": 2},)

    most: int = 8
    symbols: int = 16

    alphabet = property(lambda task: task.symbols + 1)
    vocabulary = property(lambda task: {task.symbols: "A"})
    classes = property(lambda task: task.most + 1)
    sizes = property(lambda task: Sizes(task.most, (task.most, max(32, task.most)), (33, 48, 64, 96, 128)))

    def make(self, key, n, n_max):
        word, place, much = jax.random.split(key, 3)
        count = between(much, 0, jnp.full_like(n, self.most))
        positions = distinct_positions(place, n, self.most, n_max)
        live = jnp.arange(self.most, dtype=INT)[None, :] < count[:, None]
        row = jnp.arange(n_max, dtype=INT)[None, None, :]
        marked = ((positions[:, :, None] == row) & live[:, :, None]).any(axis=1)
        x = jnp.where(marked, self.symbols, integers(word, n.shape[0], n_max, self.symbols))
        return one_slot(self, n, self.tokens(n_max), x, n, count, {"count": count})

    def answer(self, prompt):
        return [prompt.count(self.symbols)]
