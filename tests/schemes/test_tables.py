"""Learned vectors and binary digits: what has no row is refused, and never another row in silence."""

import jax
import numpy as np
import pytest

import posenc
from posenc import Dims

DIMS = Dims(width=64, heads=2, head=4, trained=6, longest=10)
CASES = [("learned", 10), ("binary(bits=5)", 32)]


def made(text, key=0):
    scheme = posenc.bind(posenc.parse(text), DIMS)
    return scheme, posenc.init(scheme, jax.random.key(key), DIMS)


def embed(text, position, **others):
    scheme, params = made(text)
    x = np.zeros((*np.shape(position)[:-1], np.shape(position)[-1], 64), np.float32)
    return np.asarray(posenc.embed(scheme, params, x, positions=position, **others))


def test_the_table_is_as_long_as_the_model_says():
    assert made("learned")[1]["layer"]["table"].shape == (10, 64)
    short = Dims(width=64, heads=2, head=4, trained=6)
    assert posenc.init(posenc.parse("learned"), jax.random.key(0), short)["layer"]["table"].shape == (6, 64)


def test_initial_values_are_spread_as_declared():
    scheme, dims = posenc.parse("learned"), Dims(256, 2, 4, 500)
    table = np.asarray(posenc.init(scheme, jax.random.key(0), dims)["layer"]["table"])
    assert abs(table.std() / 0.02 - 1) < 0.01 and abs(table.mean()) < 3 * 0.02 / table.size**0.5
    digits = np.asarray(posenc.init(posenc.parse("binary"), jax.random.key(0), dims)["layer"]["digits"])
    assert digits.shape == (16, 256) and abs(digits.std() / 0.25 - 1) < 0.04
    added = embed("binary(bits=11)", np.arange(2048))
    assert abs(added.var() - 1) < 0.1


@pytest.mark.parametrize(("text", "rows"), CASES)
@pytest.mark.parametrize("beyond", [0, 5, 10**6])
def test_a_position_without_a_row_is_refused_with_both_numbers(text, rows, beyond):
    """JAX would repeat the last row."""
    with pytest.raises(ValueError, match=rf"{rows + beyond} .* {rows} .* {rows - 1}"):
        embed(text, np.array([0, rows + beyond]))
    with pytest.raises(ValueError, match="-1"):
        embed(text, np.array([0, -1]))


def test_a_longer_sequence_than_the_table_is_refused_without_positions_too():
    scheme, params = made("learned")
    with pytest.raises(ValueError, match="10"):
        posenc.embed(scheme, params, np.zeros((11, 64), np.float32))


@pytest.mark.parametrize(("text", "rows"), CASES)
def test_inside_jit_a_position_without_a_row_is_nan_and_the_others_are_themselves(text, rows):
    scheme, params = made(text)
    position = np.array([0, rows - 1, rows, rows + 7, -1, -rows, 2])
    x = np.zeros((7, 64), np.float32)
    run = jax.jit(lambda position: posenc.embed(scheme, params, x, positions=position))
    wrong = [2, 3, 4, 5]
    ours = np.asarray(run(position))
    assert np.isnan(ours[wrong]).all()
    np.testing.assert_allclose(np.delete(ours, wrong, 0), embed(text, np.delete(position, wrong)), atol=1e-6)


@pytest.mark.parametrize("text", ["learned", "binary"])
def test_short_integers_are_widened_before_they_overflow(text):
    np.testing.assert_array_equal(embed(text, np.int8([1, 9])), embed(text, np.array([1, 9])))
