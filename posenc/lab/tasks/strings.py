"""Strings rewritten into empty slots, after Delétang et al. (2023) and Ruoss et al. (2023).

    x₁ … xₙ ? … ?  ->  the answer in the m slots, all scored; not autoregressive

Their evaluation keeps dropout on and omits the first unseen length. Both concern training and evaluation, and the data
here are the same. Every legal size is drawn by the task's rule. If the released code fills a size with a constant, that
size is illegal here, unless `as_released`.

@inproceedings{deletang2023neural, title={Neural Networks and the {C}homsky Hierarchy},
  author={Del{\\'e}tang, Gr{\\'e}goire and Ruoss, Anian and others}, booktitle={ICLR}, year={2023}}
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp

from posenc.lab.tasks.coupling import copied
from posenc.lab.tasks.draw import INT, between, gather, index, integers, pick, put
from posenc.lab.tasks.layout import one_slot, slots
from posenc.lab.tasks.task import Layout, Sizes, Task
from posenc.language.registry import later

EVALUATION = (41, 61, 81, 101, 151, 201, 301, 401, 500)
SIZES = Sizes(1, (1, 40), EVALUATION)


def _coupled(batch, ids):
    """Return the examples with the coordinate "coupled": numbers that tokens share, 0 for padding."""
    return batch._replace(coords={"coupled": jnp.where(batch.valid, ids, 0).astype(INT)})


class ReverseString(Task, name="reverse_string"):
    """Write the string backwards (Delétang et al., 2023, table B.1).

    0 1 1 ? ? ?  ->  1 1 0              provides "coupled": a symbol and the slot for it share a number
    """

    layout = Layout.TAG
    ability = "copying"
    suites = ("chomsky",)
    alphabet = classes = 2
    cue = range(2)
    sizes = SIZES

    def make(self, key, n, n_max):
        x = integers(key, n.shape[0], n_max, 2)
        batch = slots(self, n, self.tokens(n_max), x, n, gather(x, n[:, None] - 1 - index(x)), n)
        i, middle = index(batch.tokens), n[:, None]
        return _coupled(batch, copied(i + (i >= middle), middle, backwards=True))  # there is no = in the middle

    def answer(self, prompt):
        return prompt[::-1]


class DuplicateString(Task, name="duplicate_string"):
    """Write the string twice (Delétang et al., 2023, table B.1).

    1 0 ? ? ? ?  ->  1 0 1 0            provides "coupled": a symbol and the slots for it share a number
    """

    layout = Layout.TAG
    ability = "copying"
    suites = ("chomsky",)
    alphabet = classes = 2
    cue = range(2)
    sizes = SIZES

    def tokens(self, n):
        return 3 * n

    def make(self, key, n, n_max):
        x = integers(key, n.shape[0], n_max, 2)
        j = jnp.arange(2 * n_max, dtype=INT)[None, :] % n[:, None]
        batch = slots(self, n, self.tokens(n_max), x, n, gather(x, j), 2 * n)
        return _coupled(batch, copied(index(batch.tokens) % n[:, None], n[:, None], start=0))

    def answer(self, prompt):
        return prompt + prompt


class OddsFirst(Task, name="odds_first"):
    """Write every other token, then the rest (Delétang et al., 2023, table B.1).

    0 0 1 1 0 1 0 1 ? …  ->  0 1 1 1 0 1 0 0

    The released code and its docstring disagree: counted from one, the code writes the second, fourth, … first, the
    docstring states the first, third, …. Published numbers come from the code, so `as_released` is the default.
    """

    layout = Layout.TAG
    ability = "copying"
    suites = ("chomsky",)
    samples = ({"order": "as_described"},)
    alphabet = classes = 2
    cue = range(2)
    sizes = SIZES

    order: Literal["as_released", "as_described"] = "as_released"

    def make(self, key, n, n_max):
        x = integers(key, n.shape[0], n_max, 2)
        start = 1 if self.order == "as_released" else 0
        first = (n[:, None] + 1 - start) // 2
        i = index(x)
        where = jnp.where(i < first, 2 * i + start, 2 * (i - first) + 1 - start)
        return slots(self, n, self.tokens(n_max), x, n, gather(x, where), n)

    def answer(self, prompt):
        head, tail = prompt[1::2], prompt[0::2]
        return head + tail if self.order == "as_released" else tail + head


class BucketSort(Task, name="bucket_sort"):
    """Sort a string over five symbols (Delétang et al., 2023, table B.1).

    1 0 2 4 1 ? …  ->  0 1 1 2 4

    Index and length alone suffice for 78 % at n = 40 and 94 % at n = 500, since a long sorted string is nearly always
    the same; the papers compare with 20 %.
    """

    layout = Layout.TAG
    ability = "sorting"
    suites = ("chomsky",)
    alphabet = classes = 5
    cue = range(5)
    sizes = SIZES

    def make(self, key, n, n_max):
        x = integers(key, n.shape[0], n_max, 5)
        ordered = jnp.sort(jnp.where(index(x) < n[:, None], x, 5), axis=1)
        return slots(self, n, self.tokens(n_max), x, n, ordered, n)

    def answer(self, prompt):
        return [symbol for symbol in range(5) for _ in range(prompt.count(symbol))]


class MissingDuplicateString(Task, name="missing_duplicate_string"):
    """Name the symbol at the one hole in a string written twice (Delétang et al., 2023, table B.1).

    0 1 1 0 0 2 1 0 ?  ->  1           2 is the hole; an odd length ends with a filler, 3

    For n = 1, where nothing is written twice, the released code has the string 1 and the answer 1 (`as_released`); here
    n ≥ 2.
    """

    layout = Layout.CLASSIFY
    ability = "offset"
    suites = ("chomsky", "recall")
    samples = ({"as_released": True},)
    alphabet, classes = 4, 2
    vocabulary = {2: "_", 3: "."}

    as_released: bool = later(False)

    sizes = property(lambda task: SIZES if task.as_released else Sizes(2, (2, 40), EVALUATION))

    def make(self, key, n, n_max):
        word, place = jax.random.split(key)
        x = integers(word, n.shape[0], n_max, 2)
        half = jnp.maximum(n // 2, 1)
        twice = gather(x, index(x) % half[:, None])
        hole = between(place, 0, 2 * half - 1)
        holed = put(jnp.where(index(x) < 2 * half[:, None], twice, 3), hole, 2)
        if self.as_released:
            hole = jnp.where(n == 1, 0, hole)
            holed, twice = (jnp.where((n == 1)[:, None], 1, text) for text in (holed, twice))
        return one_slot(self, n, self.tokens(n_max), holed, n, pick(twice, hole), {"hole": hole})

    def answer(self, prompt):
        if prompt == [1]:
            return [1]
        half, hole = len(prompt) // 2, prompt.index(2)
        return [prompt[hole + half] if hole < half else prompt[hole - half]]
