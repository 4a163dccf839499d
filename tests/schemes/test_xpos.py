"""xPos: a rotation and a factor whose centre does not matter, except to a cache."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Dims
from posenc.schemes import xpos as module
from tests.oracles import xpos as oracle

X = posenc.parse("xpos(scale_base=16.0)")
FAULTS = {
    "both sides grow": lambda scheme, k, c: (scheme._rotate(k, c, 1), c),
    "the key not turned": lambda scheme, k, c: (k, c),
    "the centre in the middle of the sequence": lambda scheme, k, c: (scheme._rotate(k, c - c.shape[0] // 2, -1), c),
}


def features(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def scores(scheme, q, k, position):
    position = jnp.asarray(position)
    return np.asarray(scheme.query({}, jnp.asarray(q), position)[0] @ scheme.key({}, jnp.asarray(k), position)[0].T)


@pytest.mark.parametrize("shift", [1, 17, 400])
def test_scores_do_not_change_when_all_positions_shift_although_queries_do(shift):
    q, k, position = features(6, 8), features(6, 8, seed=1), np.arange(6)
    visible = np.tril(np.ones((6, 6), bool))
    here, there = scores(X, q, k, position), scores(X, q, k, position + shift)
    np.testing.assert_allclose(there[visible], here[visible], atol=2e-5)
    ours = X.query({}, jnp.asarray(q), jnp.asarray(position))[0]
    moved = X.query({}, jnp.asarray(q), jnp.asarray(position + shift))[0]
    assert np.linalg.norm(moved) < 0.98 * np.linalg.norm(ours)


def test_the_further_the_key_the_smaller_the_score_can_be():
    one = np.zeros((1, 8), np.float32)
    one[0, :2] = 1  # the fastest pair
    sizes = []
    for distance in (0, 4, 16, 64):
        q = X.query({}, jnp.asarray(one), jnp.array([distance]))[0]
        k = X.key({}, jnp.asarray(one), jnp.array([0]))[0]
        sizes.append(float(jnp.linalg.norm(q) * jnp.linalg.norm(k)))
    np.testing.assert_allclose(sizes, [2 * (0.4 / 1.4) ** (d / 16) for d in (0, 4, 16, 64)], rtol=1e-5)


def test_a_key_keeps_its_value_when_the_sequence_grows():
    """R-11: with a centre in the middle, every cached key is wrong one token later."""
    k = jnp.asarray(features(9, 8))
    short, long = X.key({}, k[:4], jnp.arange(4))[0], X.key({}, k, jnp.arange(9))[0]
    np.testing.assert_array_equal(long[:4], short)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_a_huge_scale_base_is_rope(layout):
    q, k = features(6, 8), features(6, 8, seed=1)
    rope = posenc.parse(f"rope(layout={layout!r})")
    ours = posenc.parse(f"xpos(scale_base=1e12, layout={layout!r})")
    np.testing.assert_allclose(scores(ours, q, k, np.arange(6)), scores(rope, q, k, np.arange(6)), atol=1e-5)


def test_left_open_the_scale_base_is_half_the_training_length():
    assert posenc.bind(posenc.parse("xpos"), Dims(8, 1, 8, 1024)) == posenc.parse("xpos(scale_base=512.0)")


def agree_with_the_equation():
    q, k, v = (features(6, 1, 8, seed=s) for s in range(3))
    position, visible = np.arange(6), np.tril(np.ones((6, 6), bool))
    ours = posenc.attend(X, {"layer": {}, "heads": {}}, q, k, v)
    np.testing.assert_allclose(
        ours, oracle.attend(X, [{}], *map(np.float64, (q, k, v)), None, position, visible), atol=3e-6
    )


def test_attention_is_that_of_the_equation():
    agree_with_the_equation()


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_noticed(fault, monkeypatch):
    monkeypatch.setattr(module.XPos, "key", lambda self, p, k, c: FAULTS[fault](self, k, c))
    with pytest.raises(AssertionError):
        agree_with_the_equation()


def test_without_a_causal_mask_it_is_refused_with_the_reason():
    q = features(4, 1, 8)
    with pytest.raises(ValueError, match="causal only: towards keys after the query its factor grows"):
        posenc.attend(X, {"layer": {}, "heads": {}}, q, q, q, mask="full")


@pytest.mark.parametrize("far", [1200, -1200])
def test_positions_whose_factors_leave_float32_are_refused_and_no_number_inside_jit(far):
    q = features(2, 1, 8)
    run = lambda position: posenc.attend(X, {"layer": {}, "heads": {}}, q, q, q, positions=position)  # noqa: E731
    with pytest.raises(ValueError, match="At position 1200 .* overflow float32; go to 10[0-9]{2} at most"):
        run(np.array([0, far]))
    assert np.isfinite(run(np.array([0, 1000]))).all()
    assert not np.isfinite(X.key({}, jnp.asarray(q[:, 0]), jnp.array([0, 2000]))[0]).all()
    jax.jit(run)(np.array([0, far]))  # traced positions have no value to refuse


@pytest.mark.parametrize("setting", ["gamma=0", "scale_base=0", "scale_base=-512", "base=1"])
def test_settings_without_a_meaning_are_refused(setting):
    with pytest.raises(ValueError, match="above 0"):
        posenc.parse(f"xpos({setting})")
    with pytest.raises(ValueError, match="a head has 5; take an even width, 4 or 6"):
        posenc.bind(X, Dims(5, 1, 5, 16))


def test_float16_which_holds_no_factors_is_refused_and_bfloat16_is_not():
    run = lambda dtype: posenc.attend(X, {"layer": {}, "heads": {}}, *[jnp.ones((2, 1, 8), dtype)] * 3)  # noqa: E731
    with pytest.raises(TypeError, match="overflow float16; give queries and keys as bfloat16 or float32"):
        run(jnp.float16)
    assert jnp.isfinite(run(jnp.bfloat16)).all()
