"""Strict settings for every test: no silent broadcasting of ranks, and two host devices as a sweep has."""

import jax
import pytest

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def x64():
    """Float64 for oracles and finite differences, switched off again."""
    with jax.enable_x64(True):
        yield
