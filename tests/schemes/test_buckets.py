"""Buckets of distances by logarithms, in whole numbers: T5's and DeBERTa's."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.numerics import bias as module
from posenc.numerics.bias import bucket, disentangled
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


def rows(distance, buckets, reach):
    """The row of each distance, counted from that of distance 0."""
    return np.asarray(disentangled(jnp.asarray(distance), buckets, reach)) - buckets


@pytest.mark.parametrize(("buckets", "reach"), [(256, 512), (32, 128), (8, 20), (4, 5), (16, 17), (6, 33), (10, 1000)])
def test_a_bucket_is_the_logarithm_rounded_up_in_whole_numbers(buckets, reach):
    exact, distance = buckets // 2, np.arange(1, reach + 50)
    steps, place, expected = exact - 1, 0, []
    for d in map(int, distance):
        while d > exact and place < exact and Fraction(d, exact) ** steps > Fraction(reach - 1, exact) ** place:
            place += 1
        expected.append(d if d <= exact else exact + place)
    np.testing.assert_array_equal(rows(-distance, buckets, reach), -np.array(expected))
    np.testing.assert_array_equal(rows(distance, buckets, reach), np.minimum(expected, buckets - 1))
