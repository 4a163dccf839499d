"""Which position a token gets: laws of the draws, who shares one, and what no padding may change."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc

KEY = jax.random.key(0)


def coordinates(text):
    return posenc.parse(f"nope @ {text}").coordinates[0].coordinates


def given(size, length=None, batch=None, **others):
    index = jnp.arange(size, dtype=jnp.int32)
    if batch:
        index = jnp.broadcast_to(index, (batch, size))
    return {"index": index, "length": jnp.asarray(size if length is None else length), **others}


@pytest.fixture(scope="module")
def draws():
    """600 draws of 8 positions out of 2048, in sequences padded to 8 and to 64."""
    keys = jax.random.split(KEY, 600)
    draw = lambda size: jax.jit(jax.vmap(lambda key: coordinates("random_sorted(2048)")(key, given(size, 8), True)))  # noqa: E731
    return {size: np.asarray(draw(size)(keys)) for size in (8, 64)}


def test_random_positions_rise_and_stay_below_the_limit(draws):
    assert (np.diff(draws[8]) > 0).all() and draws[8].min() >= 0 and draws[8].max() < 2048


def test_random_positions_follow_the_law_of_order_statistics(draws):
    """The r-th smallest of 8 from 0..2047 has the mean r 2049 / 9 - 1: 1820.3 for the largest, 226.7 for the first."""
    expected = np.arange(1, 9) * 2049 / 9 - 1
    np.testing.assert_allclose(draws[8].mean(0), expected, atol=4 * 340 / 600**0.5)


def test_padding_changes_no_random_position(draws):
    np.testing.assert_array_equal(draws[64][:, :8], draws[8])
    assert draws[64].max() < 2048, "padding has a row in every table that serves the rest"


@pytest.mark.parametrize("limit", [3, 8])
def test_as_many_numbers_as_the_limit_are_all_of_them(limit):
    np.testing.assert_array_equal(coordinates(f"random_sorted({limit})")(KEY, given(limit), False), np.arange(limit))


def test_the_same_key_draws_the_same_and_another_does_not_in_evaluation_too():
    for train in (True, False):
        draw = lambda key, train=train: coordinates("random_sorted(99)")(key, given(5), train)  # noqa: E731
        np.testing.assert_array_equal(draw(KEY), draw(KEY))
        assert (draw(KEY) != draw(jax.random.key(1))).any()
    np.testing.assert_array_equal(
        coordinates("random_sorted(99)")(KEY, given(5), True), coordinates("random_sorted(99)")(KEY, given(5), False)
    )


def rows(text, train=True, length=None, index=None):
    offered = given(6, length=length, batch=3)
    return np.asarray(coordinates(text)(KEY, offered if index is None else offered | {"index": index}, train))


def test_each_says_whether_a_draw_serves_the_batch_or_one_example():
    shared, own = rows("random_sorted(2048)"), rows("random_sorted(2048, each='example')")
    assert shared.shape == own.shape == (3, 6)
    assert (shared == shared[0]).all() and (own[0] != own[1]).any() and (own[1] != own[2]).any()
    shared, own = rows("offset(400, each='batch')"), rows("offset(400)")
    assert (shared == shared[0]).all() and len(np.unique(own[:, 0])) == 3


def test_examples_of_unequal_lengths_keep_their_own_law():
    ours = rows("random_sorted(2048)", length=jnp.array([6, 2, 4]))
    assert (np.diff(ours[1, :2]) > 0).all() and (np.diff(ours[2, :4]) > 0).all()
    alone = coordinates("random_sorted(2048)")(KEY, given(6, 2), True)
    np.testing.assert_array_equal(ours[1, :2], alone[:2])


def test_a_draw_serves_all_layers_unless_each_has_its_own():
    at = lambda text, layer: np.asarray(posenc.place(posenc.parse(text), KEY, given(6), layer=layer))  # noqa: E731
    np.testing.assert_array_equal(at("rope @ random_sorted(999)", 0), at("rope @ random_sorted(999)", 1))
    own = "rope @ random_sorted(999, resample='layer')"
    assert (at(own, 0) != at(own, 1)).any()
    traced = jax.jit(lambda layer: posenc.place(posenc.parse(own), KEY, given(6), layer=layer))
    np.testing.assert_array_equal(traced(1), at(own, 1))


def test_an_offset_shifts_all_tokens_alike_and_at_most_to_its_limit():
    drawn = np.asarray(
        jax.jit(jax.vmap(lambda key: coordinates("offset(5)")(key, given(4), True)))(jax.random.split(KEY, 300))
    )
    np.testing.assert_array_equal(drawn - drawn[:, :1], np.broadcast_to(np.arange(4), drawn.shape))
    np.testing.assert_array_equal(np.unique(drawn[:, 0]), np.arange(6))


def test_an_offset_is_one_more_than_the_largest_in_evaluation_or_zero_if_told():
    np.testing.assert_array_equal(rows("offset(5)", train=False)[0], np.arange(6) + 6)
    np.testing.assert_array_equal(rows("offset(5, evaluate='zero')", train=False)[0], np.arange(6))


def test_scaled_positions_are_the_index_divided():
    np.testing.assert_allclose(rows("scale(4.0)")[0], np.arange(6) / 4)


def test_a_sum_is_placed_part_by_part_with_draws_of_their_own():
    scheme = posenc.parse("rope @ random_sorted(999) + alibi + sinusoidal @ random_sorted(999)")
    first, second, third = posenc.place(scheme, KEY, given(6))
    np.testing.assert_array_equal(second, np.arange(6))
    assert (first != third).any() and (np.diff(first) > 0).all() and (np.diff(third) > 0).all()
    both = posenc.place(posenc.parse("(rope + alibi) @ random_sorted(999)"), KEY, given(6))
    assert both.shape == (6,), "one array serves all parts"


def test_what_the_task_offers_is_taken_by_name_and_what_it_does_not_is_listed():
    coupled = jnp.array([5, 6, 6])
    offered = given(3, coupled=coupled, digit=coupled)
    np.testing.assert_array_equal(coordinates("given('coupled')")(KEY, offered, True), coupled)
    with pytest.raises(ValueError, match="'row'.*'coupled', 'digit'"):
        coordinates("given('row')")(KEY, offered, True)
    with pytest.raises(ValueError, match="none"):
        coordinates("given('row')")(KEY, given(3), True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("random_sorted(0)", "at least 1"),
        ("offset(-1)", "at least 0"),
        ("scale(0)", "above 0"),
        ("scale(-2)", "above 0"),
        ("random_sorted(each='row')", "'batch' or 'example'"),
        ("random_sorted(resample='never')", "'forward' or 'layer'"),
        ("random_sorted(2.5)", "whole number"),
        ("offset(evaluate='largst')", "'largest' or 'zero'"),
        ("random_float(0.0)", "above 0"),
        ("random_float(trained=0)", "at least 1"),
        ("augment(-1.0)", "augment.* -1.0"),
        ("augment(factor=0.5)", "augment.* 0.5"),
        ("augment(delta=0.0)", "above 0"),
        ("skip(0)", "at least 1"),
        ("group(0)", "at least 1"),
        ("grid(0)", "at least 1"),
        ("given('digit', shift=-1)", "at least 0"),
        ("axes(shift=-1)", "at least 0"),
        ("segments('inside', cap=0)", "at least 1"),
        ("segments('which', cap=3)", "cap"),
    ],
)
def test_settings_without_a_meaning_are_refused(text, why):
    with pytest.raises(ValueError, match=why):
        coordinates(text)


def test_more_tokens_than_numbers_are_refused_with_both():
    with pytest.raises(ValueError, match="9 tokens.* 8"):
        coordinates("random_sorted(8)")(KEY, given(9), True)


def test_a_pattern_and_what_is_no_scheme_are_not_placed():
    with pytest.raises(TypeError, match="one layer's scheme at a time"):
        posenc.place(posenc.parse("[rope, nope]"), KEY, given(3))
    with pytest.raises(TypeError, match="scheme"):
        posenc.place("rope", KEY, given(3))


@pytest.mark.parametrize("text", ["rope", "rope @ random_sorted(9)", "rope + alibi @ offset(3)", "rope @ scale(2.0)"])
def test_what_is_given_holds_the_index_and_a_length_of_its_tokens(text):
    scheme, index = posenc.parse(text), np.arange(6)
    for wrong, why in (
        ({}, "given lacks 'index' and 'length'"),
        ({"index": index}, "given lacks 'length'"),
        ({"index": index, "length": 7}, "A length of 7 was given with 6 tokens"),
        ({"index": index, "length": np.array([2, -1])}, "A length of -1 was given with 6 tokens"),
    ):
        with pytest.raises(ValueError, match=why) as refusal:
            posenc.place(scheme, KEY, wrong)
        assert str(refusal.value).endswith(".")
    jax.jit(lambda length: posenc.place(scheme, KEY, {"index": index, "length": length}))(7)  # no value to refuse


@pytest.mark.parametrize("text", ["rope", "rope @ random_sorted(9)", "rope + window(3)"])
def test_index_and_length_are_of_the_same_sequences_and_lengths_are_whole(text):
    scheme, index = posenc.parse(text), np.arange(6)
    rows = np.broadcast_to(index, (3, 6))
    for wrong, kind, why in (
        ({"index": rows, "length": np.array([6, 6])}, ValueError, r"shape \(3, 6\) was given with .* shape \(2,\)"),
        ({"index": index, "length": np.array([[6]])}, ValueError, r"they are \[L\] or \[batch, L\]"),
        ({"index": 6, "length": 6}, ValueError, r"An index of the shape \(\)"),
        ({"index": index, "length": 2.5}, TypeError, "length is float64; it counts tokens, so it is a whole number"),
    ):
        with pytest.raises(kind, match=why):
            posenc.place(scheme, KEY, wrong)
    for lengths in (6, np.array([6, 2, 4])):
        posenc.place(scheme, KEY, {"index": rows, "length": lengths})
    with pytest.raises(TypeError, match="float32"):
        jax.jit(lambda length: posenc.place(scheme, KEY, {"index": index, "length": length}))(2.5)


LARGEST = {
    "random_sorted(6)": [5] * 6,
    "offset(5)": [5, 6, 7, 8, 9, 10],
    "skip(8)": [2, 3, 4, 5, 6, 7],
    "given('coupled', shift=4)": [0, 5, 5, 6, 6, 0],
    "axes('coupled', 'coupled', shift=4)": [[n, n] for n in (0, 5, 5, 6, 6, 0)],
    "segments('inside')": [0, 1, 0, 1, 2, 3],
}


@pytest.mark.parametrize("text", LARGEST)
def test_the_largest_positions_are_those_that_draws_come_to_and_none_exceeds(text):
    """Of every token but those that the two draws of `skip` do not move."""
    one, offered = coordinates(text), given(6, coupled=np.array([0, 1, 1, 2, 2, 0]), separator=np.arange(6) == 1)
    largest = np.asarray(one.largest(offered, True))
    np.testing.assert_array_equal(largest, LARGEST[text])
    drawn = np.asarray(jax.jit(jax.vmap(lambda key: one(key, offered, True)))(jax.random.split(KEY, 200)))
    assert (drawn <= largest).all() and (drawn.max(0)[-1] == largest[-1]).all()
    told = np.asarray(one(KEY, offered, False))
    assert (told <= one.largest(offered, False)).all()


def test_where_no_largest_position_is_known_none_is_said():
    for text in ("random_float(trained=4)", "augment", "index", "random_sorted(9, over='distances')"):
        assert coordinates(text).largest(given(6), True) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rope_2d @ axes('time', 'row', 'col')", "'axes' are 3 numbers for each token, and 'rope_2d' takes 2"),
        ("rope @ axes('row', 'col')", "'axes' are 2 numbers for each token, and 'rope' takes 1"),
        ("mrope @ offset(3)", "'offset' are one number for each token, and 'mrope' takes 3"),
        ("sinusoidal_2d @ augment", "'augment' are one number for each token, and 'sinusoidal_2d' takes 2"),
        ("(rope + rope_2d) @ axes('row', 'col')", "'axes' are 2 numbers for each token, and 'rope' takes 1"),
    ],
)
def test_coordinates_of_other_axes_than_the_scheme_s_are_refused_when_it_is_bound(text, why):
    with pytest.raises(ValueError, match=f"coordinates {why}"):
        posenc.bind(text, posenc.Dims(width=32, heads=2, head=16, trained=16))


def test_one_axis_that_is_augmented_serves_a_scheme_of_one():
    scheme = posenc.bind("sinusoidal @ augment(which=('digit',))", posenc.Dims(16, 2, 8, 16))
    placed = posenc.place(scheme, KEY, given(6, digit=np.arange(6)), train=True)
    assert placed.shape == (6,)
    assert posenc.embed(scheme.scheme, None, jnp.ones((6, 16)), positions=placed).shape == (6, 16)


@pytest.mark.parametrize("shape", [(16, 3), (16,), (1, 16), (2, 16)])
@pytest.mark.parametrize(("text", "right"), [("rope_2d", r"\(16, 2\) or \(1, 16, 2\)"), ("mrope", r"\(16, 3\) or")])
def test_the_shape_that_is_asked_for_is_one_that_is_taken(text, right, shape):
    scheme = posenc.bind(text, posenc.Dims(16, 2, 8, 16))
    q = jnp.ones((1, 16, 2, 8))
    axes = int(right[6])
    if shape != (16, axes):
        with pytest.raises(ValueError, match=rf"shape.* {right}"):
            posenc.attend(scheme, None, q, q, q, positions=np.zeros(shape, int))
    assert posenc.attend(scheme, None, q, q, q, positions=np.zeros((16, axes), int)).shape == q.shape
