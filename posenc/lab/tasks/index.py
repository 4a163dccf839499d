"""Probes of the absolute index: which token is at index k, and at which index a token is.

Ours. All indices in question occur in training, and only the length grows; since the length varies, the distance from
the end does not help. A bidirectional model without positions sees a bag of tokens and must fail both.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import between, integers, pick, put
from posenc.lab.tasks.layout import one_slot
from posenc.lab.tasks.task import Layout, Sizes, Task

EVALUATION = (33, 40, 48, 64, 96, 128)


class TokenAtIndex(Task, name="token_at_index"):
    """Name the token at the index that the last token names (ours).

    x₀ … x_{n-1} I_k ?  ->  x_k        k ~ U{0..indices-1}, x over `symbols`, n ≥ indices

    I_k is the token symbols + k. The row's most frequent token is a better guess than a constant: see `cue`.
    """

    layout = Layout.CLASSIFY
    ability = "index"
    suites = ("probes", "quick")
    least = {"indices": 1, "symbols": 2}
    samples = ({"indices": 8}, {"indices": 3, "symbols": 4})

    indices: int = 16
    symbols: int = 16

    alphabet = property(lambda task: task.symbols + task.indices)
    vocabulary = property(lambda task: {task.symbols + k: f"I{k}" for k in range(task.indices)})
    classes = property(lambda task: task.symbols)
    cue = property(lambda task: range(task.symbols))
    sizes = property(lambda task: Sizes(task.indices, (task.indices, max(32, task.indices)), EVALUATION))

    def tokens(self, n):
        return n + 2

    def make(self, key, n, n_max):
        word, place = jax.random.split(key)
        x = integers(word, n.shape[0], n_max, self.symbols)
        k = between(place, 0, jnp.full_like(n, self.indices - 1))
        prompt = put(jnp.pad(x, ((0, 0), (0, 1))), n, self.symbols + k)
        return one_slot(self, n, self.tokens(n_max), prompt, n + 1, pick(x, k), {"index": k})

    def answer(self, prompt):
        *x, query = prompt
        return [x[query - self.symbols]]


class IndexOfToken(Task, name="index_of_token"):
    """Name the index of the one marked token (ours).

    x₀ … M … x_{n-1} ?  ->  j          M at j ~ U{0..indices-1}, the others noise over `symbols`, n ≥ indices

    M is the token `symbols`.
    """

    layout = Layout.CLASSIFY
    ability = "index"
    suites = ("probes",)
    least = {"indices": 2, "symbols": 1}
    samples = ({"indices": 3, "symbols": 4},)

    indices: int = 16
    symbols: int = 16

    alphabet = property(lambda task: task.symbols + 1)
    vocabulary = property(lambda task: {task.symbols: "M"})
    classes = property(lambda task: task.indices)
    sizes = property(lambda task: Sizes(task.indices, (task.indices, max(32, task.indices)), EVALUATION))

    def make(self, key, n, n_max):
        word, place = jax.random.split(key)
        j = between(place, 0, jnp.full_like(n, self.indices - 1))
        x = put(integers(word, n.shape[0], n_max, self.symbols), j, self.symbols)
        return one_slot(self, n, self.tokens(n_max), x, n, j, {"index": j})

    def answer(self, prompt):
        return [prompt.index(self.symbols)]
