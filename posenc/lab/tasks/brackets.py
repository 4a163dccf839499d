"""Arithmetic with brackets, after the deterministic context-free tasks of Delétang et al. (2023).

Their grammar, ℓ the length of an expression:

    E(1) = d      E(2) = -d      E(3) = (d)      E(4) = (-d)
    E(ℓ) = ( E(l) op E(r) )      l uniform on 1 … ℓ-4, r = ℓ-3-l, op and digits uniform

Sampled without a stack: an expression of length ℓ that starts at t determines where its right operand starts and how
long it is. So one pass from the left finds the expression that starts at each index, and one from the right its value.

@inproceedings{deletang2023neural, title={Neural Networks and the {C}homsky Hierarchy},
  author={Del{\\'e}tang, Gr{\\'e}goire and Ruoss, Anian and others}, booktitle={ICLR}, year={2023}}
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from posenc.lab.tasks.draw import FLOAT, INT, between, gather, integers, pick, put, uniforms
from posenc.lab.tasks.layout import one_slot
from posenc.lab.tasks.strings import EVALUATION, SIZES
from posenc.lab.tasks.task import Layout, Sizes, Task

PLUS, MINUS, TIMES, OPEN, CLOSE = 5, 6, 7, 8, 9
SIGNS = "01234+-*()"


class Expressions(NamedTuple):
    """A batch of expressions: tokens, the first n of which count, and values mod 5."""

    text: Int[Array, "B L"]
    value: Int[Array, " B"]
    depth: Int[Array, " B"]  # of the brackets


def expressions(key: PRNGKeyArray, n: Int[Array, " B"], n_max: int, operators: int) -> Expressions:
    """Expressions of n characters with the first `operators` of + - *."""
    digit, operator, cut = jax.random.split(key, 3)
    batch, i = n.shape[0], jnp.arange(n_max, dtype=INT)[None, :]
    d = integers(digit, batch, n_max, 5)
    op = PLUS + integers(operator, batch, n_max, operators)
    length, left = _plan(n, uniforms(cut, batch, n_max))
    before_right = jnp.pad((length[:, 1:] > 0) & (length[:, :-1] == 0), ((0, 0), (0, 1)))
    text = jnp.select(
        [length == 1, length == 2, length > 2, before_right],
        [d, jnp.full_like(d, MINUS), jnp.full_like(d, OPEN), op],
        CLOSE,
    ).astype(INT)
    value = _value(length, left, d, gather(op, i + 1 + left))
    step = jnp.where(i < n[:, None], (text == OPEN).astype(INT) - (text == CLOSE).astype(INT), 0)
    return Expressions(text, value, jnp.max(jnp.cumsum(step, axis=1, dtype=INT), axis=1))


def _plan(n: Int[Array, " B"], u: Array) -> tuple[Int[Array, "B L"], Int[Array, "B L"]]:
    """For each index the length of the expression that starts there (0 where none does) and of its left operand."""
    batch, n_max = u.shape
    row = jnp.arange(batch, dtype=INT)

    def step(carry, here):
        first, right = carry  # length of a first operand that starts here; lengths of right operands to come
        t, u = here
        length = first + right[t]
        left = jnp.where(length > 4, (u * (length - 4).astype(FLOAT)).astype(INT) + 1, 0)
        second = jnp.where(length > 4, t + left + 2, n_max)
        right = right.at[second, row].set(length - 3 - left, mode="drop")
        inner = jnp.select([length > 4, length > 2], [left, length - 2], length - 1)
        return (jnp.maximum(inner, 0), right), (length, left)

    start = n, jnp.zeros((n_max, batch), INT)
    _, (length, left) = jax.lax.scan(step, start, (jnp.arange(n_max, dtype=INT), u.T))
    return length.T, left.T


def _value(length, left, d, op) -> Int[Array, " B"]:
    """The value of the expression at index 0; `op` is the operator between the operands of the one that starts here."""
    n_max, row = d.shape[1], jnp.arange(d.shape[0], dtype=INT)

    def step(worth, here):
        t, length, left, d, op = here
        a, b = worth[t + 1], worth[jnp.minimum(t + left + 2, n_max), row]
        both = jnp.select([op == PLUS, op == MINUS], [a + b, a - b], a * b)
        v = jnp.select([length == 1, length == 2, length <= 4], [d, -a, a], both) % 5
        return worth.at[t].set(v), None

    each = jnp.arange(n_max, dtype=INT), length.T, left.T, d.T, op.T
    worth, _ = jax.lax.scan(step, jnp.zeros((n_max + 1, d.shape[0]), INT), each, reverse=True)
    return worth[0]


class ModularArithmeticBrackets(Task, name="modular_arithmetic_brackets"):
    """The value of an expression with brackets, mod 5 (Delétang et al., 2023, table B.1).

    8 3 6 2 9 ?  ->  1                 (3 - 2); digits 0–4, 5 is +, 6 is −, 7 is ·, 8 and 9 are brackets

    A product is 0 more often than anything else, so the answer 0 is right 29 % of the time at n = 40 and more at longer
    ones, where the papers compare with 20 %. Token 10 is reserved by the released code and never drawn; it is kept so
    that widths agree. Stratum "depth": of the brackets.
    """

    layout = Layout.CLASSIFY
    ability = "arithmetic"
    suites = ("chomsky",)
    alphabet, classes = 11, 5
    vocabulary = {PLUS: "+", MINUS: "-", TIMES: "·", OPEN: "(", CLOSE: ")"}
    sizes = SIZES

    def make(self, key, n, n_max):
        made = expressions(key, n, n_max, 3)
        return one_slot(self, n, self.tokens(n_max), made.text, n, made.value, {"depth": made.depth})

    def answer(self, prompt):
        return [eval("".join(SIGNS[token] for token in prompt)) % 5]


class SolveEquation(Task, name="solve_equation"):
    """The digit that makes an equation true, mod 5 (Delétang et al., 2023, table B.1).

    7 9 5 1 8 10 4 ?  ->  3            (x + 1) = 4; digits 0–4, 5 is +, 6 is −, 7 and 8 are brackets, 9 is x, 10 is =

    Nothing is multiplied, so each digit counts once, plus or minus, and there is one answer. x hides the next digit,
    cyclically, from a uniform index on. The released code fills n = 1 and n = 2, where there is no equation, with zeros
    (`as_released`); here n ≥ 3. Stratum "depth": of the brackets.
    """

    layout = Layout.CLASSIFY
    ability = "arithmetic"
    suites = ("chomsky",)
    samples = ({"as_released": True},)
    alphabet, classes = 11, 5
    vocabulary = dict(enumerate("+-()x=", 5))

    as_released: bool = False

    sizes = property(lambda task: SIZES if task.as_released else Sizes(3, (3, 40), EVALUATION))

    def make(self, key, n, n_max):
        write, hide = jax.random.split(key)
        length, i = n - 2, jnp.arange(n_max, dtype=INT)[None, :]
        made = expressions(write, jnp.maximum(length, 1), n_max, 2)
        digit = (made.text < PLUS) & (i < length[:, None])
        start = between(hide, 0, jnp.maximum(length, 1) - 1)[:, None]
        x = jnp.argmin(jnp.where(digit, jnp.where(i < start, i + n_max, i), 2 * n_max), axis=1).astype(INT)
        text = put(jnp.where(made.text > TIMES, made.text - 1, made.text), x, 9)
        text = put(put(text, length, 10), length + 1, made.value)
        none = n < 3  # as released: an equation of zeros
        text, target = jnp.where(none[:, None], 0, text), jnp.where(none, 0, pick(made.text, x))
        return one_slot(self, n, self.tokens(n_max), text, n, target, {"depth": jnp.where(none, 0, made.depth)})

    def answer(self, prompt):
        if len(prompt) < 3:
            return [0]
        *left, _, value = ["01234+-()x="[token] for token in prompt]
        return [d for d in range(5) if eval("".join(left).replace("x", str(d))) % 5 == int(value)]
