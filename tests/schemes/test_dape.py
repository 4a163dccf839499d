"""DAPE: heads that hear one another, and convolutions that neither hear the next key nor count what follows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.schemes.helpers import DIMS, attend, made, tokens


def strong(text, seed=0):
    """Parameters large enough to be seen; the bias before keeps its own."""
    scheme, params = made(text)
    rng = np.random.default_rng(seed)
    shaken = lambda p: jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape) / 2, jnp.float32), p)  # noqa: E731
    return scheme, (*params[:-1], shaken(params[-1])) if isinstance(params, tuple) else shaken(params)


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
