"""Addition as written by hand, the highest digit first (Kazemnejad et al., 2023, §4).

Formats that help, and coordinates, are in `posenc.lab.tasks.addition`.

@inproceedings{kazemnejad2023impact, title={The Impact of Positional Encoding on Length Generalization in Transformers},
  author={Kazemnejad, Amirhossein and Padhi, Inkit and others}, booktitle={NeurIPS}, year={2023}}
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp

from posenc.lab.tasks.digits import TEN, carried, counts, number, spelled, ways, written
from posenc.lab.tasks.draw import between
from posenc.lab.tasks.layout import prompted
from posenc.lab.tasks.task import Layout, Sizes, Task

PLUS, TRAINED = TEN, 8


class AdditionKazemnejad(Task, name="addition_kazemnejad"):
    """Add two numbers, the highest digit first (Kazemnejad et al., 2023, table 1: addition).

    5 3 + 7 SEP  ->  6 0 EOS           + is the token 10; strata digits_a, digits_b

    n is the number of digits of the longer operand. The other has `shortest` to n digits, all pairs of lengths being
    equally likely: for n = 9 … 16 this is the released test set, size by size. In the released training set both
    lengths are uniform on 4 … 8 and independent; `law="as_released"` is that law at n = 8, the only size it trains on
    (at any size up to 8, both are uniform on `shortest` … n), and the test set beyond. So most test examples have one
    operand of a trained length: `posenc evaluate --by digits_a,digits_b` shows which. A number of one digit may be 0,
    others begin with 1 … 9. The released code has equally many examples for each pair, so its mean weighs size n by 2(n
    - 4) + 1; a run trains with these weights if `uniform="numbers"`. There is no "coupled": since the answer is not
    padded, the number at SEP would reveal its length.
    """

    layout = Layout.LM
    ability = "arithmetic"
    suites = ("kazemnejad",)
    alphabet, choices = PLUS + 1, TEN
    vocabulary = {PLUS: "+"}
    least = {"shortest": 1}
    samples = ({"law": "as_released"}, {"shortest": 1})

    law: Literal["longest", "as_released"] = "longest"
    shortest: int = 4

    @property
    def sizes(self):
        top = max(TRAINED, self.shortest)
        beyond = tuple(n for n in range(9, 17) if n > top)
        return Sizes(self.shortest, (top if self.law == "as_released" else self.shortest, top), beyond)

    def ways(self, n):
        return ways(n, 2, least=self.shortest) if self.law == "longest" else 1

    def tokens(self, n):
        return 3 * n + 5

    def make(self, key, n, n_max):
        sizes, first, second = jax.random.split(key, 3)
        a, b = self._counts(sizes, n)
        x, y = (number(word, count, n_max + 1, zero=True) for word, count in ((first, a), (second, b)))
        sums = carried(x + y, 18)
        m = written(sums)
        prompt = spelled(jnp.stack([x, y], axis=1), [a, b], 2 * n_max + 1, sign=PLUS, backwards=False)
        answer = spelled(sums[:, None], [m], n_max + 1, sign=PLUS, backwards=False)
        strata = {"digits_a": a, "digits_b": b}
        return prompted(self, n, self.tokens(n_max), prompt, a + 1 + b, answer, m, strata)

    def _counts(self, key, n):
        bound, *free = jax.random.split(key, 3)
        lengths = counts(bound, n, 2, least=self.shortest)
        if self.law == "longest":
            return lengths
        return [
            jnp.where(n <= TRAINED, between(length_key, self.shortest, n), count)
            for length_key, count in zip(free, lengths, strict=True)
        ]

    def answer(self, prompt):
        text = "".join("+" if token == PLUS else str(token) for token in prompt[1:-1])
        return [*map(int, str(sum(map(int, text.split("+"))))), self.special("EOS")]
