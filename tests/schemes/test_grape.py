"""GRAPE's additive forms: ALiBi with slopes that tokens choose, and penalties gathered on the way."""

import jax
import numpy as np

import posenc
from tests.schemes.helpers import attend, made, tokens


def test_a_window_leaves_the_penalties_within_it():
    scheme, params = made("grape_ap")
    params = jax.tree.map(lambda a: 5 * a, params)
    q, k, v, x = tokens(7)
    narrow = attend(scheme, params, q, k, v, x, mask=posenc.Window(2, 0))
    where = {"query_start": 2, "positions": np.arange(6, 7), "key_positions": np.arange(4, 7)}
    three = attend(scheme, params, q[-1:], k[4:], v[4:], x[-1:], key_x=x[4:], **where)
    np.testing.assert_allclose(narrow[-1:], three, atol=1e-6)
