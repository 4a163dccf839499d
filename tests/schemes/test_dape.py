"""DAPE: the released edge reads where the array of keys ends, so it has no cache."""

import jax.numpy as jnp
import pytest

import posenc
from tests.schemes.helpers import DIMS, made


def test_the_released_edge_has_no_cache():
    scheme, params = made("dape_v2(edge='array')")
    with pytest.raises(ValueError, match="'dape_v2' has no cache: its convolution reads where the array of keys ends"):
        posenc.Cache.empty(scheme, params, DIMS, batch=1, capacity=4, dtype=jnp.float32)
