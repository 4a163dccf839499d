"""The Transformer: a scan over periods is the loop over layers, and shared parameters are one copy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.attention.attend import embed
from posenc.contract.case import LITTLE
from posenc.core.scheme import Dims
from posenc.lab.models import stack
from posenc.lab.models.draws import Cut, WeightDraw, cut
from posenc.lab.models.ends import tied_name
from posenc.lab.models.interface import Inputs, Shape
from posenc.lab.models.parts import normalise
from posenc.lab.models.transformer import Transformer
from posenc.lab.train.training import pure
from posenc.naming import bind, parse
from tests.jaxprs import equations

DIMS = Dims(width=16, heads=2, head=8, trained=8, longest=32, causal=False)


def build(scheme, depth=4, key=0, **change):
    shape = Shape(DIMS, depth, 12, 9, 5)._replace(**change)
    bound = bind(parse(scheme), shape.dims)
    return jax.jit(lambda key: Transformer(bound, shape, key=key))(jax.random.key(key))


def tokens(rows=2, length=8, key=5):
    return jax.random.randint(jax.random.key(key), (rows, length), 0, 9)


def whole(model, t, **more):
    return jax.jit(lambda m, t: m(Inputs(t, jnp.ones(t.shape, bool)), jax.random.key(1), **more))(model, t)


def by_hand(model, t):
    """Layer after layer, each cut out of its stack."""
    tied, segments = model.tied.get_value(), jnp.ones(t.shape, jnp.int32)
    x = model.embedding.get_value()[t]
    if model.input is not None:
        x = embed(model.input, tied[tied_name(model.input)], x, segments=segments)
    for period in range(model.periods):
        for scheme, blocks in zip(model.layers, model.blocks, strict=True):
            block = jax.tree.map(lambda a, n=period: a[n], blocks)
            x = block(x, segments=segments, tied=tied[tied_name(scheme)])
    if model.shape.norm == "pre":
        x = normalise(x, model.scale.get_value())
    return x @ model.readout.get_value()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("scheme", ["t5", "sinusoidal + [alibi, rope + window(3)]", "learned + t5"])
def test_the_scan_over_periods_is_the_loop_over_layers(scheme, norm):
    model = build(scheme, norm=norm)
    np.testing.assert_allclose(whole(model, tokens()), by_hand(model, tokens()), atol=2e-5)


def test_the_gradient_of_many_tokens_makes_layers_anew_in_less_memory(monkeypatch):
    model, t = build("[rope, alibi]", dropout=0.1), tokens(rows=16, length=256)

    def program():
        loss = lambda m: (m(Inputs(t, jnp.ones(t.shape, bool)), jax.random.key(1), train=True) ** 2).mean()  # noqa: E731
        traced = jax.jit(jax.value_and_grad(loss), compiler_options=LITTLE).trace(model)
        products = [e for e in equations(traced.jaxpr.jaxpr) if e.primitive.name == "dot_general"]
        return len(products), traced.lower().compile()

    monkeypatch.setattr("posenc.attention.kernels.blocks.SCORES", 2 * 256**2)  # a sequence on each device
    products, anew = program()
    monkeypatch.setattr(stack, "pay", lambda *_: False)
    before, kept = program()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), anew(model), kept(model))
    assert anew.memory_analysis().temp_size_in_bytes < 0.8 * kept.memory_analysis().temp_size_in_bytes
    assert products == before + 6  # queries, outputs and a narrow feed-forward of two layers, and none that widens


def test_layers_share_what_is_tied_and_own_the_rest():
    found = pure(build("t5 + kerple"))
    (tied,) = found["tied"].values()
    assert tied[0]["heads"]["table"].shape == (2, 32), "one table, whatever the depth"
    own = found["blocks"][0]["attention"]["position"]
    assert own[0]["heads"] == {} and all(a.shape == (4, 2) for a in own[1]["heads"].values())


def test_the_cut_of_the_normal_draw_is_frozen():
    model = pure(build("nope", depth=2))
    flat = np.asarray(jax.random.normal(jax.random.key(0), (2 * (16 * 16 * 4 + 2 * 16 * 12) + 16 * 5 + 9 * 16,)))
    first = model["blocks"][0]["attention"]["query"][0]
    np.testing.assert_allclose(first, flat[:256].reshape(16, 16) / 4, rtol=1e-6)
    np.testing.assert_allclose(model["embedding"], flat[-144:].reshape(9, 16) / 4, rtol=1e-6)


def test_every_number_of_the_draw_is_used_once():
    builds = [
        (lambda r: r.params.normal((2, 3)), 4),
        (lambda r: (r.params.normal((5,)), r.params.normal((1, 2))), None),
    ]
    stacked, (a, b) = cut(builds, jax.random.key(7))
    flat = jax.random.normal(jax.random.key(7), (4 * 6 + 7,))
    np.testing.assert_array_equal(jnp.concatenate([stacked.ravel(), a, b.ravel()]), flat)


def test_keys_of_a_cut_differ_by_their_place():
    rngs = Cut(jnp.zeros(0), WeightDraw(jax.random.key(0)))
    assert (jax.random.key_data(rngs.params()) != jax.random.key_data(rngs.params())).any()
