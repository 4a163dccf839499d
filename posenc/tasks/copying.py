"""Copying after a prompt, as a language model does it (Kazemnejad et al., 2023, §4).

Their data pass a natural-language frame through the tokenizer of T5; here the vocabulary is the symbols themselves.
Their repeat variants list the same strings at every length, in training and in test; here the repeated symbol is drawn.

@inproceedings{kazemnejad2023impact, title={The Impact of Positional Encoding on Length Generalization in Transformers},
  author={Kazemnejad, Amirhossein and Padhi, Inkit and others}, booktitle={NeurIPS}, year={2023}}
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp

from posenc.tasks.coupling import copied
from posenc.tasks.draw import INT, integers, look
from posenc.tasks.layout import prompted
from posenc.tasks.task import CAUSAL, Layout, Sizes, Task


class Copy(Task, name="copy"):
    """Say the prompt again (Kazemnejad et al., 2023, table 1).

    random         x SEP -> x EOS              random_twice   x SEP -> x NEXT x EOS
    repeat         aⁿ SEP -> aⁿ EOS            repeat_twice   aⁿ SEP -> a²ⁿ EOS
    substitute     a b TO aⁿ SEP -> bⁿ EOS, a ≠ b

    n is the length of the source; NEXT and TO are the token `symbols`. The first and the third offer "coupled": a
    symbol and its copy share a number.
    """

    layout = Layout.LM
    directions = CAUSAL
    metric = "exact"
    ability = ("alignment",)
    suites = ("kazemnejad", "quick")
    least = {"symbols": 2}
    samples = tuple({"variant": v} for v in ("random_twice", "repeat", "repeat_twice", "substitute"))
    sizes = Sizes(1, (4, 20), (21, 24, 28, 32, 36, 40))

    variant: Literal["random", "random_twice", "repeat", "repeat_twice", "substitute"] = "random"
    symbols: int = 100

    @property
    def alphabet(self):
        return self.symbols + (self.variant in ("random_twice", "substitute"))

    @property
    def choices(self):
        return self.symbols

    def tokens(self, n):
        return self._prompt(n) + self._answer(n) + 3

    def make(self, key, n, n_max):
        prompt, answer = self._text(key, n, n_max)
        batch = prompted(self, n, self.tokens(n_max), prompt, self._prompt(n), answer, self._answer(n))
        if self.variant not in ("random", "repeat"):
            return batch
        i, middle = jnp.arange(batch.tokens.shape[1], dtype=INT)[None, :], n[:, None]
        coupled = jnp.where((i > 0) & (i < 2 * middle + 2), copied(i - 1, middle), 0)
        return batch._replace(coords={**batch.coords, "coupled": coupled.astype(INT)})

    def _text(self, key, n, n_max):
        """What stands before and after SEP; one column stands for a symbol repeated as often as needed."""
        if self.variant in ("random", "random_twice"):
            x = integers(key, n.shape[0], n_max, self.symbols)
            if self.variant == "random":
                return x, x
            j, middle = jnp.arange(2 * n_max + 1, dtype=INT)[None, :], n[:, None]
            return x, jnp.where(j == middle, self.symbols, look(x, jnp.where(j < middle, j, j - middle - 1)))
        word, other = jax.random.split(key)
        a = integers(word, n.shape[0], 1, self.symbols)
        if self.variant != "substitute":
            return a, a
        b = (a + 1 + integers(other, n.shape[0], 1, self.symbols - 1)) % self.symbols
        return jnp.concatenate([a, b, jnp.full_like(a, self.symbols), a], axis=1), b

    def _prompt(self, n):
        return n + 3 if self.variant == "substitute" else n

    def _answer(self, n):
        return {"random_twice": 2 * n + 1, "repeat_twice": 2 * n}.get(self.variant, n)

    def answer(self, prompt):
        x, end = prompt[1:-1], [self.special("EOS")]
        if self.variant == "random_twice":
            return [*x, self.symbols, *x, *end]
        if self.variant == "repeat_twice":
            return x + x + end
        if self.variant == "substitute":
            return [x[1]] * (len(x) - 3) + end
        return x + end
