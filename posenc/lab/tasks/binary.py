"""Arithmetic on binary numbers of any length, after the context-sensitive tasks of Delétang et al. (2023).

A number is a row of bits, least significant first unless stated otherwise, and 0 beyond its length. The released code
draws numbers with Python's generator and ignores the key; here the key decides.

@inproceedings{deletang2023neural, title={Neural Networks and the {C}homsky Hierarchy},
  author={Del{\\'e}tang, Gr{\\'e}goire and Ruoss, Anian and others}, booktitle={ICLR}, year={2023}}
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from posenc.lab.tasks.draw import INT, between, gather, index, integers
from posenc.lab.tasks.layout import ended, slots
from posenc.lab.tasks.strings import EVALUATION, SIZES
from posenc.lab.tasks.task import Layout, Sizes, Task

SIGN = 2
"""The token between two numbers, and the class that ends an answer."""
DRAWN = 30
"""How many bits one draw of int32 fills."""

Bits = Int[Array, "B L"]
Flags = Bool[Array, "B L"]


def _length(x: Bits) -> Int[Array, " B"]:
    """The length of a number without its high zeros."""
    return jnp.max(jnp.where(x > 0, index(x) + 1, 0), axis=1)


def positive(key: PRNGKeyArray, width: Int[Array, " B"], n_max: int) -> Bits:
    """Uniform on 1 … 2^width - 1.

    Fair bits; where all are 0, a second draw among the positive numbers. With more than 30 bits that draw fills only
    the low ones, which happens once in 2^31 rows.
    """
    fair, again = jax.random.split(key)
    bits = integers(fair, width.shape[0], n_max, 2)
    i = index(bits)
    bits = jnp.where(i < width[:, None], bits, 0)
    other = between(again, 1, jnp.left_shift(1, jnp.minimum(width, DRAWN)) - 1)
    other = jnp.right_shift(other[:, None], jnp.minimum(i, DRAWN)) & 1
    return jnp.where(jnp.any(bits > 0, axis=1, keepdims=True), bits, other)


def _carries(makes: Flags, passes: Flags) -> tuple[Flags, Bool[Array, " B"]]:
    """Return the bits that get a carry, or a borrow, and whether one remains at the end.

    A bit sends a carry if it produces one, or passes on the one it gets. These functions compose, so the depth is log
    L.
    """

    def merge(low, high):
        return high[0] | (high[1] & low[0]), high[1] & low[1]

    sent, _ = jax.lax.associative_scan(merge, (makes, passes), axis=1)
    return jnp.pad(sent[:, :-1], ((0, 0), (1, 0))), sent[:, -1]


def add(x: Bits, y: Bits) -> Bits:
    """x + y."""
    s = x + y
    return s % 2 ^ _carries(s == 2, s == 1)[0]


def multiply(x: Bits, y: Bits) -> Bits:
    """x · y, as by hand: column c adds the bits xᵢ y_{c-i} and the carry of the column before."""

    def column(before, bit):
        window, carry = before
        window = _push(window, bit)  # y_c, y_{c-1}, …
        total = carry + jnp.sum(x & window, axis=1, dtype=INT)
        return (window, total // 2), total % 2

    _, bits = jax.lax.scan(column, (jnp.zeros_like(x), jnp.zeros_like(x[:, 0])), y.T)
    return bits.T


def root(pairs: Int[Array, "B H"]) -> Bits:
    """⌊√N⌋, most significant bit first, of a number written as digits 0 … 3, most significant first.

    Each digit gives a bit: 1 if four times the root so far, plus 1, can be subtracted from the remainder.
    """

    ones = jnp.ones_like(pairs[:, 0])

    def step(before, digit):
        rest, so_far = before
        rest, take = _push(rest, digit // 2, digit % 2), _push(so_far, 0 * ones, ones)
        borrow, short = _carries(rest < take, rest == take)
        bit = jnp.where(short, 0, 1)
        rest = jnp.where(short[:, None], rest, rest ^ take ^ borrow)
        return (rest, _push(so_far, bit)), bit

    nothing = jnp.zeros((pairs.shape[0], pairs.shape[1] + 2), INT)  # the remainder is at most twice the root
    _, bits = jax.lax.scan(step, (nothing, nothing), pairs.T)
    return bits.T


def _push(x: Bits, *bits: Int[Array, " B"]) -> Bits:
    """x shifted up with these bits as its lowest, the last of them lowest; as many at its top are dropped."""
    low = jnp.stack(bits[::-1], axis=1)
    return jnp.concatenate([low, x[:, : -len(bits)]], axis=1)


class BinaryAddition(Task, name="binary_addition"):
    """Add two binary numbers (Delétang et al., 2023, table B.1).

    0 0 1 2 0 1 1 0 1 ? …  ->  0 1 0 1 1 2 · · · ·       4 + 22 = 26, least significant bit first; 2 is +, and the end

    The first number's length is uniform on 1 … n - 2, and neither number is 0; the sum has no high zeros. There are
    n + 1 slots: a 2 ends the answer and is scored with it; 0s fill the rest, which count in the loss, as in the paper,
    but not in the metric. For n = 1 and n = 2 the released code has a single number, never all ones, and the answer is
    that number (`as_released`); here n ≥ 3. Strata "digits_a", "digits_b": the written lengths of the numbers.
    """

    layout = Layout.TAG
    ability = "arithmetic"
    suites = ("chomsky",)
    samples = ({"as_released": True},)
    alphabet = classes = 3
    vocabulary = {SIGN: "+"}

    as_released: bool = False

    sizes = property(lambda task: SIZES if task.as_released else Sizes(3, (3, 40), EVALUATION))

    def tokens(self, n):
        return 2 * n + 1

    def make(self, key, n, n_max):
        text, x, y, strata = _two(key, n, n_max)
        answer = jnp.where((n < 3)[:, None], text, add(x, y))
        k = jnp.maximum(_length(jnp.where(index(answer) < n[:, None], answer, 0)), 1)
        return ended(self, n, self.tokens(n_max), text, n, answer, k, n + 1, strata)

    def answer(self, prompt):
        return _written(sum(_numbers(prompt)))


class BinaryMultiplication(Task, name="binary_multiplication"):
    """Multiply two binary numbers (Delétang et al., 2023, table B.1).

    0 0 1 2 0 1 1 0 1 ? …  ->  0 0 0 1 1 0 1 2 ·         4 · 22 = 88, least significant bit first; 2 is ·, and the end

    As `binary_addition`, but with n slots. The released code's answer is empty at n = 1 and 0 at n = 2 (`as_released`).
    """

    layout = Layout.TAG
    ability = "arithmetic"
    suites = ("chomsky",)
    samples = ({"as_released": True},)
    alphabet = classes = 3
    vocabulary = {SIGN: "·"}

    as_released: bool = False

    sizes = property(lambda task: SIZES if task.as_released else Sizes(3, (3, 40), EVALUATION))

    def make(self, key, n, n_max):
        text, x, y, strata = _two(key, n, n_max)
        answer = jnp.where((n < 3)[:, None], 0, multiply(x, y))
        k = jnp.where(n < 3, n - 1, _length(answer))
        return ended(self, n, self.tokens(n_max), text, n, answer, k, n, strata)

    def answer(self, prompt):
        if len(prompt) < 3:
            return [*[0] * (len(prompt) - 1), SIGN]
        return _written(math.prod(_numbers(prompt)))


def _two(key: PRNGKeyArray, n: Int[Array, " B"], n_max: int):
    """The text of two positive numbers with a sign between them, n tokens in all, and the two numbers.

    Below n = 3 there is one number, uniform on 0 … 2^n - 2: the complement of a positive number.
    """
    cut, first, second = jax.random.split(key, 3)
    both = n > 2
    a = jnp.where(both, between(cut, 1, jnp.maximum(n - 2, 1)), n)
    b = n - 1 - a
    x, y = positive(first, a, n_max), positive(second, jnp.maximum(b, 1), n_max)
    x = jnp.where(both[:, None], x, 1 - x)
    i, at = index(x), a[:, None]
    text = jnp.where(i < at, x, jnp.where(i == at, SIGN, gather(y, i - at - 1)))
    return text, x, y, {"digits_a": a, "digits_b": jnp.where(both, b, 0)}


def _numbers(prompt: list[int]) -> list[int]:
    texts = "".join(map(str, prompt)).split(str(SIGN))
    return [int(text[::-1], 2) for text in texts]


def _written(number: int) -> list[int]:
    return [*map(int, reversed(f"{number:b}")), SIGN]


class ComputeSqrt(Task, name="compute_sqrt"):
    """The square root of a binary number, rounded down (Delétang et al., 2023, table B.1).

    1 0 0 1 0 1 ? ? ?  ->  1 1 0                         √37, most significant bit first, ⌈n/2⌉ slots with high zeros

    The number is uniform on 1 … 2ⁿ - 1. The released code's docstring gives 101 for 37; the code itself is right.
    """

    layout = Layout.TAG
    ability = "arithmetic"
    suites = ("chomsky",)
    alphabet = classes = 2
    sizes = SIZES

    def tokens(self, n):
        return n + (n + 1) // 2

    def make(self, key, n, n_max):
        bits = positive(key, n, n_max)
        first = 2 * jnp.arange((n_max + 1) // 2, dtype=INT)[None, :] - (n % 2)[:, None]
        high = jnp.where(first < 0, 0, gather(bits, first))  # an odd length gets a zero in front
        answer = root(2 * high + gather(bits, first + 1))
        return slots(self, n, self.tokens(n_max), bits, n, answer, (n + 1) // 2)

    def answer(self, prompt):
        number = int("".join(map(str, prompt)), 2)
        return [int(bit) for bit in f"{math.isqrt(number):0{(len(prompt) + 1) // 2}b}"]
