"""Multiplication: of a long number by a short one, and of two long numbers.

@inproceedings{cho2024position, title={Position Coupling: Improving Length Generalization of Arithmetic Transformers
  Using Task Structure}, author={Cho, Hanseul and Cha, Jaeyoung and others}, booktitle={NeurIPS}, year={2024},
  eprint={2405.20671}}
@inproceedings{mcleish2024transformers, title={Transformers Can Do Arithmetic with the Right Embeddings},
  author={McLeish, Sean and Bansal, Arpit and others}, booktitle={NeurIPS}, year={2024}, eprint={2405.17399}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks import coupling
from posenc.lab.tasks.digits import (
    TEN,
    Other,
    carried,
    check_other,
    counts,
    digit_coordinates,
    largest,
    number,
    product,
    spelled,
    ways,
    written,
)
from posenc.lab.tasks.draw import INT, integers
from posenc.lab.tasks.layout import prompted
from posenc.lab.tasks.task import Layout, Sizes, Task

TIMES = TEN


class MultiplyNxM(Task, name="multiply_nxm"):
    """Multiply a long number by one of m digits (Cho et al., 2024).

    1 2 * 0 3 SEP 6 3 0 0 EOS            m = 2

    The first factor has n digits, the second m, including leading zeros; a first factor of one digit may be 0. The
    answer is padded to n + m digits and reversed. SEP is their =. The answer and EOS are scored. Provides "coupled" (in
    both factors numbers rise up to the sign after them; in the answer they descend from the number below that sign's)
    and "digit" (a digit's place in its number as written). For m = 1 the second factor is 0 in one example of ten, and
    all these have the same answer.
    """

    layout = Layout.LM
    ability = "arithmetic"
    suites = ("arithmetic",)
    least = {"m": 1}
    samples = ({"m": 2},)
    alphabet, choices = TIMES + 1, TEN
    vocabulary = {TIMES: "*"}
    sizes = Sizes(1, (1, 40), (41, 50, 60, 75, 100))

    m: int = 1

    def tokens(self, n):
        return 2 * n + 2 * self.m + 4

    def make(self, key, n, n_max):
        first, second = jax.random.split(key)
        a, b = number(first, n, n_max, zero=True), integers(second, n.shape[0], self.m, TEN)
        m = jnp.full_like(n, self.m)
        batch, i = _products(self, n, n_max, a, b, (n, m), n + m, backwards=False)
        coupled = coupling.multiplication(i, n[:, None], self.m, n[:, None] + self.m)
        inside = (i >= 0) & (i <= 2 * (n[:, None] + self.m) + 1)
        return batch._replace(coords=batch.coords | {"coupled": jnp.where(inside, coupled, 0)})

    def answer(self, prompt):
        text = "".join("*" if token == TIMES else str(token) for token in prompt[1:-1])
        a, b = text.split("*")
        digits = str(int(a) * int(b)).zfill(len(a) + len(b))
        return [int(c) for c in reversed(digits)] + [self.special("EOS")]


class MultiplicationAbacus(Task, name="multiplication_abacus"):
    """Multiply two long numbers, units first (McLeish et al., 2024).

    3 5 6 * 9 4 SEP 7 9 9 1 3 EOS        653 · 49 = 31997

    All numbers are reversed and not padded, and no factor is 0. SEP is their =. The answer and EOS are scored. n is the
    number of digits of the longer factor; that of the other is drawn as in the paper, where all pairs are equally
    likely; both are strata. `other` fixes it: the first factor has n digits, the second as many ("same") or that
    number. Provides "digit", a digit's place in its number.
    """

    layout = Layout.LM
    ability = "arithmetic"
    suites = ("arithmetic",)
    samples = ({"other": "same"}, {"other": 2})
    alphabet, choices = TIMES + 1, TEN
    vocabulary = {TIMES: "*"}
    sizes = Sizes(1, (1, 15), (16, 18, 20, 22, 25))

    other: Other = "any"

    def validate(self):
        super().validate()
        check_other(self, self.other)

    def ways(self, n):
        return ways(n, 2, self.other)

    def tokens(self, n):
        return 2 * (n + (self.other if isinstance(self.other, int) else n)) + 4

    def make(self, key, n, n_max):
        pair, first, second = jax.random.split(key, 3)
        lengths = counts(pair, n, 2, self.other)
        top = largest(n_max, self.other)
        a, b = (number(word, c, top, zero=False) for word, c in zip((first, second), lengths, strict=True))
        return _products(self, n, n_max, a, b, lengths, None, backwards=True)[0]

    def answer(self, prompt):
        cut = prompt.index(TIMES)
        a, b = (int("".join(map(str, word[::-1]))) for word in (prompt[1:cut], prompt[cut + 1 : -1]))
        return [int(c) for c in reversed(str(a * b))] + [self.special("EOS")]


def _products(task, n, n_max, a, b, factors, total, *, backwards):
    """Examples of a product, with the answer from the units on, and the index of each token after BOS."""
    result = carried(product(a, b), 81 * min(a.shape[1], b.shape[1]))
    total = written(result) if total is None else total
    length, width = task.tokens(n_max), max(a.shape[1], b.shape[1])
    values = jnp.stack([jnp.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in (a, b)], axis=1)
    prompt = spelled(values, factors, length, sign=TIMES, backwards=backwards)
    strata = {"digits_a": factors[0], "digits_b": factors[1]}
    batch = prompted(task, n, length, prompt, factors[0] + factors[1] + 1, result, total, strata)
    i = jnp.arange(length, dtype=INT)[None, :] - 1
    return batch._replace(coords=batch.coords | {"digit": digit_coordinates(i, [*factors, total])[1]}), i
