"""Tokens that share a position in position coupling, task by task (Cho et al., 2024, §4; their `src/data`).

Each rule is a function of the indices i of a text and of its lengths, arrays of NumPy or jax, traced or not. `start` is
the smallest number. Random shifts are added where the numbers are used (`given("coupled", shift=...)`). Tokens without
a rule have 0. Our tasks provide "coupled" by `copied`, `sums` and `multiplication`, and "row" and "col" by `board`.
They provide "digit" by `digits` or where they write their numbers. `scratchpad` is for users' tasks, and none provides
"time".

@inproceedings{cho2024position, title={Position Coupling: Improving Length Generalization of Arithmetic Transformers
  Using Task Structure}, author={Cho, Hanseul and Cha, Jaeyoung and others}, booktitle={NeurIPS}, year={2024}}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

Ids = Int[Array, "*batch T"]


def copied(i: Any, n: Any, *, start: int = 1, backwards: bool = False) -> Ids:
    """`x₀ … x_{n-1} = y₀ … y_{n-1}`: a symbol and its copy share a number, whether copied forwards or backwards.

    The = has the number before the first symbol's, or backwards the one after the last's.
    """
    if backwards:
        return jnp.where(i <= n, start + i, start + 2 * n - i)
    return start + jnp.where(i < n, 1 + i, i - n)


def addition(
    i: Any, a: Any, b: Any, answer: Any, *, start: int = 1, reverse_input: bool = False, reverse_output: bool = True
) -> Ids:
    """`a + b = answer`, from the numbers of digits: digits of equal weight share a number, the units the smallest.

    The + has the number before the units', and so has the = where the answer is written from its units on; else the =
    has the number after that of the answer's first digit.
    """
    return sums(i, (a, b), answer, start=start, reverse_input=reverse_input, reverse_output=reverse_output)


def sums(
    i: Any,
    numbers: Sequence[Any],
    answer: Any,
    *,
    start: int = 1,
    reverse_input: bool = False,
    reverse_output: bool = True,
) -> Ids:
    """`a + b + … = answer`, as `addition` numbers two."""
    begin, sign, weight = 0, False, 0
    for n, count in enumerate((*numbers, answer)):
        up = i - begin  # how many digits of its number precede this one
        rising = reverse_output if n == len(numbers) else reverse_input
        weight = jnp.where(up >= 0, up if rising else count - 1 - up, weight)
        begin = begin + count + 1
        sign = sign | (i == begin - 1)
    equals = begin - answer - 2
    last = 0 if reverse_output else answer + 1
    return start + jnp.select([i == equals, sign], [last + 0 * i, 0 * i], 1 + weight)


def multiplication(i: Any, a: Any, b: Any, answer: Any, *, start: int = 1, reverse_output: bool = True) -> Ids:
    """`a * b = answer`, from the numbers of digits: both factors rise to their sign, and the answer ends below it."""
    times, equals = a, a + b + 1
    end = start + a + b
    place = i - equals - 1
    product = jnp.where(reverse_output, end - 1 - place, end - answer + place)
    return jnp.select([i <= times, i <= equals], [end - a + i, end - b + i - times - 1], product)


def board(i: Any, width: Any, height: Any, *, start: tuple[int, int] = (1, 1)) -> tuple[Ids, Ids]:
    """Return the columns and rows of a board and of the one after it, `cells = cells`, row by row. The = has those
    before."""
    cells = width * height
    cell = jnp.where(i > cells, i - cells - 1, i)
    equals = i == cells
    column = start[0] + jnp.where(equals, 0, 1 + cell % width)
    return column, start[1] + jnp.where(equals, 0, 1 + cell // width)


def scratchpad(
    a: int,
    b: int,
    partial: Sequence[int],
    sums: Sequence[int],
    *,
    start: tuple[int, int, int] = (1, 1, 1),
    reverse_input: bool = True,
    reverse_output: bool = True,
) -> Int[np.ndarray, "3 T"]:
    """`a * b = p₀ + p₁ + … = s₀ > s₁ > …`, three axes, from the numbers of digits of all of them.

    The axes: the digit of the first factor that a digit of a partial product comes from; the digit of the second
    factor that produced a number; the digit of the result. A sign counts with the number after it; 0 where an axis
    does not apply.
    """

    def run(low: int, count: int, rising: bool) -> list[int]:
        return list(range(low, low + count))[:: 1 if rising else -1]

    digit, operand, result = start
    first = run(digit + reverse_output, a, reverse_input) + [0] * (b + 1)
    second = [0] * (a + 1) + run(operand, b, reverse_input)
    third = [0] * (a + 1 + b)
    for n, count in enumerate(partial):
        first += run(digit, count + 1, reverse_output)
        second += [operand + n] * (count + 1)
        third += run(result + n, count + 1, reverse_output)
    for n, count in enumerate(sums):
        first += [0] * (count + 1)
        second += [operand + n] * (count + 1)
        third += run(result, count + 1, reverse_output)
    return np.array([first, second, third], np.int32)


def digits(flags: Bool[Array, "*batch T"]) -> Ids:
    """Return the place of each digit in its number, from 1; other tokens have 0 (Abacus, McLeish et al., 2024, §3)."""
    place = jnp.broadcast_to(jnp.arange(flags.shape[-1], dtype=jnp.int32), flags.shape)
    before = jax.lax.cummax(jnp.where(flags, -1, place), flags.ndim - 1)  # the last token that is not a digit
    return jnp.where(flags, place - before, 0)
