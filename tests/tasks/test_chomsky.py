"""The fifteen tasks of the Chomsky hierarchy: what only long strings, released code and published tables show."""

from itertools import chain, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.tasks import automata, binary
from posenc.lab.tasks.layout import ended
from tests.tasks.law import even
from tests.tasks.task_checks import QUICK, agrees_with_its_oracle, drawn, is_well_formed, p_value, rows

LONG = ["stack_manipulation", "modular_arithmetic_brackets", "solve_equation"]
LONG += ["binary_addition", "binary_multiplication", "compute_sqrt"]


@pytest.mark.parametrize("long", LONG)
def test_the_longest_strings_of_the_papers_are_what_the_oracle_says(long):
    batch = drawn(tasks.parse(long), 500, rows=16)
    agrees_with_its_oracle(tasks.parse(long), batch)


def test_after_the_end_of_an_answer_slots_are_weighed_and_not_scored():
    one = jnp.ones(1, jnp.int32)
    task, answer = tasks.parse("binary_addition"), jnp.array([[1, 1, 1]], jnp.int32)
    batch = ended(task, 3 * one, 9, jnp.array([[1, 2, 1]], jnp.int32), 3 * one, answer, 2 * one, 4 * one)
    assert batch.tokens[0].tolist() == [1, 2, 1, 3, 3, 3, 3, 4, 4]
    assert batch.targets[0].tolist() == [0, 0, 0, 1, 1, 2, 0, 0, 0]
    assert batch.weight[0].tolist() == [0, 0, 0, 1, 1, 1, 1, 0, 0]
    assert batch.score[0].tolist() == [False] * 3 + [True] * 3 + [False] * 3


def shapes(n):
    """The law of where signs stand in n characters, by the grammar; all digits are 0 and all operators +."""
    if n < 5:
        return {[(0,), (6, 0), (8, 0, 9), (8, 6, 0, 9)][n - 1]: 1.0}
    sides = [product(shapes(left).items(), shapes(n - 3 - left).items()) for left in range(1, n - 3)]
    return {(8, *a, 5, *b, 9): p * q / (n - 4) for (a, p), (b, q) in chain(*sides)}


@pytest.mark.ci
def test_brackets_nest_by_the_grammar():
    batch = drawn(tasks.parse("modular_arithmetic_brackets"), 13, rows=20_000)
    found = []
    for (text, _), depth in zip(rows(batch), batch.strata["depth"], strict=True):
        operator = [t in (5, 6, 7) and (text[i - 1] < 5 or text[i - 1] == 9) for i, t in enumerate(text)]
        found.append(tuple(5 if o else 0 if t < 5 else t for o, t in zip(operator, text, strict=True)))
        assert depth == max(np.cumsum([(t == 8) - (t == 9) for t in text]))
    assert p_value(found, shapes(13)) > 1e-3
    assert p_value(found, even(shapes(13))) < 1e-9


def test_a_number_of_zeros_is_drawn_again_and_never_stays_0(monkeypatch):
    monkeypatch.setattr(binary, "integers", lambda key, batch, length, high: jnp.zeros((batch, length), jnp.int32))
    width = jnp.repeat(jnp.array([3, 30, 40], jnp.int32), 4000)
    bits = np.asarray(binary.positive(jax.random.key(0), width, 45)).astype(np.int64)
    numbers = (bits << np.arange(45)).sum(axis=1)
    assert p_value(numbers[:4000].tolist(), dict.fromkeys(range(1, 8), 1 / 7)) > 1e-3
    for drawn_again in (numbers[4000:8000], numbers[8000:]):
        assert drawn_again.min() >= 1 and drawn_again.max() < 2**30
        np.testing.assert_allclose(drawn_again.mean(), 2**29, rtol=0.04)


@pytest.mark.ci
def test_carries_run_through_the_whole_number():
    i = jnp.arange(401)[None, :]
    ones, one, half = (jnp.where(i < width, 1, 0).astype(jnp.int32) for width in (400, 1, 200))
    assert binary.add(ones, one)[0].tolist() == [0] * 400 + [1]
    square = sum(bit << i for i, bit in enumerate(binary.multiply(half, half)[0].tolist()))
    assert square == (2**200 - 1) ** 2
    root = binary.root(jnp.full((1, 200), 3, jnp.int32))  # of 4^200 - 1
    assert root[0].tolist() == [1] * 200


def test_as_released_a_product_wraps_at_32_bits():
    """16 fours are 2³²: 0 as released, and 1 mod 5."""
    fours, times = jnp.full((1, 16), 4, jnp.int32), jnp.full((1, 16), automata.TIMES, jnp.int32)
    many = jnp.array([16], jnp.int32)
    value = jax.jit(automata._value, static_argnames="reduced", compiler_options=QUICK)
    assert value(fours, times, many, reduced=False).tolist() == [0]
    assert value(fours, times, many, reduced=True).tolist() == [1]


RELEASED = {
    "missing_duplicate_string": {1: {((1,), (1,))}},
    "solve_equation": {1: {((0,), (0,))}, 2: {((0, 0), (0,))}},
    "binary_addition": {1: {((0,), (0, 2))}, 2: {((0, 0), (0, 2)), ((1, 0), (1, 2)), ((0, 1), (0, 1, 2))}},
    "binary_multiplication": {1: {((0,), (2,))}, 2: {(pair, (0, 2)) for pair in ((0, 0), (1, 0), (0, 1))}},
}


@pytest.mark.parametrize("filled", RELEASED)
def test_as_released_sizes_without_a_question_are_filled_as_there(filled):
    task = tasks.parse(f"{filled}(as_released=True)")
    for n, expected in RELEASED[filled].items():
        batch = drawn(task, n, rows=64, n_max=6)
        is_well_formed(task, batch)
        assert {(tuple(prompt), tuple(target)) for prompt, target in rows(batch)} == expected
        with pytest.raises(ValueError, match=f"{filled!r}.* size {n}"):
            tasks.parse(filled).check_size(n)


@pytest.mark.ci
@pytest.mark.parametrize("filled", RELEASED)
def test_as_released_all_other_sizes_are_as_ever(filled):
    ever, released = (drawn(tasks.parse(text), 7, rows=32) for text in (filled, f"{filled}(as_released=True)"))
    jax.tree.map(np.testing.assert_array_equal, ever, released)
