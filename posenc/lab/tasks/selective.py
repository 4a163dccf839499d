"""Tests of selective memory: the tokens among blanks, and the token after a trigger (Gu and Dao, 2023).

@article{gu2023mamba, title={Mamba: Linear-Time Sequence Modeling with Selective State Spaces},
  author={Gu, Albert and Dao, Tri}, journal={arXiv:2312.00752}, year={2023}}
@article{olsson2022context, title={In-context Learning and Induction Heads},
  author={Olsson, Catherine and Elhage, Nelson and Nanda, Neel and others}, journal={Transformer Circuits Thread},
  year={2022}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import INT, between, distinct_positions, integers, pick, put
from posenc.lab.tasks.layout import slots, tagged
from posenc.lab.tasks.task import CAUSAL, Layout, Sizes, Task


class SelectiveCopy(Task, name="selective_copy"):
    """Copy the data out of the blanks, in order (Gu and Dao, 2023, §4.1.1).

    _ 3 _ _ 1 _ ? ?  ->  3 1           `data` symbols at uniform indices below n, then as many slots

    The slots are the paper's markers: the answer is due there, after the blanks, with neither a SEP nor the symbols
    copied so far as input. Blank is the token `symbols`. MAD's version draws the indices from a generator without its
    seed, never has a blank after the last symbol, and is not uniform; this one is uniform.
    """

    layout = Layout.TAG
    directions = CAUSAL
    metric = "exact"
    ability = "recall"
    suites = ("recall",)
    least = {"data": 1, "symbols": 2}
    samples = ({"data": 2, "symbols": 3},)

    data: int = 16
    symbols: int = 15

    alphabet = property(lambda task: task.symbols + 1)
    vocabulary = property(lambda task: {task.symbols: "_"})
    classes = property(lambda task: task.symbols)

    @property
    def sizes(self):
        high = max(256, self.data)
        return Sizes(self.data, (max(64, self.data), high), tuple(n for n in (512, 1024, 2048, 4096) if n > high))

    def tokens(self, n):
        return n + self.data

    def make(self, key, n, n_max):
        what, where = jax.random.split(key)
        word = integers(what, n.shape[0], self.data, self.symbols)
        at = jnp.sort(distinct_positions(where, n, self.data, n_max), axis=1)
        row = jnp.arange(n.shape[0], dtype=INT)[:, None]
        x = jnp.full((n.shape[0], n_max), self.symbols, INT).at[row, at].set(word)
        return slots(self, n, self.tokens(n_max), x, n, word, jnp.full_like(n, self.data))

    def answer(self, prompt):
        return [token for token in prompt if token != self.symbols]


class Induction(Task, name="induction"):
    """Name the token that followed the earlier trigger (Gu and Dao, 2023, §4.1.2; Olsson et al., 2022).

    4 0 T 7 2 … T  ->  7 at the last token       T once at a uniform index before, the rest noise, n ≥ 3

    The target is at the last T itself, as in the paper, since an induction head predicts the next token there: a SEP
    between T and its answer would make it another task. T is the token `symbols`. The stratum "distance" is how far
    back the earlier T is.
    """

    layout = Layout.TOKENS
    directions = CAUSAL
    metric = "accuracy"
    ability = "recall"
    suites = ("recall",)
    least = {"symbols": 2}
    samples = ({"symbols": 3},)
    sizes = Sizes(3, (256, 256), (512, 1024, 2048, 4096, 8192, 16384))

    symbols: int = 15

    alphabet = property(lambda task: task.symbols + 1)
    vocabulary = property(lambda task: {task.symbols: "T"})
    classes = property(lambda task: task.symbols)
    cue = property(lambda task: range(task.symbols))

    def make(self, key, n, n_max):
        word, place = jax.random.split(key)
        x = integers(word, n.shape[0], n_max, self.symbols)
        j = between(place, 0, n - 3)
        targets = jnp.broadcast_to(pick(x, j + 1)[:, None], x.shape)
        last = jnp.arange(n_max, dtype=INT)[None, :] == n[:, None] - 1
        x = put(put(x, j, self.symbols), n - 1, self.symbols)
        return tagged(self, n, x, n, targets, last, None, {"distance": n - 1 - j})

    def answer(self, prompt):
        return [prompt[prompt.index(self.symbols) + 1]]
