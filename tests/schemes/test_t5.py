"""T5: buckets, to the last distance, and what happens around them."""

import jax
import numpy as np
import pytest

import posenc
from posenc import Dims
from posenc.numerics import bias as module
from posenc.numerics.bias import bucket
from tests.oracles.t5 import bucket as in_whole_numbers
from tests.schemes.helpers import DIMS, attend, made, tokens

FAR = np.arange(-700, 701, dtype=np.int32)


def place(distance, *settings):
    return np.asarray(jax.jit(bucket, static_argnums=(1, 2, 3))(distance, *settings))


@pytest.mark.parametrize(("buckets", "reach"), [(32, 128), (64, 50), (16, 64), (4, 8), (2, 3), (128, 600)])
def test_buckets_are_those_of_a_logarithm_in_whole_numbers(buckets, reach):
    ours = place(FAR[700:], buckets, reach, False)
    theirs = [in_whole_numbers(int(d), buckets, reach) for d in FAR[700:]]
    np.testing.assert_array_equal(ours, theirs)


def test_the_future_shares_bucket_0_when_causal_and_has_its_own_half_otherwise():
    assert (place(FAR[:700], 32, 128, False) == 0).all()
    both = place(FAR, 32, 128, True)
    assert both[:700].min() == 17 and both[:700].max() == 31 and set(both[700:]) == set(range(16))
    np.testing.assert_array_equal(both[:700][::-1] - 16, both[701:])


@pytest.mark.ci
def test_compiled_or_not_a_border_distance_falls_into_the_same_bucket():
    edges = module.thresholds(64, 50)
    near = np.concatenate([edges - 1, edges, edges + 1]).astype(np.int32)
    with jax.disable_jit():
        eager = np.asarray(bucket(near, 64, 50, False))
    np.testing.assert_array_equal(place(near, 64, 50, False), eager)


def test_a_bucket_off_by_one_would_be_noticed(monkeypatch):
    right = module.thresholds
    monkeypatch.setattr(module, "thresholds", lambda *a: right(*a) + (np.arange(len(right(*a))) == 20))
    with pytest.raises(AssertionError):
        theirs = [in_whole_numbers(int(d), 32, 128) for d in FAR[700:]]
        np.testing.assert_array_equal(np.asarray(bucket(FAR[700:], 32, 128, False)), theirs)


def test_the_direction_follows_the_model_unless_it_is_given():
    for causal in (True, False):
        dims = Dims(width=4, heads=1, head=4, trained=8, causal=causal)
        assert posenc.bind(posenc.parse("t5"), dims).bidirectional is not causal
        assert posenc.bind(posenc.parse("t5(bidirectional=True)"), dims).bidirectional is True
    with pytest.raises(ValueError, match="bidirectional"):
        posenc.init(posenc.parse("t5"), jax.random.key(0), DIMS)


def test_the_table_starts_as_a_normal_of_the_width():
    table = made("t5(buckets=1024, reach=2000)", Dims(width=64, heads=8, head=8, trained=4))[1]["heads"]["table"]
    assert table.shape == (8, 1024) and abs(table.std() * 8 - 1) < 0.03 and abs(table.mean()) < 0.005


def test_what_the_model_leaves_without_a_meaning_is_refused_when_it_is_known():
    with pytest.raises(ValueError, match="buckets=6"):
        posenc.bind(posenc.parse("t5(buckets=6)"), Dims(width=4, heads=1, head=4, trained=8, causal=False))


def test_buckets_for_the_past_alone_are_not_used_where_the_future_is_seen():
    q, k, v, _ = tokens(4)
    scheme, params = made("t5")
    assert all("bidirectional" not in s.limits for s in (posenc.parse("t5"), made("t5(bidirectional=True)")[0]))
    both, params = made("t5", Dims(width=6, heads=4, head=4, trained=16, causal=False))
    assert np.isfinite(attend(both, params, q, k, v, mask="full")).all()
