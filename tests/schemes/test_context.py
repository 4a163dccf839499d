"""Selective RoPE, CARoPE, RePo, PaTH and GRAPE: what the tokens say of positions; and whose keys stay few."""

import jax
import numpy as np
import pytest

import posenc
from tests.schemes.helpers import attend, made, tokens

DIMS = posenc.Dims(width=8, heads=4, head=4, trained=16)


def located(scheme, params, x, head=0, segment=None):
    """What each token is told of itself under one head."""
    p = params["layer"] | {name: a[head] for name, a in params["heads"].items()}
    segment = np.ones(len(x), np.int32) if segment is None else np.asarray(segment, np.int32)
    at = posenc.At(np.arange(len(x)), np.arange(len(x)), segment, np.arange(len(x)) + 1, head, DIMS.heads)
    run = lambda p, x, segment: scheme.locate(p, x, at._replace(segment=segment), scheme.carry(DIMS))[0]  # noqa: E731
    return np.asarray(jax.jit(run)(p, x, segment))


def louder(params, by=30.0):
    """Parameters whose effect is seen: at the start tokens hardly turn anything."""
    return jax.tree.map(lambda a: a * by, params)


def start(text, seed=0):
    return made(text, DIMS, seed)


@pytest.mark.parametrize(("spectrum", "base"), [("rope", 500000.0), ("rfa", 0.9)])
def test_temperatures_are_fixed_unless_learned_and_fall_or_rise_to_one(spectrum, base):
    fixed, params = start(f"selective_rope(spectrum={spectrum!r}, base={base})")
    learned, more = start(f"selective_rope(spectrum={spectrum!r}, base={base}, frequencies='learned')")
    assert "temperature" not in params["layer"] and more["layer"]["temperature"].shape == (2,)
    expected = [1, base**-0.5] if spectrum == "rope" else [0, 1]
    np.testing.assert_allclose(more["layer"]["temperature"], expected, rtol=1e-6)
    q, k, v, x = tokens(6, dims=DIMS)
    loss = lambda p: (posenc.attend(learned, p, q, k, v, x=x) * v).sum()  # noqa: E731
    back = jax.jit(jax.grad(loss))(louder(more))["layer"]["temperature"]
    assert (np.abs(back) > 1e-6).all()


@pytest.mark.parametrize("base", [1e4, 1.0001, 1e30])
def test_it_starts_as_rope_of_any_base(base):
    """softplus(b) is base^(2/d) - 1, whose exponential would overflow."""
    scheme, params = made(f"carope(base={base})", posenc.Dims(8, 4, 4, 16))
    c = located(scheme, params, np.zeros((2, 8), np.float32))
    np.testing.assert_allclose(np.diff(c, axis=0)[0], [1, base**-0.5], rtol=1e-4)


def test_between_two_sequences_each_token_chooses_by_its_own_features():
    scheme, params = start("repo(mode='shared', base=100.0)")
    params = louder(params)
    q, k, v, x = tokens(7, dims=DIMS)
    asked, key_x = x[:3] * 2 + 1, x
    ours = attend(scheme, params, q[:3], k, v, asked, key_x=key_x, mask="full")
    w = params["layer"]["w"]
    where = {"positions": asked @ w, "key_positions": key_x @ w, "mask": "full"}
    np.testing.assert_allclose(ours, attend(*start("rope(base=100.0)"), q[:3], k, v, **where), atol=2e-6)


APART = {"query_start": 2, "positions": np.arange(6, 7), "key_positions": np.arange(4, 7)}


@pytest.mark.guard
@pytest.mark.parametrize(
    ("text", "by", "where"), [("path(kernel=1, forget='unscaled')", 1, {"query_start": 2}), ("grape_ap", 5, APART)]
)
def test_a_window_leaves_what_is_gathered_on_the_way_within_it(text, by, where):
    scheme, params = start(text)
    params = louder(params, by)
    q, k, v, x = tokens(7, dims=DIMS)
    narrow = attend(scheme, params, q, k, v, x, mask=posenc.Window(2, 0))
    three = attend(scheme, params, q[-1:], k[4:], v[4:], x[-1:], key_x=x[4:], **where)
    np.testing.assert_allclose(narrow[-1:], three, atol=1e-6)


KEPT = {
    "deberta('c2p', reach=4)": 2,
    "deberta('p2c', reach=4)": 4,
    "deberta('both', reach=4)": 4,
    "repo(mode='shared')": 2,
    "repo(mode='linear')": 4,
    "repo(mode='swiglu')": 4,
}
"""How many keys of two groups a cache of four heads holds."""


@pytest.mark.parametrize("text", KEPT)
def test_keys_stay_few_where_no_head_has_its_own(text):
    dims = posenc.Dims(width=8, heads=4, head=4, trained=16, key_heads=2)
    scheme, params = made(text, dims)
    cache = posenc.Cache.empty(scheme, params, dims, batch=1, capacity=4)
    assert cache.k.shape == (1, KEPT[text], 4, 4)
