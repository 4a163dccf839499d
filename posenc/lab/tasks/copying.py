"""Copying and reversing after a prompt, as a language model does it (Kazemnejad et al., 2023, §4).

Their data pass natural-language prompts through the tokenizer of T5; here the vocabulary is the symbols themselves.
Their repeat variants use the same strings at every length, in training and in test; here the repeated symbol is drawn.

@inproceedings{kazemnejad2023impact, title={The Impact of Positional Encoding on Length Generalization in Transformers},
  author={Kazemnejad, Amirhossein and Padhi, Inkit and others}, booktitle={NeurIPS}, year={2023}}
@inproceedings{zhou2024algorithms, title={What Algorithms can Transformers Learn? A Study in Length Generalization},
  author={Zhou, Hattie and Bradley, Arwen and others}, booktitle={ICLR}, year={2024}, eprint={2310.16028}}
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp

from posenc.lab.tasks.coupling import copied
from posenc.lab.tasks.draw import FLOAT, INT, between, distinct, gather, integers
from posenc.lab.tasks.layout import prompted
from posenc.lab.tasks.task import Layout, Sizes, Task
from posenc.language.registry import later

SIZES = Sizes(1, (4, 20), (21, 24, 28, 32, 36, 40))


class Copy(Task, name="copy"):
    """Repeat the prompt (Kazemnejad et al., 2023, table 1).

    random         x SEP -> x EOS              random_twice   x SEP -> x NEXT x EOS
    repeat         aⁿ SEP -> aⁿ EOS            repeat_twice   aⁿ SEP -> a²ⁿ EOS
    substitute     a b TO aⁿ SEP -> bⁿ EOS, a ≠ b

    n is the length of the source; NEXT and TO are the token `symbols`. "random" and "repeat" provide "coupled": a
    symbol and its copy share a number.

    `hints` puts a marker before every symbol of x, in prompt and answer alike: H_s x₁ H_{s+1} x₂ …, where the markers
    are the tokens from `symbols` on, `hints` of them, and s is random, so that short strings train all of them (index
    hints; Zhou et al., 2023, §5; from memory of the paper, which released no code). Only "random" has them.

    With `distinct` no symbol of x occurs twice, so n is at most `symbols`, and the symbol before tells where to go on
    (copy with unique tokens; Zhou et al., 2023, §4). Only "random" without hints has it.
    """

    layout = Layout.LM
    ability = "copying"
    suites = ("kazemnejad", "quick")
    least = {"symbols": 2, "hints": 0}
    samples = (
        *({"variant": v} for v in ("random_twice", "repeat", "repeat_twice", "substitute")),
        {"hints": 44, "symbols": 10},
        {"distinct": True, "symbols": 40},
    )

    variant: Literal["random", "random_twice", "repeat", "repeat_twice", "substitute"] = "random"
    symbols: int = 100
    hints: int = later(0)
    distinct: bool = later(False)

    alphabet = property(lambda task: task.symbols + task.hints + (task.variant in ("random_twice", "substitute")))
    choices = property(lambda task: task.symbols + task.hints)

    def validate(self):
        super().validate()
        if self.hints and (self.variant != "random" or self.hints < 4):
            raise ValueError(
                f"hints must be 0, or 4 or more with variant='random', not {self.hints} with {self.variant!r}."
            )
        if self.distinct and (self.variant != "random" or self.hints):
            raise ValueError(
                "distinct=True is for variant='random' without hints; "
                f"leave it out with variant={self.variant!r} and hints={self.hints}."
            )

    @property
    def vocabulary(self):
        names = {"substitute": {self.symbols: "TO"}, "random_twice": {self.symbols: "NEXT"}}
        return names.get(self.variant, {self.symbols + s: f"H{s}" for s in range(self.hints)})

    @property
    def sizes(self):
        if not (self.hints or self.distinct):
            return SIZES
        most = self.hints or self.symbols
        low, high = SIZES.train
        beyond = tuple(n for n in SIZES.evaluation if n <= most)
        return Sizes(1, (min(low, most), min(high, most)), beyond, most)

    def tokens(self, n):
        return self._prompt(n) + self._answer(n) + 3

    def make(self, key, n, n_max):
        prompt, answer = self._text(key, n, n_max)
        batch = prompted(self, n, self.tokens(n_max), prompt, self._prompt(n), answer, self._answer(n))
        return _coupled(batch, self._prompt(n)[:, None]) if self.variant in ("random", "repeat") else batch

    def _text(self, key, n, n_max):
        """The texts before and after SEP; a single column stands for a symbol repeated as often as needed."""
        if self.hints:
            word, start = jax.random.split(key)
            x, first = integers(word, n.shape[0], n_max, self.symbols), between(start, 0, self.hints - n)
            markers = self.symbols + first[:, None] + jnp.arange(n_max, dtype=INT)[None, :]
            text = jnp.stack([markers, x], -1).reshape(n.shape[0], -1)
            return text, text
        if self.variant in ("random", "random_twice"):
            if self.distinct:
                x = distinct(key, jnp.zeros((n.shape[0], self.symbols), FLOAT), n_max)
            else:
                x = integers(key, n.shape[0], n_max, self.symbols)
            if self.variant == "random":
                return x, x
            j, middle = jnp.arange(2 * n_max + 1, dtype=INT)[None, :], n[:, None]
            return x, jnp.where(j == middle, self.symbols, gather(x, jnp.where(j < middle, j, j - middle - 1)))
        word, other = jax.random.split(key)
        a = integers(word, n.shape[0], 1, self.symbols)
        if self.variant != "substitute":
            return a, a
        b = (a + 1 + integers(other, n.shape[0], 1, self.symbols - 1)) % self.symbols
        return jnp.concatenate([a, b, jnp.full_like(a, self.symbols), a], axis=1), b

    def _prompt(self, n):
        return n + 3 if self.variant == "substitute" else self._each(n)

    def _answer(self, n):
        return {"random_twice": 2 * n + 1, "repeat_twice": 2 * n}.get(self.variant, self._each(n))

    def _each(self, n):
        """How many tokens n symbols take."""
        return 2 * n if self.hints else n

    def answer(self, prompt):
        x, end = prompt[1:-1], [self.special("EOS")]
        if self.variant == "random_twice":
            return [*x, self.symbols, *x, *end]
        if self.variant == "repeat_twice":
            return x + x + end
        if self.variant == "substitute":
            return [x[1]] * (len(x) - 3) + end
        return x + end


def _coupled(batch, middle, backwards=False):
    """Return the examples with the coordinate "coupled", of all tokens between BOS and EOS."""
    i = jnp.arange(batch.tokens.shape[1], dtype=INT)[None, :]
    coupled = jnp.where((i > 0) & (i < 2 * middle + 2), copied(i - 1, middle, backwards=backwards), 0)
    return batch._replace(coords={**batch.coords, "coupled": coupled.astype(INT)})


class Reverse(Task, name="reverse"):
    """Write the prompt backwards (Kazemnejad et al., 2023, table 1).

    once           x SEP -> x̄ EOS              twice          x SEP -> x̄ NEXT x̄ EOS
    then_copy      x SEP -> x̄ NEXT x EOS

    x̄ is x reversed; NEXT is the token `symbols`. "once" provides "coupled": a symbol and its copy share a number.
    """

    layout = Layout.LM
    ability = "copying"
    suites = ("kazemnejad",)
    sizes = SIZES
    least = {"symbols": 2}
    samples = ({"variant": "twice"}, {"variant": "then_copy"})

    variant: Literal["once", "twice", "then_copy"] = "once"
    symbols: int = 100

    alphabet = property(lambda task: task.symbols + (task.variant != "once"))
    vocabulary = property(lambda task: {task.symbols: "NEXT"} if task.variant != "once" else {})
    choices = property(lambda task: task.symbols)

    def tokens(self, n):
        return n + self._answer(n) + 3

    def make(self, key, n, n_max):
        x, middle = integers(key, n.shape[0], n_max, self.symbols), n[:, None]
        j = jnp.arange(self._answer(n_max), dtype=INT)[None, :]
        again = j - middle - 1  # the index after NEXT
        where = jnp.where(j < middle, middle - 1 - j, again if self.variant == "then_copy" else middle - 1 - again)
        answer = jnp.where(j == middle, self.symbols, gather(x, where))  # NEXT, or the padding after a single answer
        batch = prompted(self, n, self.tokens(n_max), x, n, answer, self._answer(n))
        return _coupled(batch, middle, backwards=True) if self.variant == "once" else batch

    def _answer(self, n):
        return n if self.variant == "once" else 2 * n + 1

    def answer(self, prompt):
        x, end = prompt[1:-1], [self.special("EOS")]
        if self.variant == "once":
            return x[::-1] + end
        return [*reversed(x), self.symbols, *(x if self.variant == "then_copy" else reversed(x)), *end]
