"""RoPE that stretches with the text: dynamic_ntk, and longrope's switch between short and long factors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Dims
from posenc.numerics import scaling
from tests.schemes import helpers

DIMS = Dims(width=8, heads=1, head=8, trained=32)
NONE = {"layer": {}, "heads": {}}
BOTH = ["dynamic_ntk(original=4)", "longrope(original=4)"]
SHORT, LONG = (1.0, 1.1, 1.2, 1.3), (1.5, 2.0, 3.0, 4.0)
PHI = f"longrope(long={LONG}, short={SHORT}, original=32)"


def made(text):
    return posenc.bind(text, DIMS)


def tokens(length):
    return helpers.tokens(length, dims=DIMS)[:3]


def extent(position, segment):
    return np.asarray(scaling.extent(jnp.asarray(position), jnp.asarray(segment, jnp.int32)))


def test_the_current_length_is_the_largest_position_of_a_document_plus_one():
    np.testing.assert_array_equal(extent([0, 1, 2, 0, 1], [1, 1, 1, 2, 2]), [3, 3, 3, 2, 2])
    np.testing.assert_array_equal(extent([7, 3, 11, 0], [1, 1, 1, 1]), [12, 12, 12, 12])
    np.testing.assert_array_equal(extent([0.5, 2.25], [1, 1]), [3.25, 3.25])
    np.testing.assert_array_equal(extent([0, 1, 0, 1, 2], [9, 9, 4, 4, 4]), [2, 2, 3, 3, 3])


def test_padding_adds_nothing_to_the_length_and_ends_no_document():
    np.testing.assert_array_equal(extent([0, 90, 1, 2, 99], [1, 0, 1, 1, 0])[[0, 2, 3]], [3, 3, 3])
    np.testing.assert_array_equal(extent([50, 60, 0, 1], [0, 0, 1, 1])[2:], [2, 2])
    assert np.isneginf(extent([5, 6], [0, 0])).all(), "where nothing is real there is no length, and nothing grows"


@pytest.mark.ci
@pytest.mark.parametrize("rule", ["ntk", "linear", "by_parts", "yarn"])
def test_up_to_the_original_length_it_is_rope_to_the_bit(rule):
    """Whatever was run before: published code was wrong at the very border."""
    scheme, rope = made(f"dynamic_ntk(rule='{rule}', original=32)"), made("rope")
    seen = {}
    for length in (20, 64, 32, 31, 40, 32) if rule == "ntk" else (33, 32):
        q, k, v = tokens(length)
        out, plain = (np.asarray(helpers.attend(s, NONE, q, k, v)) for s in (scheme, rope))
        assert np.array_equal(out, plain) == (length <= 32), length
        np.testing.assert_array_equal(out, seen.setdefault(length, out))


@pytest.mark.ci
@pytest.mark.parametrize("text", [*BOTH, "ssmax + dynamic_ntk(rule='yarn', original=4)"])
def test_a_cache_turns_all_keys_anew(text):
    """Keys turned while the text was short have other frequencies than those to come, and a prompt in
    chunks would hold two rotations. Each step is the end of the text so far, before, at and after the border."""
    scheme, (q, k, v) = made(text), tokens(12)
    params = posenc.init(scheme, jax.random.key(0), DIMS)
    run = lambda *qkv, **about: helpers.attend(scheme, params, *qkv, **about)  # noqa: E731
    early = run(q[:4], k[:4], v[:4])
    assert np.abs(run(q, k, v)[:4] - early).max() > 1e-3, "the reason holds: a text's beginning changes"
    cache, start = posenc.Cache.empty(scheme, params, DIMS, batch=1, capacity=12, dtype=jnp.float32), 0
    for size in (3, 1, 1, 1, 3, 3):
        part = slice(start, start := start + size)
        out, cache = run(*(a[None, part] for a in (q, k, v)), cache=cache)
        np.testing.assert_allclose(out[0], run(q[:start], k[:start], v[:start])[part], atol=1e-6)
    np.testing.assert_array_equal(cache.k[0, 0], k[:, 0], "keys are stored as they were given")


@pytest.mark.parametrize("text", BOTH)
def test_what_would_have_to_be_read_again_has_no_cache_and_a_ring_forgets_the_length(text):
    def refused(match, scheme, **about):
        params = posenc.init(scheme, jax.random.key(0), DIMS)
        with pytest.raises(ValueError, match=match):
            posenc.Cache.empty(scheme, params, DIMS, batch=1, capacity=8, dtype=jnp.float32, **about)

    refused("no cache: .* as the sequence grows.*'fox' would have to read features again", made(f"fox + {text}"))
    refused("encodes the whole text again in each call.*; leave ring out", made(text), ring=True)


def test_long_factors_alone_have_a_cache():
    scheme = made("longrope(switch='never')")
    assert not scheme.limits
    posenc.Cache.empty(scheme, NONE, DIMS, batch=1, capacity=8, dtype=jnp.float32)


@pytest.mark.parametrize("text", BOTH)
def test_between_two_sequences_there_is_no_one_length(text):
    scheme, (q, k, v) = made(text), tokens(9)
    with pytest.raises(ValueError, match="query_start"):
        posenc.attend(scheme, NONE, q[:4], k, v)
    with pytest.raises(ValueError, match="4 .* 6 .* 9"):
        posenc.attend(scheme, NONE, q[:4], k, v, query_start=6)
    beyond = jax.jit(lambda start: posenc.attend(scheme, NONE, q[:4], k, v, query_start=start))(6)
    assert np.isfinite(beyond[:3]).all() and np.isnan(beyond[3:]).all()


@pytest.mark.parametrize("name", ["long", "short"])
def test_factors_of_another_number_than_the_pairs_are_refused(name):
    with pytest.raises(ValueError, match=f"'{name}' of 'longrope' holds 3 numbers, and 8 of 8 features.*; give 4"):
        made(f"longrope({name}=(1.0, 2.0, 3.0))")
    q, k, v = (a[..., :4] for a in tokens(3))
    with pytest.raises(ValueError, match="4 numbers.* 4 .* 2"):
        posenc.attend(made(PHI), NONE, q, k, v)
