"""Every adapter is the same attention: the module of each framework against `posenc.attend` on the same weights."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import posenc
import posenc.equinox
import posenc.linen
import posenc.nnx

B, L, WIDTH = 2, 12, 16
KINDS = ("nnx", "linen", "equinox")
SCHEMES = ("t5", "shaw + alibi", "transformer_xl", "fox")


def dims(**changed):
    return posenc.Dims(**dict(width=WIDTH, heads=4, head=4, trained=L) | changed)


def tokens(seed=0):
    return jax.random.normal(jax.random.key(seed), (B, L, WIDTH))


def made(text, kind, d, x=None, **about):
    """A layer as a function of its input, its three projections, and its scheme's parameters."""
    scheme = posenc.bind(posenc.parse(text), d)
    if kind == "nnx":
        layer = posenc.nnx.Attention(scheme, d, rngs=nnx.Rngs(0), **about)
        weights = [w.get_value() for w in (layer.query, layer.key_value, layer.out)]
        return scheme, layer, weights, nnx.as_pure(layer.position)
    if kind == "equinox":
        layer = posenc.equinox.Attention(scheme, d, key=jax.random.key(0), **about)
        return scheme, layer, list(layer.weights), layer.position
    layer = posenc.linen.Attention(scheme, d, **about)
    variables = layer.init(jax.random.key(0), tokens() if x is None else x)
    weights = [variables["params"]["weights"][n] for n in ("query", "key_value", "out")]
    return scheme, layer.bind(variables), weights, variables["params"]["position"]


def by_hand(scheme, d, weights, position, x, **about):
    """The projections written out, head by head."""
    query, key_value, out = (np.asarray(w, np.float64) for w in weights)
    groups, wide = d.key_heads or d.heads, np.asarray(x, np.float64)
    q = (wide @ query).reshape(B, L, d.heads, d.head)
    k = (wide @ key_value[:, : groups * d.head]).reshape(B, L, groups, d.head)
    v = (wide @ key_value[:, groups * d.head :]).reshape(B, L, groups, d.head)
    o = posenc.attend(scheme, position, *(a.astype(np.float32) for a in (q, k, v)), x=x, **about)
    return np.asarray(o, np.float64).reshape(B, L, d.heads * d.head) @ out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", SCHEMES)
