"""A slice of the head that is turned, at its end or for each axis; numbers given one by one for pairs and heads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.golden.turned import turned
from tests.schemes.helpers import bias

DIMS = posenc.Dims(width=16, heads=2, head=8, trained=16)


def made(text, dims=DIMS):
    return posenc.bind(text, dims)


def features(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    "text", ["rope", "pi(2.0)", "ntk", "by_parts", "yarn", "llama3", "hope", "longrope(switch='never')", "vo_rope"]
)
def test_the_last_features_turn_as_a_head_of_that_width_and_the_others_stay(text):
    inner = f"{text[:-1]}, " if text.endswith(")") else f"{text}("
    end = made(f"{inner}fraction=0.5, at='end')")
    narrow = made(text, posenc.Dims(width=16, heads=2, head=4, trained=16))
    x, positions = features(1, 2, 5, 8), np.arange(5) * 7
    out = turned(end, "query", x, positions)
    np.testing.assert_array_equal(out[..., :4], x[..., :4])
    np.testing.assert_array_equal(out[..., 4:], turned(narrow, "query", x[..., 4:], positions))


def test_a_whole_head_has_no_end():
    x, positions = features(1, 2, 5, 8), np.arange(5)
    ours = [turned(made(text), "key", x, positions) for text in ("rope", "rope(at='end')")]
    np.testing.assert_array_equal(*ours)


def test_the_angles_of_each_axis_start_at_one():
    """Of head 8, widths (4, 2, 2) and the position (1, 1, 1) they are 1, 0.01, 1, 1."""
    scheme = made("rope_axes(widths=(4, 2, 2))")
    unit = jnp.tile(jnp.array([1.0, 0.0]), 4)[None]
    out, _ = scheme.query({}, unit, jnp.ones((1, 3), jnp.int32))
    np.testing.assert_allclose(np.arctan2(out[0, 1::2], out[0, ::2]), [1, 0.01, 1, 1], atol=1e-7)


def test_two_equal_halves_are_rope_2d():
    positions = np.random.default_rng(1).integers(0, 50, (5, 2)).astype(np.int32)
    q = jnp.asarray(features(5, 8))
    for layout in ("interleaved", "half"):
        ours = made(f"rope_axes(widths=(4, 4), base=100.0, layout={layout!r})").query({}, q, positions)[0]
        theirs = made(f"rope_2d(base=100.0, layout={layout!r})").query({}, q, positions)[0]
        np.testing.assert_array_equal(ours, theirs)


def test_features_beyond_the_widths_stay():
    q = jnp.asarray(features(5, 8))
    for layout in ("interleaved", "half", "half_per_axis"):
        out, _ = made(f"rope_axes(widths=(4, 2), layout={layout!r})").query({}, q, jnp.ones((5, 2), jnp.int32))
        np.testing.assert_array_equal(out[:, 6:], q[:, 6:])
        assert jnp.abs(out[:, :6] - q[:, :6]).min() > 0


def test_the_sections_of_another_model_are_another_function():
    q, place = jnp.asarray(features(1, 128)), jnp.array([[3, 5, 7]])
    axes = made("rope_axes(widths=(16, 56, 56))", posenc.Dims(128, 1, 128, 16)).query({}, q, place)[0]
    one_list = made("mrope(sections=(8, 28, 28), base=10000.0, layout='interleaved')", posenc.Dims(128, 1, 128, 16))
    assert jnp.abs(axes - one_list.query({}, q, place)[0]).max() > 0.1


def test_slices_for_axes_cost_what_one_rotation_costs():
    dims = posenc.Dims(width=512, heads=4, head=128, trained=64)
    q, places = jnp.zeros((256, 128)), jnp.zeros((256, 4), jnp.int32)

    def cost(scheme, positions):
        return jax.jit(lambda q, p: scheme.query({}, q, p)[0]).lower(q, positions).compile().cost_analysis()["flops"]

    rope = cost(posenc.bind("rope(layout='interleaved')", dims), places[:, 0])
    assert cost(posenc.bind("rope_axes(widths=(32, 32, 32, 32))", dims), places) <= 1.02 * rope
    assert cost(posenc.bind("rope_axes(widths=(16, 56, 56))", dims), places[:, :3]) <= 1.02 * rope


def test_frequencies_given_one_by_one_are_those_that_turn():
    x, positions = features(1, 2, 5, 8), np.arange(5) * 3
    given = tuple((10000.0 ** (-np.arange(0, 8, 2) / 8)).tolist())
    ours = turned(made(f"rope(frequencies={given!r})"), "query", x, positions)
    np.testing.assert_array_equal(ours, turned(made("rope"), "query", x, positions))
    back = tuple(-w for w in given)
    returned = turned(made(f"rope(frequencies={back!r})"), "query", ours, positions)
    np.testing.assert_allclose(returned, x, atol=1e-6)


def test_a_taper_of_all_ends_at_zero_and_starts_at_one():
    frequency = made("rope(taper=1.0)").angular_frequencies(8)
    plain = made("rope").angular_frequencies(8)
    np.testing.assert_allclose(frequency / plain, [1, 0.75, 0.25, 0], atol=1e-12)


def test_slopes_given_one_by_one_are_those_of_the_heads():
    dims, far = posenc.Dims(width=16, heads=4, head=4, trained=16), np.arange(6)
    scheme = posenc.bind("alibi(slopes=(1.0, 0.5, 0.0, 0.25))", dims)
    ours = bias(scheme, {"layer": {}, "heads": {}}, far)
    np.testing.assert_allclose(ours, -np.array([1, 0.5, 0, 0.25])[:, None, None] * np.abs(far[:, None] - far), atol=0)
    sided = posenc.bind("alibi(form='sided', slopes=(1.0, 0.5, 0.0, 0.25))", dims)
    assert set(posenc.init(sided, jax.random.key(0), dims)["heads"]) == {"past", "future"}
