"""Shaw: clipped distances on keys and values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.golden.through import scores
from tests.schemes.helpers import DIMS, attend, made, tokens


def zeroed(params):
    return jax.tree.map(jnp.zeros_like, params)


@pytest.mark.ci
def test_with_tables_of_zeros_nothing_is_left_of_it():
    scheme, params = made("shaw(reach=3)")
    q, k, v, _ = tokens(7)
    np.testing.assert_allclose(attend(scheme, zeroed(params), q, k, v), attend(*made("nope"), q, k, v), atol=1e-6)


def test_beyond_the_reach_all_distances_of_one_direction_are_alike():
    scheme, params = made("shaw(reach=3)")
    q, k, _, _ = tokens(12)
    k[:] = k[:1]  # equal content, so that scores differ by distance alone
    s = np.asarray(scores(scheme, params, q, k))
    for i in range(12):
        for far in (s[:, i, : max(i - 2, 0)], s[:, i, i + 3 :]):
            assert (far == far[:, :1]).all()
    assert (s[:, 6, 3] != s[:, 6, 9]).all() and (s[:, 6, 3] != s[:, 6, 4]).all()


@pytest.mark.parametrize("shift", [1, 17, 1000, 100000])
def test_shifting_all_positions_changes_nothing(shift):
    scheme, params = made("shaw(reach=2)")
    features, places = tokens(5)[:3], np.array([4, 0, 1, 9, 7])
    moved = attend(scheme, params, *features, positions=places + shift)
    np.testing.assert_array_equal(moved, attend(scheme, params, *features, positions=places))


def test_values_are_told_the_distance_too_unless_keys_are_enough():
    scheme, params = made("shaw(reach=2)")
    q, k, v, _ = tokens(5)
    zero = params["heads"] | {"key": jnp.zeros_like(params["heads"]["key"])}
    out = attend(scheme, params | {"heads": zero}, np.zeros_like(q), k, np.zeros_like(v))
    weight = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 2], [1, 1, 3]]) / np.arange(1, 6)[:, None]
    np.testing.assert_allclose(out, np.einsum("qr,hrd->qhd", weight, params["heads"]["value"][:, 2::-1]), atol=1e-6)
    alone = posenc.parse("shaw(reach=2, values=False)")
    assert (
        not alone.overrides("value_bias") and alone.overrides("score", "value_bias") and scheme.overrides("value_bias")
    )
    np.testing.assert_allclose(
        attend(alone, params | {"heads": {"key": zero["key"]}}, q, k, v), attend(*made("nope"), q, k, v), atol=1e-6
    )


def test_content_and_distance_are_divided_alike_and_grow_alike_with_the_query():
    scheme, params = made("shaw(reach=4, values=False)")
    q, k, _, _ = tokens(6)
    row = np.clip(np.arange(6)[None, :] - np.arange(6)[:, None], -4, 4) + 4
    told = np.asarray(params["heads"]["key"])[:, row]  # [H, Q, K, d]
    ours = np.asarray(scores(scheme, params, q, k))
    np.testing.assert_allclose(ours, np.einsum("qhd,hqkd->hqk", q, k.swapaxes(0, 1)[:, None] + told) / 2, atol=1e-6)
    np.testing.assert_allclose(scores(scheme, params, 3 * q, k), 3 * ours, atol=1e-5)


def test_heads_share_vectors_only_when_asked():
    own, shared = made("shaw(reach=2)")[1], made("shaw(reach=2, shared=True)")[1]
    assert own["heads"]["key"].shape == (4, 5, 4) and not own["layer"]
    assert shared["layer"]["key"].shape == (5, 4) and not shared["heads"]
    scheme, _ = made("shaw(reach=2, shared=True)")
    q, k, v, _ = tokens(5)
    split = {"layer": {}, "heads": {n: np.repeat(a[None], 4, 0) for n, a in shared["layer"].items()}}
    each = attend(posenc.parse("shaw(reach=2)"), split, q, k, v)
    np.testing.assert_allclose(attend(scheme, shared, q, k, v), each, atol=1e-6)


def test_tables_start_between_the_bounds_of_glorot():
    key = np.asarray(made("shaw(reach=500)")[1]["heads"]["key"])
    bound = (6 / (1001 + DIMS.head)) ** 0.5
    assert np.abs(key).max() <= bound and abs(key.std() * 3**0.5 / bound - 1) < 0.03


def test_a_reach_of_nothing_is_one_vector_for_all_and_a_negative_one_is_refused():
    scheme, params = made("shaw(reach=0, values=False)")
    q, k, v, _ = tokens(5)
    np.testing.assert_allclose(attend(scheme, params, q, k, v), attend(*made("nope"), q, k, v), atol=1e-6)
    with pytest.raises(ValueError, match="'shaw' has reach=-1; it must be a distance of at least 0"):
        posenc.parse("shaw(reach=-1)")


def test_positions_between_whole_numbers_are_refused():
    q, k, v, _ = tokens(3)
    with pytest.raises(TypeError, match="whole positions"):
        posenc.attend(*made("shaw"), q, k, v, positions=np.arange(3) / 2)


def test_in_a_bfloat16_model_what_is_added_to_scores_is_not_rounded():
    scheme, params = made("shaw(reach=3, values=False)")
    q = jnp.asarray(tokens(5)[0], jnp.bfloat16)
    by_distance = scheme.query({"key": params["heads"]["key"][0]}, q[:, 0], None)[1]
    exact = np.asarray(q[:, 0], float) @ np.asarray(params["heads"]["key"][0], float).T
    assert by_distance.dtype == jnp.float32
    np.testing.assert_allclose(by_distance, exact, atol=1e-6)
