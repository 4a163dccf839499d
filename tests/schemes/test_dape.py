"""DAPE: heads that hear one another, and convolutions that neither hear the next key nor count what follows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.schemes.helpers import DIMS, attend, made, tokens

LEAKY = 0.01


def strong(text, seed=0):
    """Parameters large enough to be seen; the bias before keeps its own."""
    scheme, params = made(text)
    rng = np.random.default_rng(seed)
    shaken = lambda p: jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape) / 2, jnp.float32), p)  # noqa: E731
    return scheme, (*params[:-1], shaken(params[-1])) if isinstance(params, tuple) else shaken(params)


def test_the_perceptron_hears_products_first_and_then_what_was_added_to_them():
    scheme, (none, p) = strong("alibi(form='symmetric') + dape(hidden=5)")
    q, k, v, _ = tokens(6)
    s = np.einsum("qhd,khd->hqk", q, k) / 2
    b = -(2.0 ** -np.array([2, 4, 6, 8]))[:, None, None] * np.abs(np.arange(6)[:, None] - np.arange(6)[None])
    inner = (
        np.einsum("cqk,cn->nqk", np.concatenate([s, b]), p["layer"]["w1"]) + np.asarray(p["layer"]["b1"])[:, None, None]
    )
    f = np.einsum("nqk,hn->hqk", np.where(inner > 0, inner, LEAKY * inner), p["heads"]["w2"])
    a = jax.nn.softmax(s + b + f + np.asarray(p["heads"]["b2"])[:, None, None], -1)
    ours = attend(scheme, (none, p), q, k, v, mask="full")
    np.testing.assert_allclose(ours, np.einsum("hqk,khd->qhd", a, v), atol=2e-5)


@pytest.mark.ci
def test_the_released_edge_tells_of_what_follows_in_the_last_rows_alone():
    """There the array of keys ends; `edge="open"` makes the same of every row, whatever follows."""
    scheme, params = strong("kerple + dape_v2(kernel=5)")
    released = posenc.parse("kerple + dape_v2(kernel=5, edge='array')")
    q, k, v, _ = tokens(10)
    run = lambda scheme, n: np.asarray(attend(scheme, params, q[:n], k[:n], v[:n]))  # noqa: E731
    ours, theirs, last = run(scheme, 10), run(released, 10), 2  # half of the kernel
    np.testing.assert_allclose(theirs[:-last], ours[:-last], atol=1e-6)
    assert (np.abs(theirs - ours)[-last:].max((1, 2)) > 1e-4).all()
    np.testing.assert_allclose(run(scheme, 6), ours[:6], atol=1e-6)
    assert np.abs(run(released, 6) - theirs[:6]).max() > 1e-4


def test_the_released_edge_has_no_cache():
    scheme, params = made("dape_v2(edge='array')")
    with pytest.raises(ValueError, match="'dape_v2' has no cache: its convolution reads where the array of keys ends"):
        posenc.Cache.empty(scheme, params, DIMS, batch=1, capacity=4, dtype=jnp.float32)


def test_weights_start_between_the_bounds_of_their_inputs():
    p = made("dape_v2(hidden=500)")[1]
    for name, group, inputs in (("w1", "layer", 2 * 4 * 3), ("w2", "heads", 500 * 3)):
        w = np.asarray(p[group][name])
        assert np.abs(w).max() <= inputs**-0.5 and abs(w.std() * (3 * inputs) ** 0.5 - 1) < 0.03
    assert p["layer"]["w1"].shape == (8, 500, 3) and p["heads"]["w2"].shape == (4, 500, 3)
