"""Layer normalisation, linear maps, and dropout: random features are zero in training (Srivastava et al., 2014).

    y = x ⊙ m / (1 - rate),   m = 1 with probability 1 - rate, else 0

m is drawn separately for each site of the model and each position, so more padding does not change it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, Float, PRNGKeyArray

from posenc.lab.models.draws import named_key

WIDENED = "posenc_widened"
"""The name of products that are wider than their input, for policies of `jax.checkpoint`: others are made again in a
few percent of the time."""


class Dropout:
    """`drop.at("layer", 3).at("feed")(x)`: each site has its own key. Without a key, `x` is returned unchanged."""

    def __init__(self, rate: float, key: PRNGKeyArray | None):
        self.rate, self.key = rate, key

    def at(self, *names: str | int | Array) -> Dropout:
        """Dropout at a site of the model."""
        return self if self.key is None else Dropout(self.rate, named_key(self.key, *names))

    def __call__(self, x: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
        if self.key is None:
            return x
        batch, length, width = x.shape
        kept = jax.random.bernoulli(self.key, 1 - self.rate, (length, batch, width)).swapaxes(0, 1)
        return jnp.where(kept, x / (1 - self.rate), 0)


NO_DROPOUT = Dropout(0.0, None)


def dropout(rate: float, key: PRNGKeyArray, train: bool) -> Dropout:
    """Dropout of one forward pass. The key may serve other draws too: dropout folds its own name into it."""
    return Dropout(rate, key).at("dropout") if train and rate else NO_DROPOUT


@jax.custom_vjp
def normalise(x: Float[Array, "... width"], scale: Float[Array, " width"]) -> Float[Array, "... width"]:
    """Layer normalisation with a scale and no shift (Ba et al., 2016), computed in float32 at least.

        y = scale ⊙ n,  n = (x - mean x) r,  r = 1 / √(var x + 1e-6)

        dx = r (g - mean g - n · mean(g ⊙ n)),  g = dy ⊙ scale

    JAX derives the same in more operations, which take longer to run and to compile. Only reverse mode is defined.
    """
    return _normalised(x, scale)[0]


def _normalised(x: Array, scale: Array) -> tuple[Array, tuple[Array, ...]]:
    exact = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    centred = exact - exact.mean(-1, keepdims=True)
    r = jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
    n = centred * r
    return (n * scale.reshape((1,) * (x.ndim - 1) + (-1,))).astype(x.dtype), (n, r, scale)


def _gradient_of_norm(kept: tuple[Array, ...], dy: Array) -> tuple[Array, Array]:
    n, r, scale = kept
    dy_exact = dy.astype(n.dtype)
    g = dy_exact * scale.reshape((1,) * (n.ndim - 1) + (-1,))
    dx = r * (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True))
    return dx.astype(dy.dtype), (dy_exact * n).sum(tuple(range(n.ndim - 1))).astype(scale.dtype)


normalise.defvjp(_normalised, _gradient_of_norm)


@jax.custom_vjp
def linear(x: Float[Array, "*tokens a"], w: Float[Array, "a b"]) -> Float[Array, "*tokens b"]:
    """x W for every token, in the precision of x; the gradient of W is in that of W.

        dx = dy Wᵀ,   dW = Σ over tokens of xᵀ dy

    JAX derives the same, but dW in a form that XLA's compiler for processors transposes: a training step of a small
    model takes a quarter longer with it (`benchmarks.programs`). All tokens lie on one axis, so that no product is
    compiled with more. Only reverse mode is defined; for forward mode take `jnp.matmul`.
    """
    return _product(x, w)


def _flat(x: Float[Array, "*tokens a"]) -> Float[Array, "n a"]:
    return x.reshape(-1, x.shape[-1])


def _product(x: Array, w: Array) -> Array:
    y = (_flat(x) @ w.astype(x.dtype)).reshape(*x.shape[:-1], w.shape[1])
    return checkpoint_name(y, WIDENED) if w.shape[1] > w.shape[0] else y


def _forward(x: Array, w: Array) -> tuple[Array, tuple[Array, Array]]:
    return _product(x, w), (x, w)


def _backward(kept: tuple[Array, Array], dy: Array) -> tuple[Array, Array]:
    x, w = kept
    flat = _flat(dy)
    return (flat @ w.astype(dy.dtype).T).reshape(x.shape), _over_tokens(_flat(x), flat).astype(w.dtype)


def _over_tokens(x: Float[Array, "n a"], y: Float[Array, "n b"]) -> Float[Array, "a b"]:
    """xᵀ y. The narrower factor comes first: on a processor, the other order takes half as long again."""
    if x.shape[1] > y.shape[1]:
        return jax.lax.optimization_barrier(_over_tokens(y, x)).T  # without a barrier XLA restores the order
    return jax.lax.dot_general(x, y, (((0,), (0,)), ((), ())))


linear.defvjp(_forward, _backward)
