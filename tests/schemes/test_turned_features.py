"""VO-RoPE, PoPE, FoPE, complex order and contextual GRAPE-M: other things that turn, and what turns them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Dims
from tests.schemes.helpers import attend, made, tokens

DIMS = Dims(width=16, heads=4, head=4, trained=16)


@functools.partial(jax.jit, static_argnums=(0, 1))
def hook(scheme, side, p, x, positions):
    """What "query" or "key" makes of features."""
    return getattr(scheme, side)(p, x, positions)[0]


# Values


def test_queries_and_keys_are_left_to_others_where_told_so():
    scheme = posenc.parse("vo_rope(queries_and_keys=False)")
    assert not scheme.overrides("query", "key") and scheme.overrides("value", "output")
    posenc.parse("tapa + vo_rope(queries_and_keys=False)")


def test_values_may_be_wider_than_keys_and_come_in_pairs():
    scheme, p = made("vo_rope", DIMS)
    q, k, v, _ = tokens(5)
    wide = np.concatenate([v, v[..., :2]], -1)
    assert attend(scheme, p, q, k, wide).shape == (5, 4, 6)
    with pytest.raises(ValueError, match="has 5"):
        attend(scheme, p, q, k, wide[..., :5])


# Lengths and angles


def polar(delta, q, k, positions):
    scheme = posenc.parse("pope")
    p = {"delta": jnp.asarray(delta)}
    return hook(scheme, "query", p, q, positions) @ hook(scheme, "key", p, k, positions).T


def test_the_angle_of_a_key_stays_within_a_turn_and_learns_only_there():
    q, k = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    delta = np.array([0.5, 0.0, -2.0, -8.0], np.float32)
    kept = np.clip(delta, -2 * np.pi, 0)
    np.testing.assert_array_equal(polar(delta, q, k, np.arange(3)), polar(kept, q, k, np.arange(3)))
    slope = jax.grad(lambda a: (polar(a, q, k, np.arange(3)) * np.arange(9).reshape(3, 3)).sum())
    assert ((np.abs(slope(delta)) > 1e-4) == [False, True, True, False]).all()
    np.testing.assert_allclose(slope(delta)[1:3], slope(kept)[1:3], rtol=1e-5)  # whole at the bound, not one half


@pytest.mark.parametrize(("start", "low", "high"), [("zero", 0, 0), ("uniform", -2 * np.pi, 0)])
def test_angles_of_keys_start_at_0_or_anywhere(start, low, high):
    dims = Dims(256, 4, 64, 16)
    delta = posenc.init(posenc.parse(f"pope(start={start!r})"), jax.random.key(0), dims)["heads"]["delta"]
    assert delta.shape == (4, 64) and low <= delta.min() <= low + 0.2 and high - 0.2 <= delta.max() <= high


@pytest.mark.parametrize("name", ["vo_rope", "pope", "fope", "complex_order", "grape_m"])
def test_a_base_without_frequencies_is_refused(name):
    for base in (0.0, -1.0, 1.0):
        with pytest.raises(ValueError, match=rf"base of '{name}' is {base}"):
            posenc.parse(f"{name}(base={base})")


# Fourier series


def fourier(text, head=16, heads=2, trained=64):
    dims = Dims(head * heads, heads, head, trained)
    scheme = posenc.bind(posenc.parse(text), dims)
    return scheme, jax.jit(lambda key: posenc.init(scheme, key, dims))(jax.random.key(0))


def test_frequencies_that_never_complete_a_turn_are_left_out():
    fitted = lambda text: posenc.bind(posenc.parse(text), Dims(16, 1, 16, 64))  # noqa: E731
    scheme = fitted("fope")
    frequency, pairs = scheme._series(16)
    np.testing.assert_allclose(frequency, 10000.0 ** (-np.arange(3) / 8))  # the fourth, 0.032, needs 199 tokens
    assert scheme.length == 64 and pairs == 3
    assert len(fitted("fope(length=199)")._series(16)[0]) == 4
    assert fitted("fope(length=100000)")._series(16)[1] == 4  # a quarter of the head at most
    kept, pairs = fitted("fope(zeros='kept')")._series(16)
    assert pairs == 8 and (kept[:3] > 0).all() and (kept[3:] == 0).all()


@pytest.mark.ci
def test_coefficients_scatter_around_ones_and_are_never_trained_unless_told_so():
    dims = Dims(2048, 16, 128, 4096)
    scheme = posenc.bind(posenc.parse("fope"), dims)
    c = np.asarray(posenc.init(scheme, jax.random.key(0), dims)["heads"]["cos"])
    n, pairs = c.shape[1:]
    assert pairs == 32 and n == 46  # so every second frequency has a 1
    ones = np.zeros((n, pairs))
    ones[np.arange(0, n, 2), np.arange(23)] = 1
    spread = (c - ones[None]).std()
    assert abs(spread / (0.3 * np.sqrt(2 / ((n + 16) * pairs))) - 1) < 0.02  # PyTorch's fans of [heads, n, pairs]
    np.testing.assert_allclose((c - ones[None]).mean(0), 0, atol=6 * spread / 4)
    x = np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)
    for text, learns in (("fope", False), ("fope(learned=True)", True)):
        scheme, p = fourier(text)
        grad = jax.grad(lambda p, s=scheme: (hook(s, "query", p, x, np.arange(4)) ** 2).sum())
        moved = [np.abs(g).max() > 0 for g in jax.tree.leaves(grad({n: a[0] for n, a in p["heads"].items()}))]
        assert moved == [learns] * 2 and scheme.frozen == (frozenset() if learns else {"cos", "sin", "both"})


@pytest.mark.parametrize(("head", "trained"), [(2, 64), (16, 6)])
def test_a_series_of_nothing_is_refused(head, trained):
    with pytest.raises(ValueError, match=rf"{head} features.* {trained} tokens"):
        fourier("fope", head=head, trained=trained)


# Words


def words(text="complex_order", width=8):
    dims = Dims(width, 1, width, 16)
    scheme = posenc.bind(posenc.parse(text), dims)
    return scheme, jax.jit(lambda key: posenc.init(scheme, key, dims))(jax.random.key(0))


def test_each_word_has_frequencies_of_its_own_where_their_number_is_given():
    """Two words at one position turn differently; word 0 starts without a frequency and stays as it is."""
    scheme, p = words("complex_order(words=5)")
    assert scheme.axes == 2 and p["layer"]["frequency"].shape == (5, 4)
    x = np.ones((3, 8), np.float32)
    y = np.asarray(posenc.embed(scheme, p, x, positions=np.array([[3, 0], [3, 1], [3, 4]])))
    np.testing.assert_array_equal(y[0], x[0])
    assert np.abs(y[1] - y[2]).max() > 0.1
    table = np.outer(np.arange(5), 10000.0 ** (-2 * np.arange(4) / 4))
    np.testing.assert_allclose(p["layer"]["frequency"], table, rtol=1e-6)


def test_a_word_without_a_row_is_refused_and_nan_inside_jit():
    scheme, p = words("complex_order(words=5)")
    x, wrong = np.ones((2, 8), np.float32), np.array([[0, 1], [1, 5]])
    with pytest.raises(ValueError, match="5 .*'complex_order'.* 5 "):
        posenc.embed(scheme, p, x, positions=wrong)
    inside = jax.jit(lambda at: posenc.embed(scheme, p, x, positions=at))(wrong)
    assert np.isfinite(inside[0]).all() and np.isnan(inside[1]).all()


def test_a_refusal_names_the_setting_that_makes_the_table_larger():
    scheme, p = words("complex_order(words=5)")
    with pytest.raises(ValueError, match=r"complex_order\(words="):
        posenc.embed(scheme, p, np.zeros((1, 8), np.float32), positions=np.array([[0, 5]]))


# Phases of what was read


def phases(scheme, p, x, segments=None):
    segments = np.ones(len(x), np.int32) if segments is None else np.asarray(segments, np.int32)
    return np.asarray(_located(scheme, p["layer"], x, segments))


@functools.partial(jax.jit, static_argnums=0)
def _located(scheme, p, x, segments):
    index = jnp.arange(len(x), dtype=jnp.int32)
    at = posenc.At(index, index, segments, index + 1, jnp.int32(0), 4)
    return scheme.locate(p, x, at, scheme.carry(DIMS))[0]


def test_phases_start_as_steps_of_the_released_gate():
    """σ(softplus⁻¹(10⁻³) / 16) = 0.39, where the authors meant 10⁻³: their code has no softplus."""
    scheme, p = made("grape_m")
    c = phases(scheme, p, tokens(5)[3])
    np.testing.assert_allclose(c, 0.39372 * np.arange(5), atol=1e-4)
