"""Recall of the values of several keys in one text (Arora et al., 2024, §3).

@inproceedings{arora2024zoology, title={Zoology: Measuring and Improving Recall in Efficient Language Models},
  author={Arora, Simran and Eyuboglu, Sabri and Timalsina, Aman and others}, booktitle={ICLR}, year={2024},
  eprint={2312.04927}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import FLOAT, INT, distinct, integers
from posenc.lab.tasks.layout import tagged
from posenc.lab.tasks.task import CAUSAL, Layout, Sizes, Task


class MQAR(Task, name="mqar"):
    """At each repeated key, name its value: multi-query associative recall (Arora et al., 2024, §3).

    2 8 4 7 0 0 4 0 2 0  ->  7 at the second 4, 8 at the second 2        symbols = 12, pairs = 2

    Keys are drawn from 1 … symbols/2 - 1, values from the rest, without replacement; each key is repeated once, an even
    number 2g of tokens after the pairs, g drawn without replacement with weight (g + 1)^(power-1): power 1 is uniform.
    All other tokens are 0 or, with `random_non_queries`, any token but the row's keys. In the released code these
    fillers can also be keys, which then look like queries but are not scored: `as_released`. n counts tokens, is even,
    and is at least 4 · pairs.

    Classes are values, counted from the first; the authors' model chooses among all tokens. They also require more
    symbols than tokens, which is not needed here. A model that knows only which values a text contains is right in one
    of `pairs` cases.
    """

    layout = Layout.TOKENS
    directions = CAUSAL
    ability = "recall"
    suites = ("recall",)
    least = {"pairs": 1}
    samples = ({"symbols": 12, "pairs": 2, "power": 1.0}, {"symbols": 64, "random_non_queries": True})

    symbols: int = 8192
    pairs: int = 4
    power: float = 0.01
    random_non_queries: bool = False
    as_released: bool = False

    alphabet = property(lambda task: task.symbols)
    classes = property(lambda task: task.symbols - task.symbols // 2)
    cue = property(lambda task: range(task.symbols // 2, task.symbols))

    def validate(self):
        super().validate()
        if self.symbols < 2 * self.pairs + 2:
            raise ValueError(
                f"{self.pairs} pairs need at least {2 * self.pairs + 2} symbols, half of them keys, not {self.symbols}."
            )
        if self.as_released and not self.random_non_queries:
            raise ValueError("as_released=True changes random fillers only; set random_non_queries=True as well.")

    @property
    def sizes(self):
        least = 4 * self.pairs
        low, high = max(64, least), max(256, least)
        return Sizes(least, (low, high), tuple(n for n in (512, 1024) if n > high), step=2)

    def make(self, key, n, n_max):
        keys, values, gaps, fillers = jax.random.split(key, 4)
        rows, context, half = n.shape[0], 2 * self.pairs, self.symbols // 2
        k = 1 + distinct(keys, jnp.zeros((rows, half - 1), FLOAT), self.pairs)
        v = distinct(values, jnp.zeros((rows, self.classes), FLOAT), self.pairs)
        g = jnp.arange((n_max - context) // 2, dtype=INT)[None, :]
        weight = (self.power - 1) * jnp.log(g.astype(FLOAT) + 1)
        gap = distinct(gaps, jnp.where(g < (n[:, None] - context) // 2, weight, -jnp.inf), self.pairs)
        row, queries = jnp.arange(rows, dtype=INT)[:, None], context + 2 * gap
        score = jnp.zeros((rows, n_max), bool).at[row, queries].set(True)
        x = self._fillers(fillers, k, n_max) if self.random_non_queries else jnp.zeros((rows, n_max), INT)
        x = x.at[:, :context].set(jnp.stack([k, half + v], axis=2).reshape(rows, context)).at[row, queries].set(k)
        targets = jnp.zeros((rows, n_max), INT).at[row, queries].set(v)
        return tagged(self, n, x, n, targets, score, None, {"pairs": jnp.full_like(n, self.pairs)})

    def _fillers(self, key, k, length):
        """Uniform over all tokens except the keys: the r-th of the others."""
        if self.as_released:
            return integers(key, k.shape[0], length, self.symbols)
        r = integers(key, k.shape[0], length, self.symbols - self.pairs)
        before = jnp.sort(k, axis=1) - jnp.arange(self.pairs, dtype=INT)[None, :]  # how many other tokens precede it
        skipped = jax.vmap(lambda edges, r: jnp.searchsorted(edges, r, side="right"))(before, r)
        return (r + skipped).astype(INT)

    def answer(self, prompt):
        context = 2 * self.pairs
        value = {prompt[i]: prompt[i + 1] for i in range(0, context, 2)}
        return [value[token] - self.symbols // 2 for token in prompt[context:] if token in value]
