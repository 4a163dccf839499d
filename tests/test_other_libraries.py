"""posenc in models of libraries that need no adapter: Haiku, Keras 3 on JAX, and plain JAX with Optax.

Each model is what a user would write, trained for a few steps, and its attention is `posenc.attend` on its own weights.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import warnings

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import posenc

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Keras looks for libraries that it could use, and they warn
    import keras

L, WIDTH, H, D = 8, 16, 2, 8
DIMS = posenc.Dims(width=WIDTH, heads=H, head=D, trained=L)
X = jax.random.normal(jax.random.key(0), (4, L, WIDTH))
Y = jnp.roll(X, 1, axis=1)
TEXTS = ("t5 + alibi", "fox")


def bound(text):
    return posenc.bind(posenc.parse(text), DIMS)


def heads(x, w):
    return (x @ w).reshape(*x.shape[:-1], H, D)


def by_hand(scheme, params, weights):
    """The attention of every model here, from its weights."""
    q, k, v = (heads(X, w) for w in weights[:3])
    mixed = posenc.attend(scheme, params, q, k, v, x=X, mask="causal")
    return mixed.reshape(*X.shape[:-1], H * D) @ weights[3]


def descend(loss, params, steps=3):
    """A few steps of gradient descent: the loss before and after, and the parameters at the end."""
    tx = optax.adam(1e-2)
    state = tx.init(params)
    both = jax.jit(jax.value_and_grad(loss))
    first = None
    for _ in range(steps):
        value, gradient = both(params)
        first = value if first is None else first
        update, state = tx.update(gradient, state)
        params = optax.apply_updates(params, update)
    return first, both(params)[0], params


class HaikuAttention(hk.Module):
    """Haiku owns each leaf of the scheme's parameters under its own name."""

    def __init__(self, scheme):
        super().__init__(name="attention")
        self.scheme = scheme

    def __call__(self, x):
        start = posenc.init(self.scheme, jax.random.key(0), DIMS)
        leaves, tree = jax.tree.flatten(start)
        own = [hk.get_parameter(f"position_{n}", a.shape, init=lambda *_, a=a: a) for n, a in enumerate(leaves)]
        weights = [
            hk.get_parameter(name, (WIDTH, H * D), init=hk.initializers.VarianceScaling())
            for name in ("query", "key", "value", "out")
        ]
        q, k, v = (heads(x, w) for w in weights[:3])
        mixed = posenc.attend(self.scheme, jax.tree.unflatten(tree, own), q, k, v, x=x, mask="causal")
        return mixed.reshape(*x.shape[:-1], H * D) @ weights[3]


@pytest.mark.ci
@pytest.mark.parametrize("text", TEXTS)
def test_haiku(text):
    scheme = bound(text)
    model = hk.without_apply_rng(hk.transform(lambda x: HaikuAttention(scheme)(x)))
    params = model.init(jax.random.key(1), X)
    own = params["attention"]
    tree = jax.tree.structure(posenc.init(scheme, jax.random.key(0), DIMS))
    position = jax.tree.unflatten(tree, [own[f"position_{n}"] for n in range(tree.num_leaves)])
    weights = [own[name] for name in ("query", "key", "value", "out")]
    np.testing.assert_allclose(model.apply(params, X), by_hand(scheme, position, weights), atol=1e-5)
    first, last, after = descend(lambda p: ((model.apply(p, X) - Y) ** 2).mean(), params)
    assert last < first
    assert all(bool(jnp.any(after["attention"][name] != own[name])) for name in own)


class KerasAttention(keras.layers.Layer):
    """Keras owns each leaf of the scheme's parameters as a weight."""

    def __init__(self, scheme):
        super().__init__()
        self.scheme = scheme

    def build(self, shape):
        start = posenc.init(self.scheme, jax.random.key(0), DIMS)
        leaves, self.tree = jax.tree.flatten(start)
        self.position = [
            self.add_weight(shape=a.shape, initializer=lambda shape, dtype, a=a: np.asarray(a)) for a in leaves
        ]
        self.projections = [self.add_weight(shape=(shape[-1], H * D)) for _ in range(4)]

    def call(self, x):
        q, k, v = (heads(x, w.value) for w in self.projections[:3])
        params = jax.tree.unflatten(self.tree, [w.value for w in self.position])
        mixed = posenc.attend(self.scheme, params, q, k, v, x=x, mask="causal")
        return mixed.reshape(-1, *x.shape[1:-1], H * D) @ self.projections[3].value


@pytest.mark.ci
@pytest.mark.parametrize("text", TEXTS)
def test_keras_on_jax(text):
    assert keras.backend.backend() == "jax"
    scheme = bound(text)
    layer = KerasAttention(scheme)
    model = keras.Sequential([layer])
    out = model(X)
    params = jax.tree.unflatten(layer.tree, [w.value for w in layer.position])
    np.testing.assert_allclose(out, by_hand(scheme, params, [w.value for w in layer.projections]), atol=1e-5)
    before = [np.asarray(w.value) for w in layer.weights]
    model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse")
    history = model.fit(np.asarray(X), np.asarray(Y), epochs=3, batch_size=4, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    assert all(np.any(np.asarray(w.value) != b) for w, b in zip(layer.weights, before, strict=True))
