"""Stems mix neighbours before the first layer: each is its equation, sees no other document and, in a decoder, no
future; runs without one are what they were."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.core.scheme import Dims
from posenc.lab.models import stems
from posenc.lab.run import plan
from posenc.lab.spec.run import Knobs, Run
from posenc.lab.train.training import resolve
from tests.lab import made
from tests.oracles import stems as oracle

TEXTS = ("conv(k=4)", "conv(k=3)", "conv(k=1)", "shift", "gru")
SEGMENT = np.array([0, 1, 1, 0, 1, 2, 2, 2, 3, 0], np.int32)
"""Padding before, within and after; a document of one token."""


def build(text, causal):
    dims = Dims(width=6, heads=2, head=3, trained=8, causal=causal)
    rng = np.random.default_rng(1)
    stem = stems.parse(text)
    params = stem.init(lambda shape: jnp.asarray(rng.standard_normal(shape)), dims)
    params = jax.tree.map(lambda a: a + jnp.asarray(0.3 * rng.standard_normal(a.shape)), params)
    return jax.jit(lambda x, segment=SEGMENT: stem(params, x, jnp.asarray(segment), causal)), params


@pytest.fixture
def x():
    return np.random.default_rng(2).standard_normal((10, 6))


@pytest.mark.guard
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("text", TEXTS)
def test_a_stem_equals_its_equation(text, causal, x, x64):
    mix, params = build(text, causal)
    theirs = getattr(oracle, stems.parse(text).name)(jax.tree.map(np.asarray, params), x, SEGMENT.tolist(), causal)
    real = SEGMENT > 0
    np.testing.assert_allclose(np.asarray(mix(x))[real], theirs[real], atol=1e-12)


@pytest.mark.parametrize("text", TEXTS)
def test_gradients_are_finite_in_both_types(text, x):
    for dtype in (jnp.float32, jnp.bfloat16):
        mix, _ = build(text, True)
        out, back = jax.vjp(mix, jnp.asarray(x, dtype))
        assert out.dtype == dtype and np.isfinite(np.asarray(back(out)[0], np.float32)).all()


def test_a_stem_is_part_of_the_identity_only_where_there_is_one():
    plain, same, more = (resolve(Run(**how)) for how in ({}, {"stem": "none"}, {"stem": "conv"}))
    assert "stem" not in plan.written(plain) and "then" not in plan.written(plain)
    assert plan.identity(plain, Knobs(), 5) == plan.identity(same, Knobs(), 5) != plan.identity(more, Knobs(), 5)
    assert plan.written(more)["stem"] == "conv(k=4)" and plan.written(more)["revisions"]["Conv"] == 1
    assert plan.planned_run(plan.written(more)).shape == more.shape


def test_two_models_that_differ_in_the_stem_are_never_averaged_as_one():
    curve = {8: 0.9, 16: 0.8}
    one, other = (
        made.record("nope", "none", "copy", [made.trial("nope", "copy", seed, curve)], **how)
        for seed, how in enumerate(({}, {"stem": "conv(k=4)"}))
    )
    labels = {row.scheme for row in made.results("two", (one, other)).rows()}
    assert labels == {"nope (stem=none)", "nope (stem=conv(k=4))"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("conv(k=0)", "'k'.*'conv'.*0"),
        ("cnv", "'cnv'"),
        ("conv + gru", "one stem"),
        ("none(k=3)", "'none'"),
        ("conv(size=3)", "'conv'.*'size'"),
    ],
)
def test_what_is_no_stem_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        resolve(Run(stem=text))
    with pytest.raises(ValueError, match="conv"):
        Run(stem="conv(")


def test_a_stem_is_final():
    with pytest.raises(TypeError, match="Wider.*Conv"):
        type("Wider", (stems.Conv,), {}, name="wider")
    assert "wider" not in stems.STEMS.names()
