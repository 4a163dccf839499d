"""Sparse weights and an encoder's two triangles, by what they are known for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.schemes.entmax import entmax
from tests.schemes.helpers import bias, made, tokens


@pytest.mark.parametrize("alpha", [1.1, 1.5, 2.0])
@pytest.mark.parametrize("keys", [1, 7, 20000])
def test_rows_sum_to_one_however_long_and_flat(alpha, keys):
    for spread in (0.0, 0.01, 3.0):
        s = spread * jax.random.normal(jax.random.key(0), (2, keys))
        weights = np.asarray(entmax(alpha, s, s == s), float)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        raised = np.where(weights > 1e-6, weights, 1) ** (alpha - 1)
        tau = np.where(weights > 1e-6, (alpha - 1) * np.asarray(s) - raised, np.nan)
        assert (np.nanmax(tau, -1) - np.nanmin(tau, -1) < 1e-4).all() or (weights <= 1e-6).all()


def test_a_row_that_sees_nothing_is_zero_with_zero_gradient():
    seen = jnp.array([[True, True, False], [False, False, False]])
    f = lambda s: (entmax(1.5, s, seen) * jnp.arange(6.0).reshape(2, 3)).sum()  # noqa: E731
    s = jnp.array([[0.5, 0.1, 9.0], [1.0, 2.0, 3.0]])
    assert (entmax(1.5, s, seen)[1] == 0).all() and (jax.grad(f)(s)[1] == 0).all() and jax.grad(f)(s)[0, 2] == 0


def test_sparsemax_is_the_nearest_point_of_the_simplex():
    s = jnp.array([[0.9, 0.5, -0.4, -3.0]])
    np.testing.assert_allclose(entmax(2.0, s, s == s), [[0.7, 0.3, 0.0, 0.0]], atol=1e-6)


def test_far_scores_have_no_weight_at_all():
    q, k, v, _ = tokens(40)
    near = posenc.attend(posenc.parse("alibi(factor=20.0) + entmax"), None, q, k, v)
    cut = posenc.attend(posenc.parse("alibi(factor=20.0) + entmax + window(6)"), None, q, k, v)
    np.testing.assert_allclose(near[:, :2], cut[:, :2], atol=1e-6)


def test_an_encoder_without_positions_sees_order_by_its_triangles():
    q, k, v, _ = tokens(9)
    swapped = np.array([0, 1, 5, 3, 4, 2, 6, 7, 8])
    for text, sees in (("dual_triangle", True), ("nope", False)):
        run = lambda order, text=text: posenc.attend(  # noqa: E731
            posenc.parse(text), None, q[order], k[order], v[order], mask="full", positions=np.arange(9)
        )
        apart = jnp.abs(run(swapped)[3] - run(np.arange(9))[3]).max()
        assert (apart > 1e-3) == sees


def test_a_table_of_offsets_is_not_separable():
    """A number for each offset that is the product of both: no sum of a row's and a column's is that."""
    scheme = posenc.parse("relative_2d(height=3, width=3)")
    down, right = np.meshgrid(np.arange(-2, 3), np.arange(-2, 3), indexing="ij")
    params = {"layer": {}, "heads": {"table": jnp.asarray((down * right).reshape(1, -1), jnp.float32)}}
    places = np.stack(np.meshgrid(np.arange(3), np.arange(3), indexing="ij"), -1).reshape(-1, 2).astype(np.int32)
    ours = bias(scheme, params, places, heads=1)[0]
    offset = places[:, None] - places[None]
    np.testing.assert_array_equal(ours, offset[..., 0] * offset[..., 1])


def test_t5_reaches_a_table_of_offsets_by_another_way():
    """Positions row · (2w - 1) + column and as many buckets as offsets: `t5` is Swin's table then."""
    width = 3
    count = (width - 1) * (2 * width - 1) + width
    text = f"t5(buckets={4 * count}, reach={count + 1}, bidirectional=True)"
    scheme, params = made(text)
    places = np.stack(np.meshgrid(np.arange(width), np.arange(width), indexing="ij"), -1).reshape(-1, 2)
    line = places[:, 0] * (2 * width - 1) + places[:, 1]
    theirs = bias(scheme, params, line)
    offset = places[:, None] - places[None]
    flat = np.unique(offset.reshape(-1, 2), axis=0)
    assert len(flat) == (2 * width - 1) ** 2
    for one in flat:
        same = theirs[:, (offset == one).all(-1)]
        assert np.ptp(same, -1).max() == 0
    assert len(np.unique(theirs[0].round(6))) == len(flat)


def test_places_outside_the_plane_are_refused_and_a_class_token_has_none():
    scheme = posenc.parse("relative_2d(height=2, width=3, class_token=True)")
    scheme.check_positions({}, np.array([[-1, -1], [0, 2], [1, 0]]))
    for wrong in ([[2, 0]], [[0, 3]], [[0, -1]]):
        with pytest.raises(ValueError, match=r"2 by 3"):
            scheme.check_positions({}, np.array(wrong))
    with pytest.raises(ValueError, match="outside the plane"):
        posenc.parse("relative_2d(height=2, width=3)").check_positions({}, np.array([[-1, 0]]))
