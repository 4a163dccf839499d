"""ALiBi: slopes, signs, and what becomes of them where codebases differ."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.schemes import alibi
from tests.oracles.alibi import slopes as of_the_paper
from tests.schemes.helpers import bias, made


def slopes(heads):
    return np.asarray(alibi.slope(jnp.arange(128), heads))[:heads]  # of one shape, compiled once


def test_slopes_are_those_of_the_paper_for_every_number_of_heads_to_128():
    for heads in range(1, 129):
        m = slopes(heads)
        np.testing.assert_allclose(m, of_the_paper(heads), rtol=1e-6)
        assert ((m > 0) & (m <= 1)).all() and len(np.unique(m)) == heads


def test_slopes_learned_through_a_logistic_start_anywhere_near_an_eighth():
    """The authors' answer to readers, sigmoids of N(-2, 1) on each side."""
    _, params = made("alibi(form='sided', slopes='logistic')", posenc.Dims(4, 4096, 1, 16))
    drawn = np.stack([params["heads"]["past"], params["heads"]["future"]])
    assert abs(drawn.mean() + 2) < 0.05 and abs(drawn.std() - 1) < 0.05
    assert np.abs(np.corrcoef(drawn)[0, 1]) < 0.05


def test_far_apart_the_penalty_is_still_exact_where_the_key_only_form_is_not():
    near = 2**20 + np.arange(4)
    np.testing.assert_array_equal(bias(*made("alibi"), near), bias(*made("alibi"), np.arange(4)))


def test_the_smallest_fraction_is_one_head():
    dims = posenc.Dims(width=8, heads=4, head=2, trained=4)
    scheme = posenc.bind(posenc.parse("alibi(fraction=1e-9)"), dims)
    q = jnp.zeros((5, 4, 2))
    v = jnp.broadcast_to(jnp.arange(5.0)[:, None, None], q.shape)
    out = posenc.attend(scheme, posenc.init(scheme, jax.random.key(0), dims), q, q, v)
    assert out[4, 0, 0] > 2.001 and jnp.allclose(out[4, 1:, 0], 2.0)
