"""Scale, cap, sinks, dropout and masks in the modules of the three frameworks, against `posenc.attend`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
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
@pytest.mark.parametrize("kind", ["nnx", "equinox"])
def test_decoding_with_scale_cap_and_sinks_is_the_full_forward(kind):
    _, layer, *_ = made("t5", kind, dims(), scale=0.3, cap=0.5, sinks=True)
    cache, out = layer.empty(batch=B, capacity=L), []
    for start, end in ((0, 7), (7, 8), (8, L)):
        o, cache = layer(tokens()[:, start:end], cache=cache)
        out.append(o)
    np.testing.assert_allclose(jnp.concatenate(out, 1), layer(tokens()), atol=2e-6)


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
@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_makes_no_sense_is_refused(kind):
    _, layer, *_ = made("nope", kind, dims())
    for about, why in (
        ({"dropout": 0.5}, "dropout is 0.5, so it needs dropout_key"),
        ({"dropout": 1.0, "dropout_key": jax.random.key(0)}, "dropout is 1.0; it is a share of the weights"),
        ({"mask": ALLOWED[0, :3]}, r"mask has the shape \(3, 12\); it is \(12, 12\) or \(2, 12, 12\)"),
        ({"mask": ALLOWED, "kernel": "tiled"}, "pass segments, which cover packing in all kernels"),
        ({"mask": None}, "mask is None, .* write mask='full' for that, or mask='causal' to hide"),
    ):
        with pytest.raises(ValueError, match=why):
            layer(tokens(), **about)


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


class Dropping(linen.Module):
    """A Linen model that drops weights in training: Linen gives the key."""

    @linen.compact
    def __call__(self, x, train):
        about = {"dropout": 0.5, "dropout_key": self.make_rng("dropout")} if train else {}
        return posenc.linen.Attention(posenc.parse("rope"), dims())(x, **about)


@pytest.mark.ci
def test_each_framework_s_keys_drop_weights():
    model, rngs = Dropping(), {"dropout": jax.random.key(1)}
    variables = model.init(jax.random.key(0), tokens(), False)
    once, again = (model.apply(variables, tokens(), True, rngs=rngs) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert not np.allclose(once, model.apply(variables, tokens(), False))
    layer, keys = made("rope", "nnx", dims())[1], nnx.Rngs(0, dropout=1)
    one, other = (layer(tokens(), dropout=0.5, dropout_key=keys.dropout()) for _ in range(2))
    assert not np.allclose(one, other)
