"""DeBERTa: two terms that read one row for each pair, and buckets that are whole numbers."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest

from posenc.numerics.bias import disentangled


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
