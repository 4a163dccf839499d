"""Biases that are functions of distance, and where such functions break."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.golden.through import bias as through_bias
from tests.schemes.helpers import DIMS, bias, made

PLACES = np.array([0, 1, 2, 5, 9, 30])
SPREAD = PLACES.astype(np.float32)


def traced_bias(scheme, params, places):
    """As `bias`, under a transformation."""
    return through_bias(scheme, params, DIMS.heads, len(places), len(places), positions=places, key_positions=places)


def set_heads(params, **values):
    heads = {n: jnp.broadcast_to(jnp.asarray(values[n], jnp.float32), (DIMS.heads,)) for n in values}
    return params | {"heads": params["heads"] | heads}


@pytest.mark.parametrize("name", ["r1", "r2"])
@pytest.mark.parametrize("text", ["kerple", "kerple(kernel='power')"])
def test_below_its_bound_a_parameter_of_kerple_acts_at_the_bound_and_learns_from_there(text, name):
    scheme, params = made(text)
    total = jax.jit(jax.value_and_grad(lambda p: traced_bias(scheme, p, SPREAD).sum()))
    below, bound = (total(set_heads(params, **{name: x})) for x in (-3.0, 0.01))
    np.testing.assert_allclose(below[0], bound[0], rtol=1e-6)
    np.testing.assert_allclose(below[1]["heads"][name], bound[1]["heads"][name], rtol=1e-5)
    assert (below[1]["heads"][name] != 0).all()


@pytest.mark.guard
@pytest.mark.parametrize(
    "text",
    [
        "kerple",
        "kerple(kernel='power')",
        "kerple(kernel='power', weight=True)",
        "kerple(kernel='none', weight=True)",
        "fire",
        "fire(threshold=0.0)",
        "sandwich",
    ],
)
def test_gradients_are_finite_at_distance_0_even_with_respect_to_positions(text):
    scheme, params = made(text)
    if text.startswith("kerple"):
        powers = {"r2", "w2"} & params["heads"].keys()
        params = set_heads(params, **dict.fromkeys(powers, 0.01))  # the slope of d^0.01 at 0 is infinite
    places = jnp.asarray([0.0, 0.0, 0.0, 4.0])
    value, back = jax.jit(jax.value_and_grad(lambda p, x: traced_bias(scheme, p, x).sum(), (0, 1)))(params, places)
    assert np.isfinite(value) and all(np.isfinite(a).all() for a in jax.tree.leaves(back))


def test_sandwich_is_as_exact_at_far_distances_as_at_near_ones():
    """A float32 product is off by a hundredth of a radian at 131072."""
    far = np.array([0, 131071, 2**30 + 1])
    ours = bias(*made("sandwich(dim=8)"), far, np.zeros(1, int))[0, :, 0]
    turn = np.cos(far[:, None].astype(np.longdouble) * 10000.0 ** (-2 * np.arange(4) / 8))
    np.testing.assert_allclose(ours, turn.sum(-1) * 4 / 8, atol=1e-6)


def test_no_array_holds_the_hidden_layer_of_all_pairs():
    scheme, params = made("log_cpb(hidden=256)")
    n = 96
    q = jnp.zeros((n, DIMS.heads, DIMS.head))
    loss = lambda p: (posenc.attend(scheme, p, q, q, q) ** 2).sum()  # noqa: E731
    memory = jax.jit(jax.grad(loss)).lower(params).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 4 * n * n * 256 / 2
