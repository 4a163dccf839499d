"""Recall by content: the value that was paired with a key (Ba et al., 2016, §4.1, and Fu et al., 2023, §3.1).

@inproceedings{ba2016using, title={Using Fast Weights to Attend to the Recent Past},
  author={Ba, Jimmy and Hinton, Geoffrey and others}, booktitle={NeurIPS}, year={2016}}
@inproceedings{poli2024mechanistic, title={Mechanistic Design and Scaling of Hybrid Architectures},
  author={Poli, Michael and Thomas, Armin W. and others}, booktitle={ICML}, year={2024}, eprint={2403.17844}}
"""

from __future__ import annotations

from itertools import groupby

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import FLOAT, INT, between, compact, distinct, gather, integers, pick, put, total, uniforms
from posenc.lab.tasks.layout import prompted, tagged
from posenc.lab.tasks.task import CAUSAL, Layout, Sizes, Task
from posenc.language.registry import later

NOISE = 16
LONGEST = 3  # tokens of a fuzzy key, and of a fuzzy value


class AssociativeRecall(Task, name="associative_recall"):
    """Name the value of the last token, a key (Ba et al., 2016, §4.1).

    k₁ v₁ … kₙ vₙ k_j SEP  ->  v_j EOS       keys distinct, values and j uniform, n ≤ keys

    A value is the token keys + v. There are 64 keys, not 16, so that a text can have 64 pairs. Results hardly depend on
    the encoding once a model can attend to the previous token, so this task is the control of the quick suite.

    Three variants after MAD (Poli et al., 2024, appendix B). `noise`: a pair other than the queried one is, with this
    probability, replaced by two of 16 noise tokens. `fuzzy`: a key has 1 to 3 tokens and so has a value, all uniform; a
    repeated key keeps its first value. `repeat`: keys are drawn with replacement and keep their first value; there is
    neither a query at the end nor a SEP, but the value is scored at each repeated key. MAD trains on every next token
    and tests on the answers; here both are the answers.
    """

    layout = property(lambda task: Layout.TOKENS if task.repeat else Layout.LM)
    directions = CAUSAL
    ability = "recall"
    suites = ("quick", "recall")
    least = {"keys": 2, "values": 2}
    samples = (
        {"keys": 5, "values": 3},
        {"keys": 8, "values": 8, "noise": 0.2},
        {"keys": 8, "values": 8, "fuzzy": True},
        {"keys": 8, "values": 8, "noise": 0.2, "repeat": True},
    )

    keys: int = 64
    values: int = 16
    noise: float = later(0.0)
    fuzzy: bool = later(False)
    repeat: bool = later(False)

    alphabet = property(lambda task: task.keys + task.values + (NOISE if task.noise else 0))
    classes = property(lambda task: task.values if task.repeat else task.vocab)
    choices = property(lambda task: task.values)
    cue = property(lambda task: range(task.keys, task.keys + task.values))

    def validate(self):
        super().validate()
        if not 0 <= self.noise < 1:
            raise ValueError(f"The setting 'noise' of 'associative_recall' must be in 0 ≤ noise < 1, not {self.noise}.")
        if self.fuzzy and self.repeat:
            raise ValueError("'associative_recall' cannot have both fuzzy=True and repeat=True; choose one.")

    @property
    def vocabulary(self):
        keys = {i: f"k{i}" for i in range(self.keys)}
        return keys | {self.keys + i: f"v{i}" for i in range(self.values)}

    @property
    def sizes(self):
        if self.repeat or self.fuzzy:
            return Sizes(2 if self.repeat else 1, (4, 16), (20, 24, 32, 48, 64))
        beyond = tuple(n for n in (20, 24, 32, 48, 64) if n <= self.keys)
        return Sizes(1, (min(4, self.keys), min(16, self.keys)), beyond, self.keys)

    def tokens(self, n):
        if self.repeat:
            return 2 * n
        return 2 * LONGEST * (n + 1) + 3 if self.fuzzy else 2 * n + 5

    def make(self, key, n, n_max):
        if self.repeat:
            return self._stream(key, n, n_max)
        if self.fuzzy:
            return self._strings(key, n, n_max)
        who, what, which = jax.random.split(key, 3)
        batch = n.shape[0]
        k = distinct(who, jnp.zeros((batch, self.keys), FLOAT), n_max)
        v = self.keys + integers(what, batch, n_max, self.values)
        j = between(which, 0, n - 1)
        pairs = jnp.stack([k, v], axis=2)
        if self.noise:
            replaced, instead = self._noise(key, batch, n_max)
            replaced &= jnp.arange(n_max, dtype=INT)[None, :] != j[:, None]
            pairs = jnp.where(replaced[:, :, None], instead, pairs)
        prompt = put(jnp.pad(pairs.reshape(batch, 2 * n_max), ((0, 0), (0, 1))), 2 * n, pick(k, j))
        p, m, length = 2 * n + 1, jnp.ones_like(n), self.tokens(n_max)
        return prompted(self, n, length, prompt, p, gather(v, j[:, None]), m, {"pair": j})

    def _noise(self, key, batch, n_max):
        """Draw the pairs that are replaced by noise, and the noise [B, n, 2]."""
        whether, which = jax.random.split(jax.random.fold_in(key, 1))
        tokens = self.keys + self.values + integers(which, batch, 2 * n_max, NOISE)
        return uniforms(whether, batch, n_max) < self.noise, tokens.reshape(batch, n_max, 2)

    def _stream(self, key, n, n_max):
        """Pairs drawn with replacement; a target at each repeated key."""
        who, what, _ = jax.random.split(key, 3)
        batch = n.shape[0]
        k, v = integers(who, batch, n_max, self.keys), integers(what, batch, n_max, self.values)
        replaced, instead = self._noise(key, batch, n_max)
        first = _first(k[:, :, None], replaced)
        v = gather(v, first)
        repeated = ~replaced & (first < jnp.arange(n_max, dtype=INT)[None, :])
        pairs = jnp.where(replaced[:, :, None], instead, jnp.stack([k, self.keys + v], axis=2))
        score = jnp.stack([repeated, jnp.zeros_like(repeated)], axis=2).reshape(batch, 2 * n_max)
        return tagged(self, n, pairs.reshape(batch, 2 * n_max), 2 * n, jnp.repeat(v, 2, axis=1), score)

    def _strings(self, key, n, n_max):
        """Keys and values of several tokens each, joined to one text."""
        who, what, which, wide = jax.random.split(key, 4)
        batch, (i, c) = n.shape[0], jnp.meshgrid(jnp.arange(n_max), jnp.arange(LONGEST), indexing="ij")
        k = integers(who, batch, LONGEST * n_max, self.keys).reshape(batch, n_max, LONGEST)
        v = integers(what, batch, LONGEST * n_max, self.values).reshape(batch, n_max, LONGEST)
        width = 1 + integers(wide, batch, 2 * n_max, LONGEST).reshape(batch, n_max, 2)
        j = between(which, 0, n - 1)
        replaced, instead = self._noise(key, batch, n_max)
        replaced &= (jnp.arange(n_max, dtype=INT)[None, :] != j[:, None]) & (self.noise > 0)
        real = c[None] < width[:, :, :1]
        first = _first(jnp.where(real, k, -1), replaced)
        v = self.keys + jnp.take_along_axis(v, first[:, :, None], axis=1)
        lengths = gather(width[:, :, 1], first)
        instead = jnp.pad(instead, ((0, 0), (0, 0), (0, LONGEST - 2)))
        k_real = jnp.where(replaced[:, :, None], c[None] < 2, real)
        v_real = (c[None] < lengths[:, :, None]) & ~replaced[:, :, None]
        text = jnp.concatenate([jnp.where(replaced[:, :, None], instead, k), v], axis=2)
        keep = jnp.concatenate([k_real, v_real], axis=2) & (i[None, :, :1] < n[:, None, None])
        query = j[:, None, None]
        text = jnp.concatenate([text.reshape(batch, -1), jnp.take_along_axis(k, query, axis=1)[:, 0]], axis=1)
        keep = jnp.concatenate([keep.reshape(batch, -1), jnp.take_along_axis(real, query, axis=1)[:, 0]], axis=1)
        answer, m = jnp.take_along_axis(v, query, axis=1)[:, 0], pick(lengths, j)
        return prompted(self, n, self.tokens(n_max), compact(text, keep), total(keep), answer, m, {"pair": j})

    def answer(self, prompt):
        if self.repeat:
            values, answer = {}, []
            for k, v in zip(prompt[::2], prompt[1::2], strict=True):
                if k in values:
                    answer.append(values[k] - self.keys)
                elif k < self.keys:
                    values[k] = v
            return answer
        if self.fuzzy:
            kind = lambda token: (token >= self.keys) + (token >= self.keys + self.values)  # noqa: E731
            runs = [(what, tuple(run)) for what, run in groupby(prompt[1:-1], kind)]
            pairs = zip(runs[::-1][1:], runs[::-1], strict=False)
            values = {run: after for (what, run), (_, after) in pairs if not what}
            return [*values[runs[-1][1]], self.special("EOS")]
        *pairs, query = prompt[1:-1]
        values = dict(zip(pairs[::2], pairs[1::2], strict=True))
        return [values[query], self.special("EOS")]


def _first(k, out):
    """For each of n strings [B, n, c], the first equal one; those marked `out` equal none."""
    same = (k[:, :, None] == k[:, None]).all(axis=3) & ~out[:, None, :]
    return jnp.argmax(same, axis=2).astype(INT)
