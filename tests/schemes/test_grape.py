"""GRAPE's additive forms: ALiBi with slopes that tokens choose, and penalties gathered on the way."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.schemes.helpers import attend, made, tokens

AP = "grape_ap(source='value')"


def test_a_direction_of_nothing_has_a_finite_gradient():
    """A norm at 0."""
    scheme, params = made("grape_a(gate='both')")
    params["heads"] |= {n: jnp.zeros((4, 4)) for n in "uv"}
    q, k, v, _ = tokens(5)
    back = jax.jit(jax.grad(lambda p: posenc.attend(scheme, p, q, k, v).sum()))(params)
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(back))


def test_in_a_sum_the_gates_see_what_the_schemes_before_leave():
    dims = posenc.Dims(width=6, heads=4, head=4, trained=16)
    q, k, v, _ = tokens(6)
    first, last = (made(text, dims) for text in ("grape_a + rope", "rope + grape_a"))
    params = first[1]
    assert np.abs(attend(first[0], params, q, k, v) - attend(last[0], params[::-1], q, k, v)).max() > 1e-4


def test_a_window_leaves_the_penalties_within_it():
    scheme, params = made("grape_ap")
    params = jax.tree.map(lambda a: 5 * a, params)
    q, k, v, x = tokens(7)
    narrow = attend(scheme, params, q, k, v, x, mask=posenc.Window(2, 0))
    where = {"query_start": 2, "positions": np.arange(6, 7), "key_positions": np.arange(4, 7)}
    three = attend(scheme, params, q[-1:], k[4:], v[4:], x[-1:], key_x=x[4:], **where)
    np.testing.assert_allclose(narrow[-1:], three, atol=1e-6)


def test_in_a_sum_features_are_of_the_values_that_the_schemes_before_leave():
    (first, _), (last, _) = (made(f"{a} + {b}") for a, b in (("vo_rope", AP), (AP, "vo_rope")))
    q, k, v, _ = tokens(7)
    params = ({"layer": {}, "heads": {}},) * 2
    assert np.abs(attend(first, params, q, k, 3 * v) - attend(last, params, q, k, 3 * v)).max() > 1e-3
