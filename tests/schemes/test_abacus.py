"""Abacus: a row for a digit's place, one for what is no digit; and the digits that a text gives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.lab.tasks import coupling

DIMS = posenc.Dims(8, 2, 4, 6)


def made(text="abacus"):
    scheme = posenc.parse(text)
    return scheme, posenc.init(scheme, jax.random.key(0), DIMS)


def test_rows_are_unit_normal_and_as_many_as_said():
    table = made("abacus(rows=4000)")[1]["layer"]["table"]
    assert table.shape == (4000, 8) and abs(float(table.std()) - 1) < 0.02


def test_what_is_no_digit_has_a_row_of_its_own_and_padding_none():
    scheme, params = made()
    segments = np.array([1, 1, 1, 0])
    out = posenc.embed(scheme, params, jnp.zeros((4, 8)), positions=np.array([0, 1, 2, 0]), segments=segments)
    np.testing.assert_array_equal(out[:3], params["layer"]["table"][:3])
    assert not out[3].any()


@pytest.mark.parametrize(("positions", "why"), [([1024], "no row .* abacus"), ([-1], "-1")])
def test_a_place_without_a_row_is_refused_and_nan_inside_jit(positions, why):
    scheme, params = made()
    with pytest.raises(ValueError, match=why):
        posenc.embed(scheme, params, jnp.zeros((1, 8)), positions=np.array(positions))
    inside = jax.jit(lambda at: posenc.embed(scheme, params, jnp.zeros((1, 8)), positions=at))
    assert np.isnan(inside(jnp.array(positions))).all()


def test_real_places_and_too_few_rows_are_refused():
    scheme, params = made()
    with pytest.raises(TypeError, match="float32"):
        posenc.embed(scheme, params, jnp.zeros((1, 8)), positions=np.zeros(1, np.float32))
    with pytest.raises(
        ValueError, match="'abacus' has rows=1; it must be at least 2: a row for other tokens, then the places"
    ):
        posenc.parse("abacus(rows=1)")


def test_digits_are_counted_from_one_in_each_number():
    flags = jnp.array([[1, 1, 0, 1, 1, 1, 0, 0], [0, 1, 1, 0, 1, 0, 1, 1]]) > 0
    np.testing.assert_array_equal(coupling.digits(flags), [[1, 2, 0, 1, 2, 3, 0, 0], [0, 1, 2, 0, 1, 0, 1, 2]])
