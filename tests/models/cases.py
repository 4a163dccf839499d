"""Every kind of model, small, for tests that hold for all."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from posenc.core.scheme import Dims
from posenc.lab.models import kinds
from posenc.lab.models.interface import Inputs, Shape, build
from posenc.lab.train.training import pure
from posenc.naming import bind, parse

VOCAB, CLASSES, LENGTH = 9, 5, 7


def settings():
    """Every registered model, each way that it can look."""
    for name in kinds.MODELS.names():
        fields = [f for f in kinds.MODELS.find(name).__dataclass_fields__ if f == "bidirectional"]
        yield from (f"{name}(bidirectional=True)", name) if fields else (name,)


TEXTS = tuple(settings())


def shaped(text, depth=2, source=False, **change):
    model = kinds.parse(text)
    dims = Dims(width=8, heads=2, head=4, trained=8, longest=32, causal=model.causal or source)
    hidden = 12 if "hidden" in model.reads else None
    return Shape(dims, depth, hidden, VOCAB, CLASSES, model=model)._replace(**change)


@functools.cache
def made(text, scheme="nope", seed=0, **change):
    shape = shaped(text, **change)
    bound = bind(parse(scheme), shape.dims)
    return jax.jit(lambda key: build(bound, shape, key))(jax.random.key(seed))


def shaken(model, seed=4):
    """The model with every parameter away from where it starts: no zeros that hide a term."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda a: a * 0.7 + jnp.asarray(rng.normal(0.1, 0.3, a.shape), a.dtype), model)


def needs_source(text):
    return kinds.parse(text).source == "always"


def given(text, rows=2, length=LENGTH, seed=5, source=None):
    """Random tokens, all real, and a source where the model needs one."""
    key, other = jax.random.split(jax.random.key(seed))
    tokens = jax.random.randint(key, (rows, length), 0, VOCAB, jnp.int32)
    if not (needs_source(text) if source is None else source):
        return Inputs(tokens, jnp.ones(tokens.shape, bool))
    read = jax.random.randint(other, (rows, length + 1), 0, VOCAB, jnp.int32)
    return Inputs(tokens, jnp.ones(tokens.shape, bool), {}, read, jnp.ones(read.shape, bool))


@functools.cache
def _called(train):
    return jax.jit(lambda model, inputs, key: model(inputs, key, train=train))


def logits(model, inputs, key=1, train=False):
    return np.asarray(_called(train)(model, inputs, jax.random.key(key)))


def numbers(model):
    """The parameters as nested dicts of NumPy arrays."""
    return jax.tree.map(np.asarray, pure(model))
