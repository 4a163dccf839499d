"""RoPE: fractions of features and shares of frequencies."""

import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Dims


def turn(text, x, position):
    return posenc.parse(text).query({}, jnp.asarray(x), jnp.asarray(position))[0]


def test_a_fraction_that_is_an_even_number_but_for_rounding_is_taken():
    assert posenc.bind(posenc.parse("rope(fraction=0.3)"), Dims(8, 1, 20, 16)).fraction == 0.3


@pytest.mark.parametrize(("p", "head", "kept"), [(0.58, 100, 29), (0.5, 10, 2), (0.29, 200, 29), (1.0, 8, 4)])
def test_p_keeps_as_many_frequencies_as_its_product_says(p, head, kept):
    """int(0.58 * 50) is 28."""
    turned = turn(f"rope(p={p})", np.ones((1, head), np.float32), np.array([1]))[0, : head // 2]
    assert int((np.asarray(turned) != 1).sum()) == kept


@pytest.mark.parametrize(
    ("setting", "head", "least"), [("p=0.2", 8, 0.25), ("p=0.3", 6, 0.333334), ("p=0.4, fraction=0.5", 8, 0.5)]
)
def test_a_p_that_keeps_nothing_is_refused_with_the_smallest_that_does(setting, head, least):
    with pytest.raises(ValueError, match=rf"p={least}"):
        posenc.bind(posenc.parse(f"rope({setting})"), Dims(8, 1, head, 16))
    smallest = setting.replace(setting.split(",")[0], f"p={least}")
    posenc.bind(posenc.parse(f"rope({smallest})"), Dims(8, 1, head, 16))
