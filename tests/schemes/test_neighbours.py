"""Tokens that read those just before them: what one layer can do with that, and where it is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.contract.test_decoding import decode, stepper
from tests.schemes.helpers import DIMS, attend, made, tokens


def test_at_the_start_learned_shifts_change_nothing():
    q, k, v, _ = tokens(7)
    ours, plain = (attend(*made(text), q, k, v) for text in ("kv_shift + rope", "nope + rope"))
    np.testing.assert_allclose(ours, plain, atol=1e-6)


def test_values_may_be_wider_than_keys_where_numbers_mix_them():
    q, k, _, _ = tokens(7)
    v = np.random.default_rng(1).normal(size=(7, DIMS.heads, 9)).astype(np.float32)
    params = {"layer": {name: jnp.array([[0.5, 0.25]] * DIMS.heads) for name in ("key", "value")}, "heads": {}}
    ours = attend(posenc.parse("kv_shift"), params, q, k, v)
    mixed = [0.5 * a + 0.25 * np.pad(a, ((1, 0), (0, 0), (0, 0)))[:-1] for a in (k, v)]
    np.testing.assert_allclose(ours, attend(posenc.parse("nope"), None, q, *mixed), atol=1e-6)


def test_a_part_of_the_keys_moves_whatever_the_width_of_values():
    """Half of 4 features of a key moves, where values have 9, of which there is no half."""
    q, k, _, _ = tokens(7)
    v = np.random.default_rng(1).normal(size=(7, DIMS.heads, 9)).astype(np.float32)
    scheme, params = made("key_offset + kv_shift")
    ours = attend(scheme, params, q, k, v)
    moved = np.concatenate([k[..., :2], np.concatenate([k[:1], k[:-1]])[..., 2:]], -1)
    np.testing.assert_allclose(ours, attend(posenc.parse("nope"), None, q, moved, v), atol=1e-6)


@pytest.mark.parametrize("width", [1, 9])
def test_filters_of_values_are_as_wide_as_keys(width):
    q, k, _, _ = tokens(7)
    with pytest.raises(ValueError, match=f"each of 4 features of a value, and a value has {width}; give"):
        attend(*made("canon"), q, k, np.zeros((7, DIMS.heads, width), np.float32))


def test_a_part_of_the_queries_is_refused_where_they_read_those_before():
    scheme, params = made("canon")
    q, k, v, _ = tokens(7)
    with pytest.raises(ValueError, match="'canon' changes each query by those before it"):
        posenc.attend(scheme, params, q[3:], k, v, query_start=3)


def test_several_keep_apart_what_they_carry():
    """`key_offset + canon + kv_shift` token by token is what it is at once."""
    scheme, params = made("key_offset + canon(k=3) + kv_shift + alibi")
    params = jax.tree.map(lambda a: a + 0.1, params)
    q, k, v, x = tokens(9)
    whole = attend(scheme, params, q, k, v)
    cache = posenc.Cache.empty(scheme, params, DIMS, batch=1, capacity=9)
    out, _ = decode(stepper(scheme, params), cache, [a[None] for a in (q, k, v, x)], (2, 1, 4, 2))
    np.testing.assert_allclose(out[0], whole, atol=1e-5)
