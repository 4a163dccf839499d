"""A short item in a long text, to be found wherever it is (Hsieh et al., 2024, §3; Mohtashami and Jaggi, 2023).

RULER hides sentences in essays; here the haystack is uniform fillers, so that only the needle can be learnt.

@inproceedings{hsieh2024ruler, title={{RULER}: What's the Real Context Size of Your Long-Context Language Models?},
  author={Hsieh, Cheng-Ping and Sun, Simeng and Kriman, Samuel and others}, booktitle={COLM}, year={2024},
  eprint={2404.06654}}
@inproceedings{mohtashami2023landmark,
  title={Landmark Attention: Random-Access Infinite Context Length for Transformers},
  author={Mohtashami, Amirkeivan and Jaggi, Martin}, booktitle={NeurIPS}, year={2023}, eprint={2305.16300}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import FLOAT, INT, between, distinct, distinct_positions, gather, integers
from posenc.lab.tasks.layout import prompted
from posenc.lab.tasks.task import Layout, Sizes, Task
from posenc.language.registry import later


class Needle(Task, name="needle"):
    """Name the value that follows a key somewhere in a haystack (Hsieh et al., 2024, §3.1: NIAH).

    f f KEY k VAL v v f f ASK k SEP  ->  v v EOS       width 2; n is the haystack with its needles

    `needles` of 3 + width tokens do not overlap, uniform over all ways to place them; `per_key` needles share a key:
    one is RULER's multi-key, more its multi-value. `queries` is the number of keys in the question (RULER's
    multi-query). The answer consists of all values of the first key, in the order of the text, then those of the next.
    The stratum "depth" is the tenth of the haystack in which the first needle of the first key begins. Fillers are the
    tokens from 0 up, then keys, then values, then KEY, VAL, ASK.
    """

    layout = Layout.LM
    ability = "recall"
    suites = ("recall",)
    least = {"fillers": 1, "keys": 1, "values": 2, "needles": 1, "width": 1, "queries": 1, "per_key": 1}
    samples = (
        {"needles": 3, "width": 2, "queries": 2},
        {"needles": 4, "width": 1, "values": 3},
        {"needles": 6, "width": 1, "queries": 2, "per_key": 2},
    )

    fillers: int = 16
    keys: int = 16
    values: int = 16
    needles: int = 1
    width: int = 4
    queries: int = 1
    per_key: int = later(1)

    alphabet = property(lambda task: task.fillers + task.keys + task.values + 3)
    choices = property(lambda task: task.values)
    sizes = property(lambda task: _sizes(task.needles * (3 + task.width)))

    def validate(self):
        super().validate()
        if self.needles % self.per_key:
            raise ValueError(f"needles={self.needles} must be a multiple of per_key={self.per_key}.")
        groups = self.needles // self.per_key
        if self.queries > groups:
            raise ValueError(f"queries={self.queries} must be at most needles/per_key={groups}, the keys in a text.")
        if groups > self.keys:
            raise ValueError(f"needles/per_key={groups} must be at most keys={self.keys}, which differ within a text.")

    @property
    def vocabulary(self):
        groups = ("f", self.fillers), ("k", self.keys), ("v", self.values)
        names = [f"{letter}{i}" for letter, count in groups for i in range(count)]
        return dict(enumerate([*names, "KEY", "VAL", "ASK"]))

    def tokens(self, n):
        return n + 1 + self.queries + self.queries * self.per_key * self.width + 3

    def make(self, key, n, n_max):
        where, who, what, noise, which = jax.random.split(key, 5)
        rows, q, span = n.shape[0], self.needles, 3 + self.width
        keys = q // self.per_key  # the number of keys in the text
        spare = q * (span - 1)  # a needle is one block among the fillers
        block = distinct_positions(where, n - spare, q, n_max - spare)
        rank = jnp.sum(block[:, :, None] > block[:, None, :], axis=2, dtype=INT)
        k = self.fillers + distinct(who, jnp.zeros((rows, self.keys), FLOAT), keys)
        v = integers(what, rows, q * self.width, self.values).reshape(rows, q, self.width)
        v = self.fillers + self.keys + v
        KEY, VAL, ASK = (jnp.full((rows, q, 1), self.alphabet - 3 + word, INT) for word in range(3))
        needle = jnp.concatenate([KEY, jnp.repeat(k, self.per_key, axis=1)[:, :, None], VAL, v], axis=2)
        x = _hidden(integers(noise, rows, n_max, self.fillers), needle, block + rank * (span - 1))
        j = distinct_positions(which, jnp.full_like(n, keys), self.queries, keys)
        prompt = _then(x, n, jnp.concatenate([ASK[:, 0], gather(k, j)], axis=1))
        at = block.reshape(rows, keys, self.per_key)
        v = jnp.take_along_axis(v.reshape(*at.shape, self.width), jnp.argsort(at, axis=2)[..., None], axis=2)
        answer = jnp.take_along_axis(v, j[:, :, None, None], axis=1).reshape(rows, -1)
        m = jnp.full_like(n, answer.shape[1])
        depth = {"depth": 10 * gather(at.min(axis=2), j[:, :1])[:, 0] // (n - spare)}
        return prompted(self, n, self.tokens(n_max), prompt, n + 1 + self.queries, answer, m, depth)

    def answer(self, prompt):
        ask, mark = self.alphabet - 1, self.alphabet - 3
        haystack, queries = prompt[1 : prompt.index(ask)], prompt[prompt.index(ask) + 1 : -1]
        values = {}
        for i, token in enumerate(haystack):
            if token == mark:
                values.setdefault(haystack[i + 1], []).extend(haystack[i + 3 : i + 3 + self.width])
        return [value for k in queries for value in values[k]] + [self.special("EOS")]


class Passkey(Task, name="passkey"):
    """Repeat the digits that are somewhere in a haystack (Mohtashami and Jaggi, 2023, §4.2).

    f f KEY 7 0 3 3 1 f f f SEP  ->  7 0 3 3 1 EOS       n is the haystack with the key, which starts anywhere

    The digits are the tokens 0 to 9, then come the fillers, then KEY. "depth" is the tenth in which the key starts.
    """

    layout = Layout.LM
    ability = "recall"
    suites = ("recall",)
    choices = 10
    least = {"fillers": 1, "digits": 1}
    samples = ({"fillers": 1, "digits": 2},)

    fillers: int = 16
    digits: int = 5

    alphabet = property(lambda task: 10 + task.fillers + 1)
    vocabulary = property(lambda task: {10 + i: f"f{i}" for i in range(task.fillers)} | {10 + task.fillers: "KEY"})
    sizes = property(lambda task: _sizes(1 + task.digits))

    def tokens(self, n):
        return n + self.digits + 3

    def make(self, key, n, n_max):
        where, what, noise = jax.random.split(key, 3)
        digits = integers(what, n.shape[0], self.digits, 10)
        start = between(where, 0, n - 1 - self.digits)
        needle = jnp.pad(digits, ((0, 0), (1, 0)), constant_values=self.alphabet - 1)
        x = _hidden(10 + integers(noise, n.shape[0], n_max, self.fillers), needle[:, None, :], start[:, None])
        depth = {"depth": 10 * start // (n - self.digits)}
        return prompted(self, n, self.tokens(n_max), x, n, digits, jnp.full_like(n, self.digits), depth)

    def answer(self, prompt):
        return [token for token in prompt if token < 10] + [self.special("EOS")]


def _sizes(least):
    high = max(256, least)
    return Sizes(least, (max(64, least), high), tuple(n for n in (512, 1024, 2048, 4096) if n > high))


def _hidden(x, needle, start):
    """x [B, L] with needles [B, q, span] written into it from start [B, q] on."""
    at = start[:, :, None] + jnp.arange(needle.shape[2], dtype=INT)[None, None, :]
    row = jnp.arange(x.shape[0], dtype=INT)[:, None]
    return x.at[row, at.reshape(x.shape[0], -1)].set(needle.reshape(x.shape[0], -1))


def _then(x, n, question):
    """x with the question written after its first n tokens."""
    width = question.shape[1]
    i = jnp.broadcast_to(jnp.arange(x.shape[1] + width, dtype=INT)[None, :], (x.shape[0], x.shape[1] + width))
    return jnp.where(i < n[:, None], gather(x, i), gather(question, i - n[:, None]))
