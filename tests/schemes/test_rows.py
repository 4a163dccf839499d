"""CoPE and stick-breaking: what is made of whole rows of scores, and in which order of keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.schemes.helpers import attend, made, tokens


def embedded(text, seed=1):
    scheme, params = made(text)
    parts = params if isinstance(params, tuple) else (params,)
    one = next(p for p in parts if "embedding" in p["layer"])
    one["layer"]["embedding"] = jax.random.normal(jax.random.key(seed), one["layer"]["embedding"].shape)
    return scheme, params


def test_the_listing_makes_gates_of_what_other_schemes_added_and_the_code_does_not():
    """Alone the two are one scheme, in a sum they are not."""
    q, k, v, _ = tokens(6)
    alone = [attend(*embedded(f"cope(gates={g!r})"), q, k, v) for g in ("keys", "scores")]
    np.testing.assert_array_equal(*alone)
    keys, scores = (attend(*embedded(f"alibi + cope(gates={g!r})"), q, k, v) for g in ("keys", "scores"))
    assert np.abs(keys - scores).max() > 1e-3


@pytest.mark.ci
def test_a_long_row_neither_overflows_nor_loses_its_gradient():
    """Nor do scores of keys that the query does not see."""
    s = jnp.asarray(np.random.default_rng(3).normal(size=(1, 4096)) * 60, jnp.float32)
    scheme, index = posenc.parse("stick_breaking(remainder=True)"), jnp.arange(4096)

    def total(s):
        tile = posenc.Tile((), (), index, s, 1.0, index[None] <= 4085, jnp.array([4085]), index, jnp.int32(0), 1)
        return (scheme.normalize({}, s, tile) * jnp.cos(index)[None, :]).sum()

    value, back = jax.jit(jax.value_and_grad(total))(s)
    assert np.isfinite(value) and np.isfinite(back).all() and np.abs(back).max() > 1e-6
