"""Groups of parameters that hold nothing may be missing, as files of named arrays leave them out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import posenc
import posenc.equinox
import posenc.linen
import posenc.nnx

DIMS = posenc.Dims(width=16, heads=4, head=4, trained=16)
L = 6
Q, K, V = jax.random.normal(jax.random.key(0), (3, 2, L, DIMS.heads, DIMS.head))
X = jax.random.normal(jax.random.key(1), (2, L, DIMS.width))


def made(text):
    scheme = posenc.bind(posenc.parse(text), DIMS)
    return scheme, posenc.init(scheme, jax.random.key(2), DIMS)


def dropped(params):
    """What comes back from a file of named arrays: dicts without entries are gone."""
    if isinstance(params, tuple):
        return tuple(map(dropped, params))
    return {name: kept for name, kept in params.items() if not isinstance(kept, dict) or kept}


@pytest.mark.ci
@pytest.mark.parametrize("params", [None, {}, {"layer": {}}, {"heads": {}}, {"layer": None, "heads": {}}])
@pytest.mark.parametrize("text", ["rope", "rope + window(3)", "rope + alibi"])
def test_a_scheme_that_learns_nothing_needs_no_parameters(text, params):
    scheme, whole = made(text)
    params = (params, None) if "alibi" in text and params else params
    np.testing.assert_array_equal(posenc.attend(scheme, params, Q, K, V), posenc.attend(scheme, whole, Q, K, V))
    about = {"batch": 2, "capacity": L, "dtype": jnp.float32}
    out, _ = posenc.attend(scheme, params, Q, K, V, cache=posenc.Cache.empty(scheme, params, DIMS, **about))
    np.testing.assert_allclose(out, posenc.attend(scheme, whole, Q, K, V), atol=2e-6)
    fn = posenc.nnx.attention_fn(posenc.parse("rope"), params if isinstance(params, dict) else None)
    assert fn(Q, K, V).shape == Q.shape


@pytest.mark.ci
@pytest.mark.parametrize("text", ["t5", "kerple", "rope + kerple", "shaw + alibi + t5", "fox"])
def test_what_a_file_drops_of_a_scheme_that_learns_is_not_missed(text):
    scheme, whole = made(text)
    assert dropped(whole) != whole
    ours, theirs = (posenc.attend(scheme, p, Q, K, V, x=X) for p in (dropped(whole), whole))
    np.testing.assert_array_equal(ours, theirs)
    parted = (jax.tree.leaves(posenc.split(scheme, p)) for p in (dropped(whole), whole))
    assert all((a == b).all() for a, b in zip(*parted, strict=True))


def test_the_input_takes_them_too():
    scheme, whole = made("sinusoidal")
    for params in (None, {}, {"layer": {}}):
        np.testing.assert_array_equal(posenc.embed(scheme, params, X), posenc.embed(scheme, whole, X))
    scheme, whole = made("learned")
    np.testing.assert_array_equal(posenc.embed(scheme, dropped(whole), X), posenc.embed(scheme, whole, X))


@pytest.mark.parametrize("params", [None, {}, {"layer": {}}])
def test_a_scheme_that_learns_is_not_taken_without(params):
    t5, learned = made("t5")[0], made("learned")[0]
    about = {"batch": 2, "capacity": L, "dtype": jnp.float32}
    for act in (
        lambda: posenc.attend(t5, params, Q, K, V),
        lambda: posenc.attend(t5 + posenc.parse("rope"), (params, None), Q, K, V),
        lambda: posenc.attend(t5 + posenc.parse("rope"), params and (params, {}), Q, K, V),
        lambda: posenc.Cache.empty(t5, params, DIMS, **about),
    ):
        with pytest.raises(ValueError, match="'table'.*'t5'.*posenc.init"):
            act()
    with pytest.raises(ValueError, match="'table'.*'learned'"):
        posenc.embed(learned, params, X)


@pytest.mark.parametrize("params", [(), ({},), ({}, {}, {}), {"layers": {}}, [], 3, {"layer": 1, "heads": {}}])
def test_what_is_of_another_form_is_refused_still(params):
    for text in ("rope", "rope + alibi"):
        with pytest.raises(TypeError, match="posenc.init"):
            posenc.attend(made(text)[0], params, Q, K, V)


def test_modules_whose_empty_positions_were_dropped_run_and_decode():
    for text in ("rope", "kerple"):
        scheme = made(text)[0]
        layer = posenc.linen.Attention(scheme, DIMS)
        variables = layer.init(jax.random.key(3), X)
        kept = {"params": dropped({n: dropped(group) for n, group in variables["params"].items()})}
        assert ("position" in kept["params"]) == (text == "kerple")
        np.testing.assert_array_equal(layer.apply(kept, X), layer.apply(variables, X))
        out, _ = layer.apply(kept, X, cache=layer.empty(kept, batch=2, capacity=L))
        np.testing.assert_allclose(out, layer.apply(variables, X), atol=2e-6)
        ours = posenc.nnx.Attention(scheme, DIMS, rngs=nnx.Rngs(0))
        before = ours(X)
        ours.position = nnx.data(dropped(ours.position))
        np.testing.assert_array_equal(ours(X), before)
        assert ours.empty(batch=2, capacity=L).k.shape[0] == 2
    layer = posenc.linen.Attention(made("t5")[0], DIMS)
    weights = layer.init(jax.random.key(3), X)["params"]["weights"]
    with pytest.raises(ValueError, match="'table'.*'t5'"):
        layer.apply({"params": {"weights": weights}}, X)
