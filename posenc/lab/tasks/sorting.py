"""Sorting after a prompt, as a language model does it (Kazemnejad et al., 2023, §4): letters, and numbers.

Their data pass natural-language prompts through the tokenizer of T5; here the vocabulary is symbols, or digits and a
comma, without further text.

@inproceedings{kazemnejad2023impact, title={The Impact of Positional Encoding on Length Generalization in Transformers},
  author={Kazemnejad, Amirhossein and Padhi, Inkit and others}, booktitle={NeurIPS}, year={2023}}
"""

from __future__ import annotations

import jax.numpy as jnp

from posenc.lab.tasks.draw import INT, compact, integers, total
from posenc.lab.tasks.layout import prompted
from posenc.lab.tasks.task import Layout, Sizes, Task

SIZES = Sizes(1, (4, 8), tuple(range(9, 17)))
COMMA = 10


class SortSingle(Task, name="sort_single"):
    """Sort symbols of an ordered set (Kazemnejad et al., 2023, table 1: single-token numbers).

    4 1 3 SEP  ->  1 3 4 EOS           symbols uniform, so that some may be equal
    """

    layout = Layout.LM
    ability = "sorting"
    suites = ("kazemnejad",)
    sizes = SIZES
    least = {"symbols": 2}

    symbols: int = 50

    alphabet = property(lambda task: task.symbols)

    def tokens(self, n):
        return 2 * n + 3

    def make(self, key, n, n_max):
        x = integers(key, n.shape[0], n_max, self.symbols)
        return prompted(self, n, self.tokens(n_max), x, n, _ascending(x, n, self.symbols), n)

    def answer(self, prompt):
        return [*sorted(prompt[1:-1]), self.special("EOS")]


class SortMulti(Task, name="sort_multi"):
    """Sort numbers written in digits (Kazemnejad et al., 2023, table 1: multi-digit numbers).

    3 1 , 1 2 0 SEP  ->  3 1 , 1 2 0 EOS       numbers uniform on smallest..largest, 10..9999; , is the token 10

    n is the number of numbers. Their lengths vary, so texts of one size differ in length.
    """

    layout = Layout.LM
    ability = "sorting"
    suites = ("kazemnejad",)
    alphabet = COMMA + 1
    vocabulary = {COMMA: ","}
    sizes = SIZES
    least = {"smallest": 0, "largest": 1}
    samples = ({"smallest": 0, "largest": 120},)

    smallest: int = 10
    largest: int = 9999

    def validate(self):
        super().validate()
        if not self.smallest < self.largest < 10**9:
            raise ValueError(
                f"Numbers from {self.smallest} to {self.largest} cannot be sorted; 'smallest' must be below 'largest',"
                " and 'largest' below 10**9."
            )

    @property
    def width(self) -> int:
        """Digits of the longest number."""
        return len(str(self.largest))

    def tokens(self, n):
        return 2 * (n * self.width + n - 1) + 3

    def make(self, key, n, n_max):
        x = self.smallest + integers(key, n.shape[0], n_max, self.largest - self.smallest + 1)
        prompt, p = self._written(x, n)
        answer, _ = self._written(_ascending(x, n, self.largest), n)
        return prompted(self, n, self.tokens(n_max), prompt, p, answer, p)

    def _written(self, x, n):
        """The first n numbers in digits with a comma before all but the first, and the length of that text."""
        unit = jnp.array([10**place for place in reversed(range(self.width))], INT)[None, None, :]
        left = x[:, :, None]
        shown = (left >= unit) | (unit == 1)
        text = jnp.concatenate([jnp.full_like(left, COMMA), left // unit % 10], axis=2)
        item = jnp.arange(x.shape[1], dtype=INT)[None, :, None]
        keep = jnp.concatenate([jnp.broadcast_to(item > 0, left.shape), shown], axis=2) & (item < n[:, None, None])
        text, keep = (a.reshape(x.shape[0], -1) for a in (text, keep))
        return compact(text, keep), total(keep)

    def answer(self, prompt):
        numbers = "".join("," if t == COMMA else str(t) for t in prompt[1:-1]).split(",")
        text = ",".join(sorted(numbers, key=int))
        return [COMMA if letter == "," else int(letter) for letter in text] + [self.special("EOS")]


def _ascending(x, n, top):
    """The first n of each row in ascending order; larger or equal entries follow."""
    inside = jnp.arange(x.shape[1], dtype=INT)[None, :] < n[:, None]
    return jnp.sort(jnp.where(inside, x, top), axis=1)
