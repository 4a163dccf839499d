"""Recall by content: which value was paired with this key (Ba et al., 2016, §4.1; Fu et al., 2023, §3.1).

@inproceedings{ba2016using, title={Using Fast Weights to Attend to the Recent Past},
  author={Ba, Jimmy and Hinton, Geoffrey and others}, booktitle={NeurIPS}, year={2016}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.tasks.draw import FLOAT, between, distinct, integers, look, pick, put
from posenc.tasks.layout import prompted
from posenc.tasks.task import CAUSAL, Layout, Sizes, Task


class AssociativeRecall(Task, name="associative_recall"):
    """Name the value of the key that is asked for (Ba et al., 2016, §4.1).

    k₁ v₁ … kₙ vₙ k_j SEP  ->  v_j EOS       keys distinct, values and j uniform, n ≤ keys

    A value is the token keys + v. There are 64 keys, not 16, so that 64 pairs can be asked for. Nearly blind to the
    encoding once a model can look one token back, so it is the control of the quick suite.
    """

    layout = Layout.LM
    directions = CAUSAL
    metric = "exact"
    ability = ("recall",)
    suites = ("quick", "recall")
    least = {"keys": 2, "values": 2}
    samples = ({"keys": 5, "values": 3},)

    keys: int = 64
    values: int = 16

    @property
    def alphabet(self):
        return self.keys + self.values

    @property
    def choices(self):
        return self.values

    @property
    def cue(self):
        return range(self.keys, self.keys + self.values)

    @property
    def sizes(self):
        beyond = tuple(n for n in (20, 24, 32, 48, 64) if n <= self.keys)
        return Sizes(1, (min(4, self.keys), min(16, self.keys)), beyond, self.keys)

    def tokens(self, n):
        return 2 * n + 5

    def make(self, key, n, n_max):
        who, what, asked = jax.random.split(key, 3)
        batch = n.shape[0]
        k = distinct(who, jnp.zeros((batch, self.keys), FLOAT), n_max)
        v = self.keys + integers(what, batch, n_max, self.values)
        j = between(asked, 0, n - 1)
        pairs = jnp.stack([k, v], axis=2).reshape(batch, 2 * n_max)
        prompt = put(jnp.pad(pairs, ((0, 0), (0, 1))), 2 * n, pick(k, j))
        p, m, length = 2 * n + 1, jnp.ones_like(n), self.tokens(n_max)
        return prompted(self, n, length, prompt, p, look(v, j[:, None]), m, {"pair": j})

    def answer(self, prompt):
        *pairs, asked = prompt[1:-1]
        told = dict(zip(pairs[::2], pairs[1::2], strict=True))
        return [told[asked], self.special("EOS")]
