"""Two tasks with short RASP-L programs, for which length generalisation is predicted (Zhou et al., 2023, §4).

The authors released programs but no data generator: layouts follow the paper from memory, laws are ours.

@inproceedings{zhou2024algorithms, title={What Algorithms can Transformers Learn? A Study in Length Generalization},
  author={Zhou, Hattie and Bradley, Arwen and others}, booktitle={ICLR}, year={2024}, eprint={2310.16028}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import INT, between, gather, integers, uniforms
from posenc.lab.tasks.layout import prompted
from posenc.lab.tasks.task import Layout, Sizes, Task

BEYOND = (41, 50, 60, 70, 80, 90, 100)


class CountUp(Task, name="count_up"):
    """Count from one number to another (Zhou et al., 2023, §4).

    3 6 SEP  ->  3 4 5 6 EOS           the answer is n numbers, n ≤ symbols

    A number is one of `symbols` tokens; the first is uniform over those from which n numbers fit.
    """

    layout = Layout.LM
    ability = "counting"
    suites = ("kazemnejad",)
    least = {"symbols": 2}
    samples = ({"symbols": 12},)

    symbols: int = 128

    alphabet = property(lambda task: task.symbols)

    @property
    def sizes(self):
        beyond = tuple(n for n in BEYOND if n <= self.symbols)
        return Sizes(1, (1, min(40, self.symbols)), beyond, self.symbols)

    def tokens(self, n):
        return n + 5

    def make(self, key, n, n_max):
        first = between(key, 0, self.symbols - n)
        prompt = jnp.stack([first, first + n - 1], axis=1)
        numbers = first[:, None] + jnp.arange(n_max, dtype=INT)[None, :]
        return prompted(self, n, self.tokens(n_max), prompt, jnp.full_like(n, 2), numbers, n)

    def answer(self, prompt):
        _, low, high, _ = prompt
        return [*range(low, high + 1), self.special("EOS")]


class Mode(Task, name="mode"):
    """Name the most frequent symbol (Zhou et al., 2023, §4).

    b a b c SEP  ->  b EOS

    The most frequent symbol is unique: n - 1 symbols are uniform, and one more, at a uniform index, is uniform among
    those that leave a unique maximum. It mostly leads by one.
    """

    layout = Layout.LM
    ability = "counting"
    suites = ("kazemnejad",)
    sizes = Sizes(1, (1, 40), BEYOND)
    least = {"symbols": 2}
    samples = ({"symbols": 3},)

    symbols: int = 26

    alphabet = property(lambda task: task.symbols)

    def tokens(self, n):
        return n + 4

    def make(self, key, n, n_max):
        word, tie, place = jax.random.split(key, 3)
        x = integers(word, n.shape[0], n_max, self.symbols)
        i = jnp.arange(n_max, dtype=INT)[None, :]
        live = (i < n[:, None] - 1)[:, :, None]
        count = jnp.sum((x[:, :, None] == jnp.arange(self.symbols, dtype=INT)[None, None, :]) & live, axis=1, dtype=INT)
        more = _largest(jnp.where(_decides(count), uniforms(tie, n.shape[0], self.symbols), -1.0))
        at = between(place, 0, n - 1)[:, None]
        text = jnp.where(i == at, more, gather(x, i - (i > at)))
        winner = _largest(count + (more == jnp.arange(self.symbols, dtype=INT)[None, :]))
        return prompted(self, n, self.tokens(n_max), text, n, winner, jnp.ones_like(n))

    def answer(self, prompt):
        symbols = prompt[1:-1]
        most = max(map(symbols.count, symbols))
        return [s for s in sorted(set(symbols)) if symbols.count(s) == most] + [self.special("EOS")]


def _decides(count):
    """Return the symbols that, added once more, would leave a unique maximum."""
    most = jnp.max(count, axis=1, keepdims=True)
    level = jnp.sum(count == most, axis=1, dtype=INT)[:, None] > 1
    return (count == most) | (~level & (count < most - 1))


def _largest(x):
    """The index of the largest entry in each row."""
    return jnp.argmax(x, axis=1).astype(INT)[:, None]
