"""TUPE: a wider product that is the term of positions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.golden.through import scores
from tests.oracles.tupe import term
from tests.schemes.helpers import DIMS, made, tokens


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
