"""Values and gradients at norms, scales, temperatures and gates of nothing or much."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.schemes.helpers import DIMS, attend, made, tokens

TO = {"zero": jnp.zeros_like, "ones": jnp.ones_like}
CASES = {
    "no direction": ("grape_a(gate='both')", {"u": "zero", "v": "zero"}, {}),
    "no features": ("path(forget='scaled')", {}, {"x": np.zeros((5, DIMS.width), np.float32)}),
    "no scale": ("fire(threshold=3.0)", {"c": "zero"}, {}),
    "no threshold": ("fire(threshold=3.0)", {"m": "zero"}, {}),
    "a query that sees nothing": ("ssmax", {}, {"segments": np.array([0, 1, 1, 1, 1])}),
    "below the floor": ("inkling(extent=4, strength=0.5, floor=100)", {"w": "ones"}, {"positions": np.arange(5) - 50}),
    "gates far up": ("carope(first=1)", {"w": "ones"}, {"x": np.full((5, DIMS.width), 1e4, np.float32)}),
    "gates far down": ("carope(first=1)", {"w": "ones"}, {"x": np.full((5, DIMS.width), -1e4, np.float32)}),
}


def case(name):
    """A scheme, its parameters with some of them changed, and what attention is given."""
    text, changed, about = CASES[name]
    scheme, params = made(text)
    q, k, v, x = tokens(5)
    change = lambda path, a: TO[changed[path[-1].key]](a) if path[-1].key in changed else a  # noqa: E731
    return scheme, jax.tree.map_with_path(change, params), (q, k, v), {"x": x} | about


@pytest.mark.guard
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_finite(name):
    scheme, params, (q, k, v), about = case(name)
    x = about.pop("x")
    loss = lambda params, q, x: (posenc.attend(scheme, params, q, k, v, x=x, **about) * v).sum()  # noqa: E731
    value, slopes = jax.jit(jax.value_and_grad(loss, (0, 1, 2)))(params, q, x)
    assert np.isfinite(value) and all(np.isfinite(a).all() for a in jax.tree.leaves(slopes))


def test_below_its_floor_the_temperature_is_one():
    scheme, params, qkv, about = case("below the floor")
    plain = attend(made("inkling(extent=4, strength=0.0)")[0], params, *qkv, about["x"])
    np.testing.assert_allclose(attend(scheme, params, *qkv, **about), plain, atol=1e-6)


@pytest.mark.parametrize("name", ["gates far up", "gates far down"])
def test_steps_between_tokens_are_between_nothing_and_one_for_any_gate(name):
    scheme, params, _, about = case(name)
    at = posenc.At(np.arange(5), np.arange(5), np.ones(5, np.int32), 1 + np.arange(5), 0, DIMS.heads)
    p = params["layer"] | {n: a[0] for n, a in params["heads"].items()}
    steps = np.diff(scheme.locate(p, about["x"], at, scheme.carry(DIMS))[0], axis=0)
    assert ((steps >= 0) & (steps <= 1)).all()
