"""Scale, cap, sinks, dropout and masks in the modules of the three frameworks, against `posenc.attend`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import posenc
import posenc.equinox
import posenc.linen
import posenc.nnx
from tests.test_adapters import KINDS, B, L, by_hand, dims, made, tokens

ALLOWED = np.tri(L, dtype=bool) & (np.random.default_rng(0).random((B, L, L)) < 0.7) | np.eye(L, dtype=bool)
DROPPED = {"dropout": 0.4, "dropout_key": jax.random.key(5)}
LAYER = {"scale": {"scale": 0.3}, "a cap": {"cap": 0.5}, "sinks": {"sinks": True}}
CALL = {
    "dropout": DROPPED,
    "an array for the mask": {"mask": ALLOWED},
    "a prefix": {"mask": posenc.Prefix(4)},
    "a prefix for each": {"mask": posenc.Prefix(np.array([2, 7]))},
    "a window with first tokens": {"mask": posenc.Window(3, 0, sinks=1)},
}
ALL = {"all": ({"scale": 0.3, "cap": 0.5, "sinks": True}, {"mask": posenc.Window(3, 0, sinks=1)} | DROPPED)}
CASES = ALL | {name: (about, {}) for name, about in LAYER.items()} | {name: ({}, about) for name, about in CALL.items()}


@pytest.mark.ci
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_takes_what_attend_takes(case, kind):
    of_layer, of_call = CASES[case]
    scheme, layer, weights, position = made("alibi", kind, dims(key_heads=2), **of_layer)
    alone = {"sinks": jnp.zeros(4)} if of_layer.get("sinks") else {}
    expected = by_hand(scheme, layer.dims, weights, position, tokens(), **(of_layer | alone | of_call))
    np.testing.assert_allclose(layer(tokens(), **of_call), expected, atol=2e-6)
    assert case == "all" or not np.allclose(expected, by_hand(scheme, layer.dims, weights, position, tokens()))


@pytest.mark.ci
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_multiplies_by_its_weights_as_it_is_told_to(kind):
    scheme, layer, weights, position = made("alibi", kind, dims(), product=lambda x, w: 2 * x @ w)
    doubled = [2 * w for w in weights]
    np.testing.assert_allclose(layer(tokens()), by_hand(scheme, layer.dims, doubled, position, tokens()), atol=2e-5)


@pytest.mark.ci
def test_sinks_learn_in_every_framework():
    scheme = posenc.bind(posenc.parse("rope"), dims())
    module = posenc.linen.Attention(scheme, dims(), sinks=True)
    variables = module.init(jax.random.key(0), tokens())
    slope = jax.grad(lambda v: (module.apply(v, tokens()) ** 2).sum())(variables)["params"]["sinks"]
    assert slope.shape == (4,) and (slope != 0).all()
    squared = lambda layer: (layer(tokens()) ** 2).sum()  # noqa: E731
    of_nnx, of_equinox = (jax.grad(squared)(made("rope", kind, dims(), sinks=True)[1]) for kind in ("nnx", "equinox"))
    assert (of_nnx.sinks.get_value() != 0).all() and (of_equinox.sinks != 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"scale": 0}, "scale.* 0"),
        ({"scale": float("nan")}, "scale.* nan"),
        ({"cap": -1.0}, "cap.* -1.0"),
        ({"sinks": np.zeros(4)}, "sinks.*ndarray"),
    ],
)
def test_a_layer_that_makes_no_sense_is_refused_when_it_is_made(about, why, kind):
    with pytest.raises((ValueError, TypeError), match=why):
        made("nope", kind, dims(), **about)


def test_sinks_need_a_softmax():
    with pytest.raises(ValueError, match="'stick_breaking' has no softmax for sinks to stand in; leave them out."):
        made("stick_breaking", "nnx", dims(), sinks=True)


@pytest.mark.ci
@pytest.mark.parametrize("explicit", [True, False])
def test_weights_cut_along_heads_are_those_of_one_device(explicit):
    """Under axes of either type; what two devices hold of keys and values are not whole heads of each."""
    _, layer, *_ = made("rope + alibi", "equinox", dims())
    mesh = jax.make_mesh((2,), ("heads",), axis_types=((AxisType.Auto, AxisType.Explicit)[explicit],))
    put = lambda a, *spec: jax.device_put(a, NamedSharding(mesh, P(*spec)))  # noqa: E731
    expected, (query, key_value, out) = layer(tokens()), layer.weights
    cut = type(layer.weights)(put(query, None, "heads"), put(key_value, None, "heads"), put(out, "heads"))
    spread = jax.tree.unflatten(jax.tree.structure(layer), [*cut, *map(put, jax.tree.leaves(layer.position))])
    with jax.set_mesh(mesh):
        for run in (lambda layer, x: layer(x), jax.jit(lambda layer, x: layer(x))):
            y = run(spread, put(tokens()))
            assert len(y.sharding.device_set) == 2
            np.testing.assert_allclose(y, expected, atol=2e-6)
