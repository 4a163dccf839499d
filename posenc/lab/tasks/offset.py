"""Probes of relative distance: the token k back, the token that a pointer points back to, the distance of two marks.

Ours. They mirror the probes of the absolute index: here distances occur in training and the absolute index is new.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import between, gather, index, integers, pick, put
from posenc.lab.tasks.layout import one_slot, tagged
from posenc.lab.tasks.task import Layout, Sizes, Task

EVALUATION = (48, 64, 96, 128, 256, 512)


class TokenKBack(Task, name="token_k_back"):
    """At each token, name the one k before it (ours).

    x₀ … x_{n-1}  ->  – … – x₀ … x_{n-1-k}        x over `symbols`; the first k tokens are not scored, n > k

    To be trained on sizes from k + 1 up, not on a single one: a bidirectional model could count from the end.
    """

    layout = Layout.TOKENS
    ability = "offset"
    suites = ("probes", "quick")
    least = {"k": 1, "symbols": 2}
    samples = ({"k": 3}, {"k": 4, "symbols": 3})

    k: int = 1
    symbols: int = 16

    alphabet = classes = property(lambda task: task.symbols)
    cue = property(lambda task: range(task.symbols))
    sizes = property(lambda task: Sizes(task.k + 1, (task.k + 1, max(32, task.k + 1)), EVALUATION))

    def make(self, key, n, n_max):
        x = integers(key, n.shape[0], n_max, self.symbols)
        i = index(x)
        return tagged(self, n, x, n, gather(x, i - self.k), i >= self.k)

    def answer(self, prompt):
        return prompt[: -self.k]


class PointerBack(Task, name="pointer_back"):
    """Name the token as far back as the last token states (ours).

    x₀ … x_{n-1} B_k ?  ->  x_{n-k}    k ~ U{1..reach}, x over `symbols`, n ≥ reach

    B_k is the token symbols + k - 1, and counts from itself: B_1 points to its left neighbour.
    """

    layout = Layout.CLASSIFY
    ability = "offset"
    suites = ("probes",)
    least = {"reach": 1, "symbols": 2}
    samples = ({"reach": 3, "symbols": 4},)

    reach: int = 16
    symbols: int = 16

    alphabet = property(lambda task: task.symbols + task.reach)
    vocabulary = property(lambda task: {task.symbols + k: f"B{k + 1}" for k in range(task.reach)})
    classes = property(lambda task: task.symbols)
    cue = property(lambda task: range(task.symbols))
    sizes = property(lambda task: Sizes(task.reach, (task.reach, max(32, task.reach)), EVALUATION))

    def tokens(self, n):
        return n + 2

    def make(self, key, n, n_max):
        word, place = jax.random.split(key)
        x = integers(word, n.shape[0], n_max, self.symbols)
        k = between(place, 1, jnp.full_like(n, self.reach))
        prompt = put(jnp.pad(x, ((0, 0), (0, 1))), n, self.symbols + k - 1)
        return one_slot(self, n, self.tokens(n_max), prompt, n + 1, pick(x, n - k), {"distance": k})

    def answer(self, prompt):
        back = prompt[-1] - self.symbols + 1
        return [prompt[-1 - back]]


class Distance(Task, name="distance"):
    """Name the distance between two equal marks (ours).

    x₀ … M … M … x_{n-1} ?  ->  d - 1  (class 0 is distance 1)

    The marks are at i and i + d, d ~ U{1..reach}, i ~ U{0..n-1-d}; the rest is noise over `symbols`, n > reach.
    M is the token `symbols`.
    """

    layout = Layout.CLASSIFY
    ability = "offset"
    suites = ("probes",)
    least = {"reach": 2, "symbols": 1}
    samples = ({"reach": 3, "symbols": 4},)

    reach: int = 16
    symbols: int = 16

    alphabet = property(lambda task: task.symbols + 1)
    vocabulary = property(lambda task: {task.symbols: "M"})
    classes = property(lambda task: task.reach)
    sizes = property(lambda task: Sizes(task.reach + 1, (task.reach + 1, max(32, task.reach + 1)), EVALUATION))

    def make(self, key, n, n_max):
        word, place, far = jax.random.split(key, 3)
        d = between(far, 1, jnp.full_like(n, self.reach))
        i = between(place, 0, n - 1 - d)
        x = put(put(integers(word, n.shape[0], n_max, self.symbols), i, self.symbols), i + d, self.symbols)
        return one_slot(self, n, self.tokens(n_max), x, n, d - 1, {"distance": d})

    def answer(self, prompt):
        first, second = [i for i, token in enumerate(prompt) if token == self.symbols]
        return [second - first - 1]
