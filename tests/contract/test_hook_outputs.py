"""A hook that returns what would broadcast or round is refused by name, with its file and line."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.core.scheme import Scheme

Q, K, V = np.random.default_rng(0).normal(size=(3, 1, 6, 2, 8)).astype(np.float32)


def made(hook, run, reads="content"):
    """A scheme of this one hook."""
    return type("Mine", (Scheme,), {hook: run, "reads": reads}, name=None)()


WRONG = {
    "one column": ("score", lambda self, p, s, tile: s[..., :1]),
    "one row": ("score", lambda self, p, s, tile: s[:1]),
    "integers": ("score", lambda self, p, s, tile: s.astype(jnp.int32)),
    "booleans": ("score", lambda self, p, s, tile: s > 0),
    "no array": ("score", lambda self, p, s, tile: None),
    "a column of weights": ("normalize", lambda self, p, s, tile: jax.nn.softmax(s)[:, :1]),
    "one feature": ("value", lambda self, p, v, info: v[:, :1]),
    "whole values": ("value", lambda self, p, v, info: v.astype(jnp.int32)),
    "one output": ("output", lambda self, p, o, info: o[:1]),
    "the query alone": ("query", lambda self, p, q, info: q),
    "one key": ("key", lambda self, p, k, info: (k[:1], info)),
    "no axis of features": ("query", lambda self, p, q, info: (q[:, 0], info)),
    "info of one token": ("locate", lambda self, p, x, at, carry: (at.position[:1], carry)),
    "no carry": ("locate", lambda self, p, x, at, carry: at.position),
    "one row of values": ("value_bias", lambda self, p, a, tile: jnp.zeros((1, 8))),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("kernel", ["dense", "rows"])
def test_what_would_broadcast_or_round_is_refused_by_hook_file_and_line(case, kernel):
    hook, run = WRONG[case]
    scheme, line = made(hook, run), run.__code__.co_firstlineno
    with pytest.raises(ValueError, match=rf"hook '{hook}' of 'Mine' \(test_hook_outputs.py, line {line}\) returns"):
        posenc.attend(scheme, None, Q, K, V, kernel=kernel)


@pytest.mark.parametrize("kernel", ["dense", "rows", "tiled"])
def test_what_is_added_to_values_has_their_features(kernel):
    scheme = made("value_bias", lambda self, p, a, tile: jnp.zeros((a.shape[0], 1)), reads="distance")
    with pytest.raises(ValueError, match="hook 'value_bias' of 'Mine' returns 1 features, and a value has 8"):
        posenc.attend(scheme, None, Q, K, V, kernel=kernel)


@pytest.mark.parametrize("kernel", ["auto", "dense", "rows", "tiled"])
def test_one_column_is_refused_where_a_bias_is_computed_once_for_each_distance(kernel):
    scheme = made("score", lambda self, p, s, tile: s[..., :1], reads="distance")
    with pytest.raises(ValueError, match="hook 'score' of 'Mine' .* returns float32 of the shape"):
        posenc.attend(scheme, None, Q, K, V, kernel=kernel)


def test_queries_and_keys_have_as_many_features():
    scheme = made("query", lambda self, p, q, info: (jnp.concatenate([q, q], -1), info))
    with pytest.raises(ValueError, match="'query' and 'key' of 'Mine' return 16 and 8 features"):
        posenc.attend(scheme, None, Q, K, V)


@pytest.mark.parametrize(
    ("hook", "run", "why"),
    [
        ("init", lambda self, key, dims: None, "'init'.*NoneType"),
        ("init", lambda self, key, dims: [jnp.zeros(3)], "'init'.* list"),
        ("init_head", lambda self, key, dims: {"a": "x"}, "'a'.* str"),
        ("scale", lambda self, d: "x", "'scale'.*'x'"),
        ("locate", lambda self, p, x, at, carry: (at.position, jnp.zeros(3)), "carry"),
    ],
)
def test_other_hooks_are_held_to_what_they_must_return(hook, run, why):
    scheme = made(hook, run)
    with pytest.raises(ValueError, match=why):
        params = posenc.init(scheme, jax.random.key(0), posenc.Dims(16, 2, 8, 16))
        posenc.attend(scheme, params, Q, K, V)


def test_the_input_has_the_shape_that_it_had():
    scheme = made("embed", lambda self, p, x, at: x[:, :1])
    with pytest.raises(ValueError, match="hook 'embed' of 'Mine' .*returns float32 of the shape .6, 1.; it must"):
        posenc.embed(scheme, None, np.ones((6, 16), np.float32))


def test_a_part_of_a_sum_is_named_alone():
    scheme = posenc.parse("rope") + made("score", lambda self, p, s, tile: s[..., :1])
    with pytest.raises(ValueError, match="hook 'score' of 'Mine'"):
        posenc.attend(scheme, None, Q, K, V)


def test_nothing_is_computed_for_the_check():
    scheme = made("score", lambda self, p, s, tile: s + 1)
    plain = jax.make_jaxpr(lambda q: posenc.attend(posenc.parse("nope"), None, q, q, q))(Q)
    ours = jax.make_jaxpr(lambda q: posenc.attend(scheme, None, q, q, q))(Q)
    count = lambda jaxpr: str(jaxpr).count(" = ")  # noqa: E731
    assert count(ours) <= count(plain) + 2
