"""The continuous position bias: a function of scaled distances, whatever the window."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.schemes.helpers import DIMS, bias, made


def strong(text, dims=DIMS, seed=0):
    """Parameters large enough that nothing is hidden by a bias that is flat."""
    scheme, params = made(text, dims)
    rng = np.random.default_rng(seed)
    return scheme, jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape), jnp.float32), params)


def test_no_array_holds_the_hidden_layer_of_all_pairs():
    scheme, params = made("log_cpb(hidden=256)")
    n = 96
    q = jnp.zeros((n, DIMS.heads, DIMS.head))
    loss = lambda p: (posenc.attend(scheme, p, q, q, q) ** 2).sum()  # noqa: E731
    memory = jax.jit(jax.grad(loss)).lower(params).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 4 * n * n * 256 / 2


def test_the_logarithm_of_x_transformers_is_that_of_reach_8_up_to_the_first_layers_scale():
    scheme, params = strong("log_cpb(reach=8.0, hidden=5, bounded=False, activation='silu')")
    ours = bias(scheme, params, [3, 0, 7])
    p = jax.tree.map(np.asarray, params)
    d = np.array([[0, 3, -4], [-3, 0, -7], [4, 7, 0]])
    t = np.sign(d) * np.log(np.abs(d) + 1)
    hidden = t[..., None] * p["layer"]["w1"][0] / np.log(8) + p["layer"]["b1"]
    hidden = hidden / (1 + np.exp(-hidden))
    np.testing.assert_allclose(
        ours, np.einsum("qkn,hn->hqk", hidden, p["heads"]["w"]) + p["heads"]["b"][:, None, None], atol=1e-5
    )


def test_the_reach_is_that_of_training_unless_given():
    at = lambda text, trained: posenc.bind(posenc.parse(text), posenc.Dims(8, 2, 4, trained)).reach  # noqa: E731
    assert at("log_cpb", 16) == 15 and at("log_cpb(axes=2)", 49) == 6 and at("log_cpb", 1) == 1
    assert at("log_cpb(reach=4)", 16) == 4 and at("log_cpb(axes=2, reach=(1, 2))", 16) == (1.0, 2.0)


def test_weights_start_small_and_biases_at_zero():
    params = made("log_cpb(depth=2)")[1]
    shapes = {n: a.shape for n, a in params["layer"].items()}
    assert shapes == {"w1": (1, 512), "b1": (512,), "w2": (512, 512), "b2": (512,)} and params["heads"]["w"].shape == (
        4,
        512,
    )
    assert abs(np.asarray(params["layer"]["w2"]).std() / 0.02 - 1) < 0.02 and not np.any(params["layer"]["b1"])
