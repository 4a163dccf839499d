"""TUPE: a wider product that is the term of positions, one for all layers, and [CLS] set apart."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.golden.through import scores
from tests.oracles.tupe import term
from tests.schemes.helpers import DIMS, attend, made, tokens

BUCKETS = "tupe(buckets=8, reach=6)"
RESET = "tupe(reset=True, buckets=8, reach=6)"


def strong(text, dims=DIMS):
    """Parameters away from where they start."""
    scheme, params = made(text, dims)
    rng = np.random.default_rng(3)
    return scheme, jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape), jnp.result_type(float)), params)


def of_head(params, head):
    return params["layer"] | {n: a[head] for n, a in params["heads"].items()}


@pytest.mark.ci
def test_the_widened_product_is_the_dense_term_also_where_lengths_differ_and_positions_have_no_order(x64):
    """The theorem: a product of widened queries and keys is content by content and place by place, and no more."""
    scheme, params = strong("tupe")
    q, k, _, _ = tokens(7, dtype=np.float64)
    places = np.array([3, 0, 9, 9, 1, 15, 4])
    dense = np.array([[[term(of_head(params, h), a, b) for b in places] for a in places[4:]] for h in range(4)])
    content = np.einsum("qhd,khd->hqk", q[4:], k)
    ours = scores(scheme, params, q[4:], k, positions=places[4:], key_positions=places)
    np.testing.assert_allclose(ours, (content + dense) / 8**0.5, atol=1e-12)


@pytest.mark.ci
def test_no_distance_uses_the_bucket_that_is_kept_for_the_query_cls():
    """The authors reserve half the number of buckets; the future's buckets begin after it."""
    for text, used in ((BUCKETS, False), (RESET, True)):
        scheme, params = strong(text)
        zero = np.zeros((12, 4, 4), np.float32)
        back = jax.jit(jax.grad(lambda p, scheme=scheme, zero=zero: scores(scheme, p, zero, zero).sum()))(params)
        grad = np.asarray(back["heads"]["bias"])
        assert bool(grad[:, 4].any()) is used and np.delete(grad, 4, 1).all()


def test_the_relative_bias_is_its_own():
    assert posenc.parse("tupe").reads == "nothing" and posenc.parse(BUCKETS).reads == "distance"
    assert posenc.parse(RESET).reads == "positions" and not posenc.parse("tupe").overrides("score")


@pytest.mark.parametrize("text", ["tupe", "tupe(reset=True)"])
def test_a_position_without_a_row_is_refused_and_nan_inside_jit(text):
    (scheme, params), rows = made(text), DIMS.trained
    q, k, v, _ = tokens(2)
    for position in (-1, rows):
        with pytest.raises(ValueError, match=f"{position} .*'tupe'"):
            posenc.attend(scheme, params, q, k, v, positions=np.array([2, position]))
        assert np.isnan(np.asarray(attend(scheme, params, q, k, v, positions=np.array([2, position])))[1]).all()
    assert np.isfinite(np.asarray(attend(scheme, params, q, k, v, positions=np.array([2, rows - 1])))).all()
