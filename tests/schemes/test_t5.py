"""T5: buckets, to the last distance, and what happens around them."""

import jax
import numpy as np
import pytest

from posenc.numerics import bias as module
from posenc.numerics.bias import bucket
from tests.oracles.t5 import bucket as in_whole_numbers

FAR = np.arange(-700, 701, dtype=np.int32)


def place(distance, *settings):
    return np.asarray(jax.jit(bucket, static_argnums=(1, 2, 3))(distance, *settings))


@pytest.mark.parametrize(("buckets", "reach"), [(32, 128), (64, 50), (16, 64), (4, 8), (2, 3), (128, 600)])
def test_buckets_are_those_of_a_logarithm_in_whole_numbers(buckets, reach):
    ours = place(FAR[700:], buckets, reach, False)
    theirs = [in_whole_numbers(int(d), buckets, reach) for d in FAR[700:]]
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.ci
def test_compiled_or_not_a_border_distance_falls_into_the_same_bucket():
    edges = module.thresholds(64, 50)
    near = np.concatenate([edges - 1, edges, edges + 1]).astype(np.int32)
    with jax.disable_jit():
        eager = np.asarray(bucket(near, 64, 50, False))
    np.testing.assert_array_equal(place(near, 64, 50, False), eager)
