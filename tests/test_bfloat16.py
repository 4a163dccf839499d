"""Weights and activations in bfloat16: outputs in it; angles, biases and softmax in float32; far positions apart."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.jaxprs import equations
from tests.night import by_day
from tests.test_adapters import KINDS, made

HALF, WIDTH, L = jnp.bfloat16, 32, 24
DIMS = posenc.Dims(width=WIDTH, heads=4, head=8, trained=L, longest=8200, key_heads=2)
X = jax.random.normal(jax.random.key(0), (2, L, WIDTH), HALF)
FAR = jnp.arange(8192 - L, 8192) + 1
"""Positions of which bfloat16, with 8 bits, has two numbers."""
TEXTS = ("rope", "alibi", "t5", "fox", "rope + kerple", "shaw", "transformer_xl", "log_n + rope", "fire")
EVERY = [(kind, text) for kind in KINDS for text in TEXTS]


def cast(tree, kind):
    """All numbers of a tree in a type."""
    return jax.tree.map(lambda a: a.astype(kind), tree)


def layers(text, kind):
    """A layer with all its arrays in bfloat16, and one with the same numbers in float32."""
    if kind == "linen":
        scheme, bound, *_ = made(text, kind, DIMS, x=X)
        module, variables = bound.unbind()
        return [module.bind(cast(cast(variables, HALF), to)) for to in (HALF, jnp.float32)]
    layer = cast(made(text, kind, DIMS)[1], HALF)
    return [layer, cast(layer, jnp.float32)]


def apart(a, b):
    """The size of a difference beside that of what is right."""
    return float(jnp.linalg.norm(a.astype(jnp.float32) - b) / jnp.linalg.norm(b))


@pytest.mark.parametrize(("kind", "text"), by_day(EVERY, [(k, t) for k in KINDS for t in ("rope", "fox")]))
def test_a_layer_in_bfloat16_is_that_of_float32_near_and_far(kind, text):
    half, exact = layers(text, kind)
    for positions in (None, FAR):
        out = half(X, positions=positions)
        assert out.dtype == HALF
        assert apart(out, exact(X.astype(jnp.float32), positions=positions)) < 0.01


@pytest.mark.parametrize("text", ["sinusoidal", "learned"])
def test_the_input_has_as_many_far_positions_as_tokens(text):
    scheme = posenc.bind(posenc.parse(text), DIMS)
    params = cast(posenc.init(scheme, jax.random.key(1), DIMS), HALF)
    out = posenc.embed(scheme, params, jnp.zeros_like(X), positions=FAR)
    exact = posenc.embed(scheme, cast(params, jnp.float32), jnp.zeros(X.shape), positions=FAR)
    assert out.dtype == HALF and apart(out, exact) < 0.004
    assert len(np.unique(np.asarray(out[0], np.float32), axis=0)) == L


MOVES = {"dot_general", "convert_element_type", "reshape", "transpose", "broadcast_in_dim", "squeeze", "slice", "jit"}
"""What may have scores or weights in bfloat16: products of matrices, and steps that compute nothing."""


FUNCTIONS = {"exp", "exp2", "log", "log1p", "cos", "sin", "tanh", "logistic", "pow", "cumsum"}


def coarse(f):
    """The steps of f that compute scores, or a function of any number, in bfloat16."""
    steps = list(equations(jax.make_jaxpr(f)(X).jaxpr))
    assert {step.primitive.name for step in steps} & {"exp", "exp2"}, "there is no softmax in it"
    made = {(s.primitive.name, v.aval.shape) for s in steps for v in s.outvars if v.aval.dtype == HALF}
    return {name for name, shape in made if name in FUNCTIONS or shape[-2:] == (L, L) and name not in MOVES}


@pytest.mark.parametrize("text", by_day(TEXTS, ("rope", "t5", "fox")))
def test_angles_biases_and_softmax_are_float32(text):
    assert not coarse(layers(text, "equinox")[0])
