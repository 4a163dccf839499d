"""posenc inside two models of importers: the same function as their own attention, and all that a model is put through.

By day under two schemes, with every change mostly under three, at night under all.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import posenc
import posenc.equinox
import posenc.linen
import posenc.nnx
from tests.importers import cases, originals
from tests.importers.cases import KINDS, TEXTS, TOKENS
from tests.importers.nnx_gemma import Gemma
from tests.night import by_day

CASES = [(kind, text) for kind, texts in zip(KINDS, (TEXTS, TEXTS[::-1]), strict=True) for text in texts]
FEW = ("t5", cases.PATTERN, "fox")
every = pytest.mark.parametrize(("kind", "text"), CASES)
most = pytest.mark.parametrize(("kind", "text"), by_day(CASES, [case for case in CASES if case[1] in FEW]))


@functools.cache
def scanned(kind, text):
    """The model with its layers in one compiled loop, and its logits."""
    model = cases.made(kind, text)
    return model, jax.jit(model.apply)(model.params, TOKENS)


def gradient(model):
    value = lambda params: cases.loss(model.apply(params, TOKENS), TOKENS)  # noqa: E731
    return jax.jit(jax.value_and_grad(value))(model.params)


def positional(params):
    """The arrays of the schemes, by their paths."""
    named = {jax.tree_util.keystr(path): a for path, a in jax.tree.leaves_with_path(params)}
    return {path: a for path, a in named.items() if "position" in path or "tied" in path}


@pytest.mark.parametrize(("kind", "text"), [*CASES, ("linen", "learned + [nope]")])
def test_a_model_is_the_same_function_as_with_its_own_attention(kind, text):
    model, logits = scanned(kind, text)
    np.testing.assert_allclose(logits, model.original(model.params, TOKENS), atol=1e-5)


def test_scale_cap_and_windows_of_gemma_2_are_as_in_its_own_attention():
    scheme, weighting = posenc.parse("[rope + window(6), rope]"), {"scale": 12**-0.5, "cap": 0.7}
    sizes = posenc.Dims(width=32, heads=4, head=8, trained=12, key_heads=2)
    model = nnx.jit(lambda: Gemma(scheme, sizes, cases.WORDS, period=2, **weighting, rngs=nnx.Rngs(1)))()
    params = nnx.to_pure_dict(nnx.state(model))
    original = originals.gemma(params, TOKENS, ["rope + window=6", "rope"], 4, 4, 8, **weighting)
    np.testing.assert_allclose(nnx.jit(lambda model: model(TOKENS))(model), original, atol=1e-5)
    assert not np.allclose(original, originals.gemma(params, TOKENS, ["rope", "rope"], 4, 4, 8, **weighting))


@every
def test_three_steps_of_training_lower_the_loss_and_move_every_positional_parameter(kind, text):
    model, _ = scanned(kind, text)
    losses, after = model.train(model.params, TOKENS, 4)
    assert np.isfinite(losses).all() and (np.diff(losses) < 0).all()
    before, after = positional(model.params), positional(after)
    assert before.keys() == after.keys() and len(before) == {"t5": 1, "fox": 2}.get(text, 0)
    assert all((np.asarray(a) != np.asarray(after[path])).any() for path, a in before.items())


@most
def test_a_scan_over_layers_and_remat_change_neither_values_nor_gradients(kind, text):
    value, slopes = gradient(scanned(kind, text)[0])
    for how in ({"scan": False}, {"remat": True}):
        other, others = gradient(cases.made(kind, text, **how))
        np.testing.assert_allclose(value, other, rtol=1e-6)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-6), slopes, others)


def decodes(kind, text, steps, where=lambda start, end: {}):
    model, logits = scanned(kind, text)
    step, caches, parts = jax.jit(model.apply), model.empty(model.params, *TOKENS.shape), []
    for start, end in steps:
        out, caches = step(model.params, TOKENS[:, start:end], caches, **where(start, end))
        parts.append(out)
    np.testing.assert_allclose(jnp.concatenate(parts, 1), logits, atol=1e-5)


@most
def test_decoding_with_caches_is_the_whole_sequence(kind, text):
    decodes(kind, text, ((0, 9), (9, 10), (10, 11), (11, 12)))


def test_a_learned_input_is_decoded_at_the_positions_of_the_new_tokens():
    decodes("linen", "learned + [nope]", ((0, 10), (10, 12)), lambda *ends: {"positions": np.arange(*ends)})


@pytest.mark.parametrize(("kind", "text"), by_day(CASES, [(kind, "fox") for kind in KINDS]))
def test_in_bfloat16_throughout_a_model_trains_decodes_and_is_that_of_float32(kind, text):
    half = lambda tree: jax.tree.map(lambda a: a.astype(jnp.bfloat16), tree)  # noqa: E731
    model = cases.made(kind, text, dtype=jnp.bfloat16)
    model = model._replace(params=half(model.params))
    exact = jax.tree.map(lambda a: a.astype(jnp.float32), model.params)
    expected = jax.jit(cases.made(kind, text).apply)(exact, TOKENS)
    logits, caches = jax.jit(model.apply)(model.params, TOKENS, model.empty(model.params, *TOKENS.shape))
    first, caches = jax.jit(model.apply)(model.params, TOKENS[:, :9], model.empty(model.params, *TOKENS.shape))
    assert {a.dtype for a in (logits, *jax.tree.leaves((caches[0].k, caches[0].v)))} == {jnp.dtype(jnp.bfloat16)}
    far = lambda a, b: float(jnp.linalg.norm(a.astype(jnp.float32) - b) / jnp.linalg.norm(b))  # noqa: E731
    assert far(logits, expected) < 0.02 and far(first, expected[:, :9]) < 0.02
    _, slopes = gradient(model)
    assert {a.dtype for a in jax.tree.leaves(slopes)} == {jnp.dtype(jnp.bfloat16)}
    theirs = gradient(cases.made(kind, text)._replace(params=exact))[1]
    worst = jax.tree.map(far, slopes, theirs)
    assert max(jax.tree.leaves(worst)) < 0.1, worst
    losses, _ = model.train(model.params, TOKENS, 4)
    assert np.isfinite(losses).all() and losses[3] < losses[0]
