"""PaTH: reflections that tokens choose, what they are when all choose alike, and what FoX has to do with it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.golden.contextual import sides
from tests.schemes.helpers import DIMS, attend, made, tokens


def with_params(text, **heads):
    """A scheme with some of its parameters replaced by a number, or by one array for every head."""
    scheme, params = made(text)
    put = {
        name: jnp.broadcast_to(jnp.asarray(a, jnp.float32), params["heads"][name].shape) for name, a in heads.items()
    }
    return scheme, params | {"heads": params["heads"] | put}


@pytest.mark.ci
def test_without_strength_it_is_no_encoding():
    scheme, params = with_params("path", beta=0.0, beta_bias=-60.0)
    q, k, v, x = tokens(7)
    np.testing.assert_allclose(attend(scheme, params, q, k, v, x), attend(*made("nope"), q, k, v), atol=1e-6)


@pytest.mark.parametrize(("logit", "factor"), [(60.0, -1.0), (0.0, 0.0), (-np.log(3), 0.5)])
def test_when_all_tokens_choose_one_feature_each_step_multiplies_it(logit, factor):
    """β = 2 reflects, β = 1 projects, β = 1/2 halves."""
    scheme, params = with_params("path(rank=6, kernel=1, activation='none')", conv=1.0, beta=0.0, beta_bias=logit)
    params["layer"]["down"] = jnp.eye(6)
    params["heads"]["up"] = jnp.zeros_like(params["heads"]["up"]).at[:, 2, 0].set(1)
    q, k, v, x = tokens(7)
    x[:, 0] = 1e3  # so that its length, and not the number that keeps a division finite, is what it is divided by
    steps = np.arange(7)[:, None] - np.arange(7)[None, :]
    s = np.einsum("qhd,khd->hqkd", q, k)
    s[..., 2] *= np.where(steps > 0, float(factor) ** np.maximum(steps, 0), 1)
    s = np.where(steps >= 0, s.sum(-1) / 2, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    expected = np.einsum("hqk,khd->qhd", e / e.sum(-1, keepdims=True), v)
    np.testing.assert_allclose(attend(scheme, params, q, k, v, x), expected, atol=2e-6)


@pytest.mark.ci
def test_directions_are_of_length_one_and_strengths_between_nothing_and_two():
    scheme, params = made("path")
    x = tokens(9)[3][None]
    empty = jnp.zeros((1, 4, 9, 4))
    (w, beta, _), _, _ = sides(scheme, params, jnp.asarray(x), empty, empty)
    np.testing.assert_allclose(np.linalg.norm(w, axis=-1), 1, atol=1e-3)
    assert ((beta > 0) & (beta < 2)).all() and abs(float(beta.mean()) - 1) < 0.1


def test_features_of_nothing_have_a_finite_gradient():
    """R-30: a norm at 0."""
    scheme, params = made("path(forget='scaled')")
    q, k, v, x = tokens(5)
    run = lambda p, x: posenc.attend(scheme, p, q, k, v, x=x).sum()  # noqa: E731
    back = jax.jit(jax.grad(run, (0, 1)))(params, np.zeros_like(x))
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(back))


def test_the_token_of_the_key_has_no_say_and_the_querys_own_has():
    scheme, params = made("path(kernel=1)")
    q, k, v, x = tokens(5)
    out = attend(scheme, params, q, k, v, x)
    first, last = np.copy(x), np.copy(x)
    first[0] += 1  # nothing stands before the first token
    last[4] += 1
    np.testing.assert_array_equal(attend(scheme, params, q, k, v, first), out)
    moved = np.abs(attend(scheme, params, q, k, v, last) - out).max((1, 2))
    assert (moved[:4] == 0).all() and moved[4] > 1e-4


def test_positions_are_not_looked_at():
    scheme, params = made("path")
    q, k, v, x = tokens(6)
    out = attend(scheme, params, q, k, v, x)
    np.testing.assert_array_equal(attend(scheme, params, q, k, v, x, positions=np.arange(6)[::-1] * 7), out)


def test_a_forget_gate_that_is_not_scaled_is_fox_added():
    scheme, params = made("path(forget='unscaled')")
    params["heads"]["gate"] = params["heads"]["gate"] * 30
    both, without = posenc.parse("path + fox"), {n: a for n, a in params["heads"].items() if "gate" not in n}
    fox = {"layer": {}, "heads": {"w": params["heads"]["gate"], "b": params["heads"]["gate_bias"]}}
    q, k, v, x = tokens(7)
    ours = attend(scheme, params, q, k, v, x)
    chain = attend(both, (params | {"heads": without}, fox), q, k, v, x)
    np.testing.assert_allclose(ours, chain, atol=1e-6)
    scaled = attend(posenc.parse("path(forget='scaled')"), params, q, k, v, x)
    assert np.abs(scaled - ours).max() > 1e-3  # trap 13


@pytest.mark.ci
def test_a_window_leaves_the_path_within_it():
    scheme, params = made("path(kernel=1, forget='unscaled')")
    q, k, v, x = tokens(7)
    narrow = attend(scheme, params, q, k, v, x, mask=posenc.Window(2, 0))
    three = attend(scheme, params, q[-1:], k[4:], v[4:], x[-1:], key_x=x[4:], query_start=2)
    np.testing.assert_allclose(narrow[-1:], three, atol=1e-6)


@pytest.mark.ci
def test_long_paths_of_reflections_are_as_exact_as_short_ones(x64):
    """What is solved for is a query on its way, never longer than it was, so errors add up and do not grow."""
    scheme, params = made("path")
    params["heads"]["beta_bias"] = params["heads"]["beta_bias"] + 4
    exact = tokens(150, dtype=np.float64)
    single = [a.astype(np.float32) for a in exact]
    run = jax.jit(lambda p, q, k, v, x: posenc.attend(scheme, p, q, k, v, x=x))
    far = run(jax.tree.map(lambda a: a.astype(jnp.float64), params), *exact)
    near = run(jax.tree.map(lambda a: a.astype(jnp.float32), params), *single)
    np.testing.assert_allclose(near, far, atol=2e-5)


def test_heads_that_share_keys_have_paths_of_their_own():
    scheme, params = made("path")
    q, k, v, x = tokens(6)
    few = [a[:, :2] for a in (k, v)]
    many = [np.repeat(a, 2, 1) for a in few]
    np.testing.assert_allclose(attend(scheme, params, q, *few, x), attend(scheme, params, q, *many, x), atol=1e-6)


def test_it_is_alone_with_query_and_key_and_comes_first():
    for text in ("path + rope", "rope + path", "log_n + path"):
        with pytest.raises(ValueError, match="'path' replaces q·k"):
            posenc.parse(text)
    with pytest.raises(ValueError, match="'path' replaces q·k, so it comes first"):
        posenc.parse("alibi + path")
    assert posenc.parse("path + alibi")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("path(rank=0)", "'rank' of 'path' is 0; it must be at least 1"),
        ("path(kernel=0)", "'kernel' of 'path' is 0; it must be at least 1"),
        ("path(forget='yes')", "takes 'none' or 'scaled' or 'unscaled', not 'yes'"),
    ],
)
def test_settings_without_a_meaning_are_refused(text, why):
    with pytest.raises(ValueError, match=why):
        posenc.parse(text)


def test_it_is_refused_where_the_future_is_seen_and_between_two_sequences():
    scheme, params = made("path", DIMS)
    q, k, v, x = tokens(4)
    with pytest.raises(ValueError, match="causal only.*its path runs from a key to a later query"):
        posenc.attend(scheme, params, q, k, v, x=x, mask="full")
    with pytest.raises(ValueError, match="undefined between two sequences"):
        posenc.attend(scheme, params, q[:2], k, v, x=x[:2], key_x=x)
