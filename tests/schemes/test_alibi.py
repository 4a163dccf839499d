"""ALiBi: slopes, signs, and what becomes of them where codebases differ."""

import jax.numpy as jnp
import numpy as np
import pytest

from posenc.schemes import alibi
from tests.oracles.alibi import slopes as of_the_paper
from tests.schemes.seen import DIMS, attend, bias, made, tokens

PLACES = np.array([0, 1, 2, 5, 9])


def slopes(heads):
    return np.asarray(alibi.slope(jnp.arange(128), heads))[:heads]  # of one shape, compiled once


def test_slopes_are_those_of_the_paper_for_every_number_of_heads_to_128():
    for heads in range(1, 129):
        m = slopes(heads)
        np.testing.assert_allclose(m, of_the_paper(heads), rtol=1e-6)
        assert ((m > 0) & (m <= 1)).all() and len(np.unique(m)) == heads


@pytest.mark.parametrize("shift", [1, 17, 1000, 100000])
def test_the_penalty_knows_distance_and_nothing_else(shift):
    for form in ("symmetric", "half", "sided"):
        scheme, params = made(f"alibi(form={form!r})")
        np.testing.assert_array_equal(bias(scheme, params, PLACES + shift), bias(scheme, params, PLACES))


def test_only_the_symmetric_form_and_fresh_sided_slopes_are_the_same_both_ways():
    for form, same in (("symmetric", True), ("sided", True), ("half", False)):
        b = bias(*made(f"alibi(form={form!r})"), PLACES)
        assert np.array_equal(b, b.swapaxes(1, 2)) == same


def test_the_half_form_adds_half_a_slope_to_keys_before_the_query():
    plain, half = (bias(*made(text), PLACES) for text in ("alibi", "alibi(form='half')"))
    before = np.tri(len(PLACES), k=-1)
    np.testing.assert_allclose(half - plain, slopes(4)[:, None, None] / 2 * before, atol=1e-7)


def test_sided_slopes_act_each_on_its_side():
    scheme, params = made("alibi(form='sided')")
    plain = bias(scheme, params, PLACES)
    params["heads"]["past"] = params["heads"]["past"] * 3
    past = np.tri(len(PLACES), dtype=bool)
    np.testing.assert_allclose(bias(scheme, params, PLACES), np.where(past, 3 * plain, plain), rtol=1e-6)


def test_far_apart_the_penalty_is_still_exact_where_the_key_only_form_is_not():
    near = 2**20 + np.arange(4)
    np.testing.assert_array_equal(bias(*made("alibi"), near), bias(*made("alibi"), np.arange(4)))


@pytest.mark.parametrize("text", ["alibi", "alibi(form='sided')"])
def test_at_half_precision_the_penalty_is_computed_in_float32(text):
    scheme, params = made(text)
    q, k, v, _ = tokens(8)
    far = [jnp.asarray(a, jnp.bfloat16) for a in (q, k, v)]
    exact = attend(scheme, params, *(a.astype(jnp.float32) for a in far), positions=np.arange(8) * 257)
    rough = attend(scheme, params, *far, positions=np.arange(8) * 257)
    np.testing.assert_allclose(np.asarray(rough, np.float32), exact, atol=2**-7 * np.abs(exact).max())


@pytest.mark.parametrize(
    "fault",
    [
        lambda head, heads: 2.0 ** (-8 * head / heads),  # the exponent off by one
        lambda head, heads: 2.0 ** (-8 * (head + 1) / heads),  # no exception where heads are no power of two
        lambda head, heads: -alibi_slope(head, heads),  # a reward
    ],
)
def test_a_wrong_slope_would_be_noticed(monkeypatch, fault):
    monkeypatch.setattr(alibi, "slope", fault)
    with pytest.raises(AssertionError):
        test_slopes_are_those_of_the_paper_for_every_number_of_heads_to_128()


alibi_slope = alibi.slope


def test_each_head_of_a_group_keeps_its_own_slope():
    scheme, params = made("alibi")
    q, k, v, _ = tokens(5)
    few = [a[:, :2] for a in (k, v)]
    many = [np.repeat(a, DIMS.heads // 2, 1) for a in few]
    np.testing.assert_allclose(attend(scheme, params, q, *few), attend(scheme, params, q, *many), atol=1e-6)
