"""Bitwise or of two strings.

@inproceedings{mcleish2024transformers, title={Transformers Can Do Arithmetic with the Right Embeddings},
  author={McLeish, Sean and Bansal, Arpit and others}, booktitle={NeurIPS}, year={2024}, eprint={2405.17399}}
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp

from posenc.lab.tasks.digits import Other, check_other, counts, digit_coordinates, largest, spelled, ways
from posenc.lab.tasks.draw import INT, between, integers
from posenc.lab.tasks.layout import prompted
from posenc.lab.tasks.task import Layout, Sizes, Task

OR = 2  # the bits are the tokens 0 and 1


class BitwiseOr(Task, name="bitwise_or"):
    """Or of two strings of bits, aligned at their beginning (McLeish et al., 2024, there "positional or").

    0 1 + 1 0 0 1 SEP 1 1 0 1 EOS

    Where one string has ended, the other is copied. SEP is their =. The answer and EOS are scored. n is the length of
    the longer string; that of the other is drawn so that all pairs up to a length are equally likely; both are strata.
    `other` fixes it: the first string has n bits, the second as many ("same") or that number. Provides "digit", a bit's
    place in its string.

    `bits` are fair. With "as_released" exactly one bit is 1; it is in the shorter string, or in either if they are
    equally long; all such pairs of strings up to a length are equally likely. The task is then to copy the longer
    string and add that bit.
    """

    layout = Layout.LM
    ability = "arithmetic"
    suites = ("arithmetic",)
    samples = ({"bits": "as_released"}, {"other": 4}, {"bits": "as_released", "other": 4})
    alphabet, choices = 3, 2
    vocabulary = {OR: "+"}
    sizes = Sizes(1, (1, 20), (21, 30, 40, 60, 80, 100))

    bits: Literal["fair", "as_released"] = "fair"
    other: Other = "any"

    def validate(self):
        super().validate()
        check_other(self, self.other, what="bits")

    def ways(self, n):
        return n * n if self.bits == "as_released" and self.other == "any" else ways(n, 2, self.other)

    def tokens(self, n):
        return n + 2 * largest(n, self.other) + (min(n, self.other) if isinstance(self.other, int) else n) + 4

    def make(self, key, n, n_max):
        pair, first, second = jax.random.split(key, 3)
        top = largest(n_max, self.other)
        place = jnp.arange(top, dtype=INT)[None, :]
        if self.bits == "fair":
            lengths = counts(pair, n, 2, self.other)
            values = [
                jnp.where(place < c[:, None], integers(word, n.shape[0], top, 2), 0)
                for word, c in zip((first, second), lengths, strict=True)
            ]
        else:
            lengths, index, holder = self._single_bit(pair, n)
            values = [((place == index[:, None]) & (holder == which)[:, None]).astype(INT) for which in (0, 1)]
        total = jnp.maximum(*lengths)
        length = self.tokens(n_max)
        prompt = spelled(jnp.stack(values, axis=1), lengths, length, sign=OR, backwards=True)
        strata = {"bits_a": lengths[0], "bits_b": lengths[1]}
        batch = prompted(self, n, length, prompt, lengths[0] + lengths[1] + 1, jnp.maximum(*values), total, strata)
        i = jnp.arange(length, dtype=INT)[None, :] - 1
        return batch._replace(coords=batch.coords | {"digit": digit_coordinates(i, [*lengths, total])[1]})

    def _single_bit(self, key, n):
        """Lengths, the index of the 1, and its string: uniform over all triples whose longer string has n bits."""
        row, column, fair = jax.random.split(key, 3)
        if self.other != "any":
            lengths = counts(row, n, 2, self.other)
            shorter = jnp.minimum(*lengths)
            index, tie = between(column, 0, shorter - 1), between(fair, 0, jnp.ones_like(n))
            return lengths, index, jnp.where(lengths[0] == lengths[1], tie, (lengths[1] < lengths[0]).astype(INT))
        # n² triples: a shorter string of j bits, on either side, has j places for the 1; two strings of n bits have n.
        x, y = between(row, 1, n), between(column, 0, n - 1)
        low = y < x
        shorter, index = jnp.where(low, x, n - x), jnp.where(low, y, y - x)
        left = jnp.where(x == n, between(fair, 0, jnp.ones_like(n)) == 0, low)
        lengths = [jnp.where(left, shorter, n), jnp.where(left, n, shorter)]
        return lengths, index, jnp.where(left, 0, 1)

    def answer(self, prompt):
        cut = prompt.index(OR)
        a, b = prompt[1:cut], prompt[cut + 1 : -1]
        longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
        return (
            [int(x or y) for x, y in zip(shorter, longer, strict=False)]
            + longer[len(shorter) :]
            + [self.special("EOS")]
        )
