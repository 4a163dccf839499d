"""Shaw: clipped distances on keys and values."""

import numpy as np

import posenc
from tests.schemes.helpers import DIMS, attend, made, tokens


def test_heads_share_vectors_only_when_asked():
    own, shared = made("shaw(reach=2)")[1], made("shaw(reach=2, shared=True)")[1]
    assert own["heads"]["key"].shape == (4, 5, 4) and not own["layer"]
    assert shared["layer"]["key"].shape == (5, 4) and not shared["heads"]
    scheme, _ = made("shaw(reach=2, shared=True)")
    q, k, v, _ = tokens(5)
    split = {"layer": {}, "heads": {n: np.repeat(a[None], 4, 0) for n, a in shared["layer"].items()}}
    each = attend(posenc.parse("shaw(reach=2)"), split, q, k, v)
    np.testing.assert_allclose(attend(scheme, shared, q, k, v), each, atol=1e-6)


def test_tables_start_between_the_bounds_of_glorot():
    key = np.asarray(made("shaw(reach=500)")[1]["heads"]["key"])
    bound = (6 / (1001 + DIMS.head)) ** 0.5
    assert np.abs(key).max() <= bound and abs(key.std() * 3**0.5 / bound - 1) < 0.03


def test_a_reach_of_nothing_is_one_vector_for_all():
    scheme, params = made("shaw(reach=0, values=False)")
    q, k, v, _ = tokens(5)
    np.testing.assert_allclose(attend(scheme, params, q, k, v), attend(*made("nope"), q, k, v), atol=1e-6)
