"""A matrix constant along its diagonals, made from one number for each, and the sum along each: both by hand."""

import jax
import numpy as np
import pytest

from posenc.attention.kernels.band import STRIP, diagonals, toeplitz

SHAPES = [(1, 9), (9, 1), (7, 7), (5, 12), (STRIP, 3), (STRIP, STRIP), (3 * STRIP, 100), (4 * STRIP, 4 * STRIP)]


def numbered(rows, cols):
    """Which number of the band each entry holds."""
    r, c = np.mgrid[:rows, :cols]
    return r - c + cols - 1


@pytest.mark.parametrize(("rows", "cols"), SHAPES)
def test_each_entry_is_the_number_of_its_diagonal(rows, cols):
    w = np.random.default_rng(0).normal(size=(3, rows + cols - 1)).astype(np.float32)
    np.testing.assert_array_equal(toeplitz(w, rows), w[:, numbered(rows, cols)])


@pytest.mark.parametrize(("rows", "cols"), SHAPES)
def test_its_gradient_is_the_sum_along_each_diagonal(rows, cols):
    s = np.random.default_rng(1).integers(-99, 99, (3, rows, cols)).astype(np.float32)  # exact in any order
    expected = np.zeros((3, rows + cols - 1), np.float32)
    for head in range(3):
        np.add.at(expected[head], numbered(rows, cols), s[head])
    np.testing.assert_array_equal(diagonals(s), expected)
    _, pull = jax.vjp(lambda w: toeplitz(w, rows), expected)
    np.testing.assert_array_equal(pull(s)[0], expected)
