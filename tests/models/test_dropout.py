"""Dropout: in training alone, a mask for each place and step, the same however far a batch is padded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.models.parts import Dropout, dropout
from posenc.lab.spec.run import Knobs, Run
from posenc.lab.train import training as train
from posenc.lab.train.batches import Examples
from tests.models.cases import TEXTS, given, logits, made, needs_source
from tests.night import by_day

KNOBS = Knobs(jnp.uint32(0), *map(jnp.float32, Knobs()[1:]))


def test_a_share_of_features_is_zero_and_the_rest_is_scaled_to_keep_the_mean():
    x = jnp.ones((40, 50, 60))
    y = np.asarray(Dropout(0.25, jax.random.key(0))(x))
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    sigma = (0.25 * 0.75 / y.size) ** 0.5
    assert abs((y == 0).mean() - 0.25) < 4 * sigma and abs((y == 0).mean() - 0.26) > 4 * sigma


def test_every_place_and_key_leaves_out_others():
    x = jnp.ones((4, 8, 16))
    start = Dropout(0.5, jax.random.key(0))
    drops = [start, start.at("feed"), start.at("layer", 0), start.at("layer", 1), start.at("layer", 1).at("feed")]
    masks = [np.asarray(d(x)) for d in (*drops, Dropout(0.5, jax.random.key(1)))]
    for n, a in enumerate(masks):
        for b in masks[:n]:
            assert 0.3 < (a == b).mean() < 0.7
    np.testing.assert_array_equal(start.at("layer", jnp.int32(1))(x), start.at("layer", 1)(x))


def test_without_training_or_a_rate_nothing_is_left_out_or_drawn():
    x = jnp.ones((2, 3, 4))
    for rate, training in ((0.5, False), (0.0, True)):
        program = jax.make_jaxpr(lambda x, key, r=rate, t=training: dropout(r, key, t).at("a", 1)(x))(
            x, jax.random.key(0)
        )
        assert not program.eqns


@pytest.mark.ci
@pytest.mark.parametrize("text", by_day(TEXTS, ("encoder", "encoder_decoder", "gru", "rnnsearch", "convolution")))
def test_every_model_drops_in_training_alone_and_by_its_key(text):
    plain, model, inputs = made(text), made(text, dropout=0.5), given(text)
    np.testing.assert_array_equal(logits(plain, inputs), logits(model, inputs))
    np.testing.assert_array_equal(logits(plain, inputs), logits(plain, inputs, train=True))
    one, same, other = (logits(model, inputs, key, train=True) for key in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3 and np.abs(one - logits(model, inputs)).max() > 1e-3


@pytest.mark.ci
def test_each_place_of_a_transformer_drops(monkeypatch):
    """Embeddings once, attention and feed-forward in each layer; each with a key of its own."""
    seen, real = [], Dropout.__call__

    def listen(drop, x):
        jax.debug.callback(lambda k: seen.append(tuple(np.asarray(k).tolist())), jax.random.key_data(drop.key))
        return real(drop, x)

    monkeypatch.setattr(Dropout, "__call__", lambda drop, x: real(drop, x) if drop.key is None else listen(drop, x))
    model, inputs = made("decoder", depth=3, dropout=0.1), given("decoder")
    jax.block_until_ready(model(inputs, jax.random.key(0), train=True))
    jax.effects_barrier()
    assert len(seen) == len(set(seen)) == 1 + 2 * 3


@pytest.mark.ci
@pytest.mark.parametrize("text", by_day([t for t in TEXTS if not needs_source(t)], ("decoder", "lstm", "averaging")))
def test_a_wider_bucket_changes_neither_loss_nor_gradient(text):
    causal = made(text).shape.dims.causal
    task = "flip_flop" if causal else "even_pairs"
    run = Run(task=task, scheme="nope", model=text, width=8, depth=1, batch=4, length=8, dropout=0.3)
    cell = train.resolve(run)
    model = jax.jit(train.init, static_argnums=0)(cell, KNOBS).model
    given = Examples.of(cell.task.sample(jax.random.key(0), jnp.int32(6), batch=4, n_max=12))
    step = jax.jit(train.loss_and_gradient, static_argnums=0)
    short, long = (tuple((4, cell.task.tokens(n)) for _ in jax.tree.leaves(given)) for n in (8, 12))
    classes = cell.task.classes
    (loss, one), (same, other) = (step(shape, model, KNOBS, jnp.int32(3), given, classes) for shape in (short, long))
    np.testing.assert_allclose(loss, same, rtol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=5e-6), one, other)
    assert abs(loss - step(short, model, KNOBS, jnp.int32(4), given, classes)[0]) > 1e-5
