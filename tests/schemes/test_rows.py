"""CoPE and stick-breaking: what is made of whole rows of scores, and in which order of keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.schemes.helpers import attend, made, tokens

INDEX = np.arange(6, dtype=np.int32)


def places(settings="", scores_in=None, visible=None, npos=9, length=6):
    """The position of each key for each query of one head: queries whose word on a whole position is its number."""
    scheme = posenc.parse(f"cope(npos={npos}, scaled=False{settings})")
    visible = np.tri(length, dtype=bool) if visible is None else visible
    logits = (
        np.random.default_rng(0).normal(size=(length, length)).astype(np.float32) if scores_in is None else scores_in
    )
    by_position = jnp.broadcast_to(jnp.arange(npos, dtype=jnp.float32), (length, npos))
    q, index = jnp.zeros((length, 4)), jnp.arange(length)
    tile = posenc.Tile(
        (by_position, q), (), index, jnp.asarray(logits), 0.5, jnp.asarray(visible), index, index, jnp.int32(0), 1
    )
    return np.asarray(scheme.score({}, tile.logits, tile) - tile.logits), logits


def shut(length=6):
    return np.full((length, length), -40.0, np.float32)


def test_gates_of_tokens_that_are_not_seen_are_nothing():
    """Trap: a count that runs on behind a window, through padding or into the next document."""
    window = (INDEX[:, None] - INDEX < 2) & (np.tri(6) > 0)
    p, _ = places(scores_in=-shut(), visible=window)
    np.testing.assert_allclose(p[5], [2, 2, 2, 2, 2, 1], atol=1e-6)
    hole = np.tri(6, dtype=bool)
    hole[:, 2] = False
    p, _ = places(scores_in=-shut(), visible=hole)
    np.testing.assert_allclose(p[5], [5, 4, 3, 3, 2, 1], atol=1e-6)


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
