"""Strings folded into one class, after the regular tasks of Delétang et al. (2023) and Ruoss et al. (2023).

@inproceedings{ruoss2023randomized, title={Randomized Positional Encodings Boost Length Generalization of Transformers},
  author={Ruoss, Anian and Del{\\'e}tang, Gr{\\'e}goire and others}, booktitle={ACL}, year={2023}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import INT, inside, integers, pick, total
from posenc.lab.tasks.layout import one_slot
from posenc.lab.tasks.task import Layout, Sizes, Task
from posenc.language.registry import later

EVALUATION = (41, 61, 81, 101, 151, 201, 301, 401, 500)
SIZES = Sizes(1, (1, 40), EVALUATION)
PLUS, MINUS, TIMES = 5, 6, 7


class EvenPairs(Task, name="even_pairs"):
    """Decide whether 01 and 10 together occur an odd number of times (Delétang et al., 2023, table B.1).

    0 1 0 1 0 0 1 ?  ->  1

    The number of unequal neighbours is odd exactly if the two ends differ, so it suffices to compare the ends.
    """

    layout = Layout.CLASSIFY
    ability = "index"
    suites = ("chomsky",)
    alphabet = classes = 2
    sizes = SIZES

    def make(self, key, n, n_max):
        x = integers(key, n.shape[0], n_max, 2)
        return one_slot(self, n, self.tokens(n_max), x, n, x[:, 0] ^ pick(x, n - 1))

    def answer(self, prompt):
        return [sum(a != b for a, b in zip(prompt, prompt[1:], strict=False)) % 2]


class ParityCheck(Task, name="parity_check"):
    """Decide whether the number of ones is odd (Delétang et al., 2023, table B.1).

    1 0 1 0 1 0 0 ?  ->  1
    """

    layout = Layout.CLASSIFY
    ability = "counting"
    suites = ("chomsky", "state")
    alphabet = classes = 2
    sizes = SIZES

    def make(self, key, n, n_max):
        x = integers(key, n.shape[0], n_max, 2)
        return one_slot(self, n, self.tokens(n_max), x, n, total(inside(x, n)) % 2)

    def answer(self, prompt):
        odd = False
        for bit in prompt:
            odd = odd != (bit == 1)
        return [int(odd)]


class CycleNavigation(Task, name="cycle_navigation"):
    """Walk on a cycle of five and name the final position (Delétang et al., 2023, table B.1).

    2 0 1 0 0 ?  ->  3                 0, 1, 2 are a step back, no step, a step forward
    """

    layout = Layout.CLASSIFY
    ability = "state"
    suites = ("chomsky", "state")
    alphabet, classes = 3, 5
    vocabulary = {0: "back", 1: "stay", 2: "on"}
    sizes = SIZES

    def make(self, key, n, n_max):
        x = integers(key, n.shape[0], n_max, 3)
        return one_slot(self, n, self.tokens(n_max), x, n, (total(inside(x, n)) - n) % 5)

    def answer(self, prompt):
        place = 0
        for step in prompt:
            place = [4, 0, 1, 2, 3][place] if step == 0 else [1, 2, 3, 4, 0][place] if step == 2 else place
        return [place]


class ModularArithmetic(Task, name="modular_arithmetic"):
    """The value of a sum of products, mod 5 (Delétang et al., 2023, table B.1, without brackets).

    1 5 2 7 3 ?  ->  2                 1 + 2·3; digits 0–4, 5 is +, 6 is −, 7 is ·, which binds first

    Lengths are odd: an even n gives strings of length n - 1, so all evaluated sizes are odd (499 for 500). Token 8 is
    reserved by the released code and never drawn; it is kept so that widths agree. The released code multiplies before
    it reduces mod 5, so int32 overflows on rare long products (`as_released`, which also evaluates even sizes); here
    every step is reduced.
    """

    layout = Layout.CLASSIFY
    ability = "arithmetic"
    suites = ("chomsky", "state")
    samples = ({"as_released": True},)
    alphabet, classes = 9, 5
    vocabulary = {PLUS: "+", MINUS: "-", TIMES: "·"}

    as_released: bool = later(False)

    @property
    def sizes(self):
        return SIZES if self.as_released else Sizes(1, (1, 40), tuple(n - 1 + n % 2 for n in EVALUATION))

    def tokens(self, n):
        return n + n % 2  # an odd length and a slot

    def make(self, key, n, n_max):
        digit, sign = jax.random.split(key)
        length, many = n - 1 + n % 2, (n_max + 1) // 2
        d = integers(digit, n.shape[0], many, 5)
        after = PLUS + integers(sign, n.shape[0], many, 3)
        text = jnp.stack([d, after], axis=2).reshape(n.shape[0], 2 * many)
        value = _value(d, after, (length + 1) // 2, reduced=not self.as_released)
        return one_slot(self, n, self.tokens(n_max), text, length, value)

    def answer(self, prompt):
        value, term = 0, prompt[0]
        for sign, digit in zip(prompt[1::2], prompt[2::2], strict=True):
            if sign == TIMES:
                term *= digit
            else:
                value, term = value + term, digit if sign == PLUS else -digit
        value += term
        if self.as_released:
            value = (value + 2**31) % 2**32 - 2**31
        return [value % 5]


def _value(d, after, many, *, reduced):
    """The value mod 5 of the first `many` digits; `after` holds the sign behind each.

    Products of terms are a segmented scan: a term starts where the sign before it is not ·, and its last element holds
    the product. Unless `reduced` at every step, products overflow at 2³².
    """
    before = jnp.pad(after, ((0, 0), (1, 0)), constant_values=PLUS)[:, :-1]
    starts = before != TIMES
    signed = jnp.where(before == MINUS, -d, d)

    def merge(left, right):
        product = left[0] * right[0]
        return jnp.where(right[1], right[0], product % 5 if reduced else product), left[1] | right[1]

    product, _ = jax.lax.associative_scan(merge, (signed, starts), axis=1)
    j = jnp.arange(d.shape[1], dtype=INT)[None, :]
    ends = (after != TIMES) | (j == many[:, None] - 1)
    return total(jnp.where(ends & (j < many[:, None]), product, 0)) % 5