def test_an_adapter_is_attend_between_projections(text, kind):
    segments = (jnp.arange(L) >= 5) + 1
    for d, about in (
        (dims(), {"mask": "causal"}),
        (dims(key_heads=2), {"mask": posenc.Window(3, 0), "segments": segments}),
    ):
        scheme, layer, weights, position = made(text, kind, d)
        expected = by_hand(scheme, d, weights, position, tokens(), **about)
        np.testing.assert_allclose(layer(tokens(), **about), expected, atol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("causal", [True, False])
def test_the_mask_is_the_one_that_the_sizes_say(kind, causal):
    scheme, layer, weights, position = made("rope", kind, dims(causal=causal))
    expected = by_hand(scheme, layer.dims, weights, position, tokens(), mask="causal" if causal else "full")
    np.testing.assert_allclose(layer(tokens()), expected, atol=2e-6)


@pytest.mark.parametrize("kind", ["nnx", "equinox"])
@pytest.mark.parametrize("text", SCHEMES)
def test_decoding_through_a_module_is_the_full_forward(text, kind):
    _, layer, *_ = made(text, kind, dims())
    cache, out = layer.empty(batch=B, capacity=L), []
    for chunk in (slice(0, 5), slice(5, 6), slice(6, L)):
        o, cache = layer(tokens()[:, chunk], cache=cache)
        out.append(o)
    np.testing.assert_allclose(jnp.concatenate(out, 1), layer(tokens()), atol=2e-6)


def test_what_layers_share_comes_with_each_call_or_is_refused():
    """Of a layer made without them: the same as the whole one, for both frameworks, and in decoding."""
    scheme, whole, weights, position = made("t5", "nnx", dims())
    tied, own = posenc.split(scheme, position)
    alone = posenc.nnx.Attention(scheme, dims(), rngs=nnx.Rngs(0), tied=False)
    np.testing.assert_array_equal(alone(tokens(), tied=tied), whole(tokens()))
    out, _ = alone(tokens(), tied=tied, cache=alone.empty(batch=B, capacity=L, tied=tied))
    np.testing.assert_allclose(out, whole(tokens()), atol=2e-6)
    layer = posenc.linen.Attention(scheme, dims(), tied=False)
    variables = layer.init(jax.random.key(0), tokens(), tied=tied)
    assert variables["params"]["position"] == own
    third = posenc.equinox.Attention(scheme, dims(), key=jax.random.key(0), tied=False)
    with_all = posenc.equinox.Attention(scheme, dims(), key=jax.random.key(0))
    tied_too, _ = posenc.split(scheme, with_all.position)
    np.testing.assert_array_equal(third(tokens(), tied=tied_too), with_all(tokens()))
    assert third.empty(batch=B, capacity=L, tied=tied_too).k.shape[0] == B
    names = ("query", "key_value", "out")
    variables = {"params": {"weights": dict(zip(names, weights, strict=True)), "position": own}}
    np.testing.assert_array_equal(layer.apply(variables, tokens(), tied=tied), whole(tokens()))
    assert layer.empty(variables, batch=B, capacity=L, tied=tied).k.shape[0] == B
    for act in (
        lambda: alone(tokens()),
        lambda: layer.apply(variables, tokens()),
        lambda: alone.empty(batch=1, capacity=2),
    ):
        with pytest.raises(ValueError, match="lack 'table' of 't5'.*pass what layers share as tied"):
            act()
    with pytest.raises(ValueError, match="'table' is among the layer's own parameters and the shared ones"):
        whole(tokens(), tied=tied)
    with pytest.raises(TypeError, match="posenc.split"):
        alone(tokens(), tied=5)


def test_what_was_passed_is_checked_before_it_is_traced():
    _, layer, *_ = made("rope", "nnx", dims())
    _, cache = layer(tokens()[:, :7], cache=layer.empty(batch=B, capacity=L))
    with pytest.raises(ValueError, match="7 .*12 .*12"):
        layer(tokens(), cache=cache)
    with pytest.raises(ValueError, match="document"):
        layer(tokens(), segments=jnp.array([1, 2, 1] * 4))
    with pytest.raises(TypeError, match="float64"):
        layer(np.zeros((B, L, WIDTH)))
    for kind in ("nnx", "linen"):
        _, far, *_ = made("xpos", kind, dims())
        with pytest.raises(ValueError, match="'xpos'"):
            far(tokens(), positions=jnp.arange(L) * 10**6)


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_of_a_wrong_shape_or_type_are_refused(kind):
    _, layer, *_ = made("rope", kind, dims())
    x = tokens()
    for wrong in (x[..., :8], x[0, 0], x.astype(jnp.int32)):
        with pytest.raises(ValueError, match=r"\[..., length, 16\]"):
            layer(wrong)
    with pytest.raises(TypeError, match="x is"):
        layer(None)


def test_layers_of_what_is_no_source_of_numbers_and_no_sizes_are_refused():
    rope = posenc.parse("rope")
    with pytest.raises(TypeError, match="rngs.*nnx.Rngs"):
        posenc.nnx.Attention(rope, dims(), rngs=jax.random.key(0))
    with pytest.raises(TypeError, match="dims"):
        posenc.nnx.Attention(rope, {}, rngs=nnx.Rngs(0))
    with pytest.raises(TypeError, match="dims"):
        posenc.linen.Attention(rope, {})
    for variables in ({}, {"params": {}}, None):
        with pytest.raises(ValueError, match="params/position"):
            posenc.linen.Attention(rope, dims()).empty(variables, batch=1, capacity=2)


def test_queries_of_a_scheme_that_does_not_divide_start_smaller():
    d = dims(heads=1, head=WIDTH)
    plain, t5 = (posenc.nnx.Attention(posenc.bind(posenc.parse(s), d), d, rngs=nnx.Rngs(0)) for s in ("nope", "t5"))
    np.testing.assert_allclose(t5.query.get_value() * WIDTH**0.5, plain.query.get_value(), rtol=1e-6)
    np.testing.assert_array_equal(t5.key_value.get_value(), plain.key_value.get_value())


@pytest.mark.guard
@pytest.mark.parametrize("text", ["sinusoidal", "learned", "rope + sinusoidal"])
def test_nobody_gets_nope_in_silence(text):
    for kind in KINDS:
        with pytest.raises(ValueError, match="posenc.embed"):
            made(text, kind, dims())
        made(text, kind, dims(), embedded=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_read_and_bound_where_a_scheme_is_taken(kind):
    """To the sizes of that layer: t5 looks both ways in one that is not causal."""

    def layer(scheme):
        if kind == "nnx":
            return posenc.nnx.Attention(scheme, both, rngs=nnx.Rngs(0))
        if kind == "equinox":
            return posenc.equinox.Attention(scheme, both, key=jax.random.key(0))
        return posenc.linen.Attention(scheme, both)

    def mixed(layer):
        return layer.init_with_output(jax.random.key(0), tokens())[0] if kind == "linen" else layer(tokens())

    both = dims(causal=False)
    by_text, by_scheme = layer("t5 + alibi"), layer(posenc.bind(posenc.parse("t5 + alibi"), both))
    assert by_text.scheme == by_scheme.scheme == posenc.bind("t5 + alibi", both)
    assert by_text.scheme.parts[0].bidirectional
    np.testing.assert_array_equal(mixed(by_text), mixed(by_scheme))
    assert layer(posenc.parse("t5")).scheme == layer("t5").scheme
    with pytest.raises(ValueError, match="'roep'.*'rope'"):
        layer("roep")
    with pytest.raises(TypeError, match="pattern"):
        mixed(layer("[rope, nope]"))


@pytest.mark.parametrize("name", ["__call__", "empty"])
def test_the_three_modules_are_called_alike(name):
    """The same arguments in the same order, with the same defaults; Linen's `empty` takes its variables first."""

    def arguments(cls):
        signature = inspect.signature(getattr(cls, name))
        return [p for p in signature.parameters.values() if p.name != "variables"], signature.return_annotation

    classes = posenc.nnx.Attention, posenc.linen.Attention, posenc.equinox.Attention
    first, *others = map(arguments, classes)
    assert len(first[0]) >= 7 and all(other == first for other in others)
    assert name == "empty" or len({inspect.getdoc(cls.__call__) for cls in classes}) == 1


@pytest.mark.parametrize("sinks", [False, True])
def test_linen_s_param_may_ask_for_a_shape_and_name_a_type(sinks, monkeypatch):
    """As gemma makes it do for all of Linen, once it is imported."""
    dims = posenc.Dims(width=16, heads=2, head=8, trained=16)
    layer, x = posenc.linen.Attention("t5", dims, sinks=sinks), jnp.ones((1, 4, 16))
    expected = layer.init(jax.random.key(0), x)
    plain = linen.Module.param

    def asking(self, name, init_fn, shape, dtype=None, **kwargs):
        return plain(self, name, init_fn, shape, dtype, **kwargs)

    monkeypatch.setattr(linen.Module, "param", asking)
    jax.tree.map(np.testing.assert_array_equal, layer.init(jax.random.key(0), x), expected)
    jax.tree.map(np.testing.assert_array_equal, layer.apply(expected, x), layer.apply(expected, x))
    narrow = lambda self, name, init_fn, shape: plain(self, name, init_fn, shape, dtype=jnp.bfloat16)  # noqa: E731
    monkeypatch.setattr(linen.Module, "param", narrow)
    assert {a.dtype for a in jax.tree.leaves(layer.init(jax.random.key(0), x))} == {jnp.dtype(jnp.bfloat16)}
