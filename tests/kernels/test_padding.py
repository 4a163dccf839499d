"""Padding told by booleans, and rows of scores without a key that can be seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Cache, Dims, attend
from posenc.attention.kernels.dense import softmax
from tests.contract.test_decoding import decode, stepper
from tests.jaxprs import equations

DIMS = Dims(32, 4, 8, trained=12)
VALID = np.array([[True] * 9 + [False] * 3, [False, False, True, True, False, *[True] * 7]])


def drawn(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("text", ["nope", "rope", "t5 + window(4)", "fox", "sinusoidal", "cope"])
def test_booleans_tell_padding_as_zeros_and_ones_do(text):
    scheme = posenc.bind(text, DIMS)
    params = posenc.init(scheme, jax.random.key(0), DIMS)
    tokens = dict(zip("qkv", (drawn(2, 12, 4, 8), drawn(12, 2, 4, 8).swapaxes(0, 1), drawn(2, 12, 4, 8)), strict=True))
    tokens["x"] = drawn(2, 12, 32)
    numbers = VALID.astype(np.int32)
    whole = lambda segments: attend(scheme, params, **tokens, segments=segments)  # noqa: E731
    np.testing.assert_array_equal(whole(VALID), whole(numbers))
    np.testing.assert_allclose(jax.jit(whole)(VALID), whole(numbers), atol=1e-6)
    step, empty = stepper(scheme, params), Cache.empty(scheme, params, DIMS, batch=2, capacity=12)
    by_steps = [decode(step, empty, (*tokens.values(),), (4,), segments=told)[0] for told in (VALID, numbers)]
    np.testing.assert_array_equal(*by_steps)
    embedded = [posenc.embed(scheme, params, tokens["x"], segments=segments) for segments in (VALID, numbers)]
    np.testing.assert_array_equal(*embedded)


def test_a_document_that_could_come_again_is_looked_for_and_padding_is_not():
    q, scheme = drawn(12, 4, 8), posenc.bind("nope", DIMS)
    traced = jax.make_jaxpr(lambda segments: attend(scheme, None, q, q, q, segments=segments))

    def sorts(segments):
        return "sort" in {e.primitive.name for e in equations(traced(segments))}

    assert sorts(jnp.ones(12, jnp.int32)) and not sorts(jnp.ones(12, bool))


@pytest.mark.parametrize("segments", [np.ones(12), ["a"] * 12])
def test_what_is_no_number_of_a_document_is_refused(segments):
    q = drawn(12, 4, 8)
    with pytest.raises((TypeError, ValueError), match="segments"):
        attend(posenc.bind("nope", DIMS), None, q, q, q, segments=segments)


def test_booleans_and_numbers_are_not_mixed():
    q = drawn(12, 4, 8)
    with pytest.raises(ValueError, match="key_segments one holds numbers"):
        attend(posenc.bind("nope", DIMS), None, q, q, q, segments=np.ones(12, int), key_segments=np.ones(12, bool))


def test_rows_without_a_key_are_zero_and_what_is_no_number_stays_one():
    s = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [-np.inf, -np.inf, 5.0], [np.nan, 1.0, 2.0], [-1e38, -1e38, 0.0]])
    seen = np.array([[True, True, False], [False] * 3, [True, True, False], [True] * 3, [True, True, False]])
    ds = np.broadcast_to([1.0, 2.0, 3.0], s.shape)
    weights, gradient = map(np.asarray, jax.jvp(lambda s: softmax(s, seen), (s,), (ds,)))
    e = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()
    np.testing.assert_allclose(weights[[0, 1, 2, 4]], [[*e, 0], [0, 0, 0], [0, 0, 0], [0.5, 0.5, 0]], atol=1e-6)
    assert np.isnan(weights[3]).all() and (gradient[[1, 2]] == 0).all()
    np.testing.assert_allclose(gradient[0], [e[0] * (1 - e @ [1, 2]), e[1] * (2 - e @ [1, 2]), 0], atol=1e-6)
