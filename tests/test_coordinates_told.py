"""Coordinates that move what they are told: real draws, shifts, skips, and what tasks give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.test_coordinates import KEY, coordinates, given


def many(text, size, train=True, count=400, **others):
    """Draws of many keys."""
    one = lambda key: coordinates(text)(key, given(size, **others), train)  # noqa: E731
    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(KEY, count)))


def test_real_positions_are_the_order_statistics_of_uniform_numbers():
    drawn = many("random_float(trained=4)", 7, count=2000)
    assert drawn.dtype == np.float32 and (np.diff(drawn) >= 0).all() and drawn.min() >= 0 and drawn.max() < 1
    np.testing.assert_allclose(drawn.mean(0), np.arange(1, 8) / 8, atol=0.02)
    np.testing.assert_allclose(many("random_float(50.0, trained=4)", 7, count=2000), 50 * drawn, rtol=1e-6)


@pytest.mark.parametrize(("trained", "size"), [(4, 6), (10, 6)])
def test_real_positions_are_even_in_evaluation_over_the_longer_of_both_lengths(trained, size):
    found = coordinates(f"random_float(trained={trained})")(KEY, given(size), False)
    np.testing.assert_allclose(found, (2 * np.arange(1, size + 1) - 1) / (2 * max(trained, size)), rtol=1e-6)


def test_the_training_length_comes_from_the_model_or_is_asked_for():
    scheme = posenc.parse("rope @ random_float")
    with pytest.raises(ValueError, match="'random_float' leaves trained open; call posenc.bind"):
        posenc.place(scheme, KEY, given(3))
    bound = posenc.bind(scheme, posenc.Dims(8, 2, 4, 12))
    assert bound == posenc.parse("rope @ random_float(trained=12)") == posenc.bind(bound, posenc.Dims(8, 2, 4, 99))


@pytest.mark.parametrize("text", ["random_float(trained=4)", "augment", "augment(center='mean')", "skip(64)"])
def test_padding_changes_no_position(text):
    for train in (True, False):
        short, long = (coordinates(text)(KEY, given(size, 5), train) for size in (5, 16))
        np.testing.assert_allclose(long[:5], short, rtol=1e-6)


def test_cape_shifts_all_and_each_and_scales_within_its_bounds_in_training_only():
    drawn = many("augment(5.0, 0.0, 1.0)", 6)
    np.testing.assert_allclose(drawn - drawn[:, :1], np.broadcast_to(np.arange(6.0), drawn.shape), atol=1e-5)
    assert -5 <= drawn[:, 0].min() < -4.5 and 4.5 < drawn[:, 0].max() <= 5
    own = many("augment(0.0, 0.5, 1.0)", 6) - np.arange(6)
    assert np.abs(own).max() <= 0.5 and own.std(1).min() > 0 and abs(own.mean()) < 0.05
    scaled = many("augment(0.0, 0.0, 2.0)", 6)
    ratio = np.log(scaled[:, 5] / 5)
    np.testing.assert_allclose(scaled, np.exp(ratio)[:, None] * np.arange(6), rtol=1e-5)
    assert np.abs(ratio).max() <= np.log(2) and abs(ratio.mean()) < 0.1
    np.testing.assert_array_equal(coordinates("augment")(KEY, given(6), False), np.arange(6.0))


def test_neighbours_may_be_further_apart_and_the_mean_taken_off_in_evaluation_too():
    np.testing.assert_allclose(coordinates("augment(delta=3.0)")(KEY, given(3), False), [0, 3, 6])
    np.testing.assert_allclose(coordinates("augment(center='mean')")(KEY, given(5, 3), False)[:3], [-1, 0, 1])
    own = many("augment(0.0, 0.5, 1.0, delta=3.0)", 6) - 3 * np.arange(6)
    assert 1.0 < np.abs(own).max() <= 1.5, "a local shift is a share of what neighbours are apart"


def test_an_image_is_spread_over_the_unit_square_and_its_axes_are_shifted_apart():
    row, column = (n.reshape(-1) for n in np.indices((3, 4)))
    offered = {"row": row.astype(np.int32), "col": column.astype(np.int32)}
    still = coordinates("augment(center='unit', which=('row', 'col'))")(KEY, given(12, **offered), False)
    np.testing.assert_allclose(still[:, 0], np.linspace(-1, 1, 3)[row], atol=1e-6)
    np.testing.assert_allclose(still[:, 1], np.linspace(-1, 1, 4)[column], atol=1e-6)
    moved = many("augment(0.5, 0.0, 1.0, 'unit', which=('row', 'col'))", 12, **offered) - np.asarray(still)
    assert np.ptp(moved, axis=1).max() < 1e-5 and (moved[:, 0, 0] != moved[:, 0, 1]).all()


def test_each_example_draws_its_own_augmentation_unless_told():
    lengths = np.array([4, 4])
    own = coordinates("augment")(KEY, given(4, lengths), True)
    shared = coordinates("augment(each='batch')")(KEY, given(4, lengths), True)
    assert (own[0] != own[1]).all() and (shared[0] == shared[1]).all()


def test_a_skip_opens_one_gap_in_the_first_half_and_reaches_every_position_below_the_target():
    drawn = many("skip(20)", 6, count=3000)
    steps = np.diff(drawn)
    assert (drawn[:, 0] == 0).all() and drawn.max() == 19 and (steps >= 1).all()
    assert ((steps > 1).sum(1) <= 1).all() and set(np.nonzero(steps > 1)[1]) == {0, 1, 2}
    np.testing.assert_array_equal(np.unique(drawn[:, 5]), np.arange(5, 20))
    np.testing.assert_array_equal(coordinates("skip(20)")(KEY, given(6), False), np.arange(6))


def test_a_grid_has_rows_and_columns():
    places = coordinates("grid(3)")(KEY, given(7), True)
    np.testing.assert_array_equal(places, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [2, 0]])


def test_a_copy_after_a_line_stands_in_the_same_column_one_row_below():
    """The theorem of 2D-RoPE: the key to copy is at the same distance, (1, 0), from every query, and no other key that
    it sees is; so one fixed query of the scheme picks it in every text."""
    width = 8
    places = np.asarray(coordinates(f"grid({width})")(KEY, given(64), False))
    for i in range(width, 64):
        apart = places[i] - places[: i + 1]
        assert np.flatnonzero((apart == [1, 0]).all(-1)).tolist() == [i - width]
    scheme = posenc.bind("rope_2d", posenc.Dims(8, 1, 8, 64))
    one = jnp.broadcast_to(jnp.arange(1.0, 9.0), (64, 8))
    q, k = (getattr(scheme, side)({}, one, jnp.asarray(places))[0] for side in ("query", "key"))
    scores = np.asarray(q @ k.T)
    np.testing.assert_allclose(np.diagonal(scores, -width), scores[width, 0], rtol=1e-5)


def test_a_group_shares_a_position():
    np.testing.assert_array_equal(coordinates("group(3)")(KEY, given(7), True), [0, 0, 0, 1, 1, 1, 2])


def test_a_shift_moves_what_has_a_number_in_training_only_and_all_of_it_alike():
    told = np.array([0, 1, 2, 0, 1], np.int32)
    drawn = many("given('digit', shift=9)", 5, digit=told)
    np.testing.assert_array_equal(np.unique(drawn[:, 1]), np.arange(1, 11))
    assert (
        (drawn[:, [0, 3]] == 0).all() and (drawn[:, 2] == drawn[:, 1] + 1).all() and (drawn[:, 4] == drawn[:, 1]).all()
    )
    still = coordinates("given('digit', shift=9)")(KEY, given(5, digit=told), False)
    np.testing.assert_array_equal(still, told)


def test_one_shift_serves_the_batch_or_each_example_has_its_own():
    told = np.ones((8, 3), np.int32)
    shared, own = (
        np.asarray(coordinates(f"given('digit', shift=99, each={each!r})")(KEY, given(3, digit=told), True))
        for each in ("batch", "example")
    )
    assert len(np.unique(shared)) == 1 and len(np.unique(own[:, 0])) > 4


@pytest.mark.parametrize(
    "text", ["given('digit')", "given('digit', shift=3)", "axes('digit', 'digit')", "augment(which=('digit',))"]
)
def test_what_is_told_is_a_number_for_each_token_of_these_sequences(text):
    for told, how in ((np.arange(5), {}), (np.ones((2, 6)), {"length": np.array([6, 6, 6])}), (np.int32(3), {})):
        with pytest.raises(ValueError, match=r"'digit' has the shape \(.*\); with an index \(6,\) .* for each token"):
            coordinates(text)(KEY, given(6, digit=told, **how), True)


@pytest.mark.parametrize("text", ["given('digit', shift=3)", "axes('digit', 'digit', shift=3)", "segments"])
def test_what_is_shifted_or_counted_is_whole(text):
    told = np.array([0.0, 1.0, 0.5], np.float32)
    with pytest.raises(TypeError, match="float32"):
        coordinates(text)(KEY, given(3, digit=told, separator=told), True)
    np.testing.assert_array_equal(coordinates("given('digit')")(KEY, given(3, digit=told), True), told)


def test_a_skip_is_the_index_in_evaluation_beyond_its_target_too_and_refuses_to_train_there():
    scheme = posenc.parse("rope @ skip(8)")
    np.testing.assert_array_equal(posenc.place(scheme, KEY, given(16), train=False), np.arange(16))
    with pytest.raises(ValueError, match="16 tokens.* 8"):
        posenc.place(scheme, KEY, given(16), train=True)


def test_axes_are_stacked_and_shifted_one_by_one():
    row, column = np.array([0, 1, 1], np.int32), np.array([0, 1, 2], np.int32)
    np.testing.assert_array_equal(
        coordinates("axes('row', 'col')")(KEY, given(3, row=row, col=column), True), np.stack([row, column], -1)
    )
    drawn = many("axes('row', 'col', shift=50)", 3, row=row, col=column)
    assert (drawn[:, 0] == 0).all() and (drawn[:, 2, 1] == drawn[:, 1, 1] + 1).all()
    assert (drawn[:, 1, 0] != drawn[:, 1, 1]).any()
    three = coordinates("axes('row', 'col', 'digit')")(KEY, given(3, row=row, col=column, digit=row), False)
    assert three.shape == (3, 3)
    with pytest.raises(ValueError, match="'col'.*'row'"):
        coordinates("axes")(KEY, given(3, row=row), True)


def test_a_separator_belongs_to_the_segment_that_it_ends():
    ends = np.array([0, 1, 0, 0, 1, 1, 0], np.int32)
    inside, which = (
        coordinates(f"segments('{part}')")(KEY, given(7, separator=ends), True) for part in ("inside", "which")
    )
    np.testing.assert_array_equal(which, [0, 0, 1, 1, 1, 2, 3])
    np.testing.assert_array_equal(inside, [0, 1, 0, 1, 2, 0, 0])
    clipped = coordinates("segments('inside', cap=2)")(KEY, given(7, separator=ends), True)
    np.testing.assert_array_equal(clipped, [0, 1, 0, 1, 1, 0, 0])


def test_settings_that_came_later_leave_the_identity_of_old_results_as_it_was():
    from posenc.naming import full

    assert full(posenc.parse("rope @ random_sorted(128)")).endswith(
        "@ random_sorted(limit=128, resample='forward', each='batch')"
    )
    assert "over='distances'" in full(posenc.parse("alibi @ random_sorted(128, over='distances')"))
    assert full(posenc.parse("transformer_xl")) == "transformer_xl(base=10000.0)"
