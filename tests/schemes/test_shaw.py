"""Shaw: clipped distances on keys and values."""

import numpy as np

from tests.schemes.helpers import DIMS, made


def test_heads_share_vectors_only_when_asked():
    own, shared = made("shaw(reach=2)")[1], made("shaw(reach=2, shared=True)")[1]
    assert own["heads"]["key"].shape == (4, 5, 4) and not own["layer"]
    assert shared["layer"]["key"].shape == (5, 4) and not shared["heads"]


def test_tables_start_between_the_bounds_of_glorot():
    key = np.asarray(made("shaw(reach=500)")[1]["heads"]["key"])
    bound = (6 / (1001 + DIMS.head)) ** 0.5
    assert np.abs(key).max() <= bound and abs(key.std() * 3**0.5 / bound - 1) < 0.03
