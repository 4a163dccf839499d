"""What a model reads of a scheme to build its layers, and a scheme under a window answers as without one."""

import copy
import pickle

import jax
import numpy as np
import pytest

import posenc
from posenc.core.compose import DECLARED
from posenc.core.scheme import SCHEMES

DIMS = posenc.Dims(width=16, heads=4, head=4, trained=16)
EVERY = [pytest.param(SCHEMES.find(name)(), id=name) for name in posenc.names()]


def layers(text, depth):
    scheme = posenc.parse(text)
    return [posenc.spec(posenc.layer(scheme, n)) for n in range(depth)]


def test_the_layers_of_a_pattern_come_again_and_what_stands_before_is_none_of_them():
    assert layers("[rope, alibi, nope]", 7) == ["rope", "alibi", "nope"] * 2 + ["rope"]
    assert layers("learned + [rope + window(4), nope]", 3) == ["rope + window(4)", "nope", "rope + window(4)"]
    assert layers("learned + rope @ offset(3)", 2) == [posenc.spec(posenc.parse("learned + rope @ offset(3)"))] * 2
    pattern = posenc.parse("[rope, nope]")
    assert posenc.layer(pattern, np.int64(3)) is pattern.layers[1]


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("learned + [rope, nope]", "learned"),
        ("learned @ offset(3) + [rope]", "learned @ offset(limit=3)"),
        ("nope + [rope]", None),
        ("[rope, nope]", None),
        ("rope + sinusoidal", "rope + sinusoidal"),
        ("learned + rope + window(5)", "learned + rope + window(5)"),
        ("rope + alibi", None),
        ("nope", None),
    ],
)
def test_what_acts_on_the_input_is_found(text, before):
    scheme = posenc.parse(text)
    found = posenc.input_scheme(scheme)
    assert (None if found is None else posenc.spec(found)) == before
    assert posenc.acts_on_input(scheme) == (before is not None)


@pytest.mark.ci
def test_a_model_built_from_a_pattern_embeds_once_and_binding_changes_no_answer():
    pattern = posenc.bind(posenc.parse("sinusoidal + [rope, alibi]"), DIMS)
    x, before = jax.random.normal(jax.random.key(0), (2, 9, DIMS.width)), posenc.input_scheme(pattern)
    y = posenc.embed(before, posenc.init(before, jax.random.key(1), DIMS), x)
    assert not np.allclose(x, y)
    q = y.reshape(2, 9, DIMS.heads, DIMS.head)
    for n, text in enumerate(("rope", "alibi", "rope")):
        scheme, alone = posenc.layer(pattern, n), posenc.bind(posenc.parse(text), DIMS)
        assert scheme == alone
        params = posenc.init(scheme, jax.random.key(n), DIMS)
        np.testing.assert_array_equal(posenc.attend(scheme, params, q, q, q), posenc.attend(alone, params, q, q, q))


@pytest.mark.parametrize("n", [-1, 1.0, True, None, "0"])
def test_numbers_that_count_no_layer_are_refused(n):
    for text in ("[rope, nope]", "rope"):
        with pytest.raises(ValueError, match="layers"):
            posenc.layer(posenc.parse(text), n)


@pytest.mark.parametrize("thing", ["rope", None, [posenc.parse("rope")]])
def test_anything_but_a_scheme_is_refused(thing):
    for ask in (lambda s: posenc.layer(s, 0), posenc.input_scheme, posenc.acts_on_input):
        with pytest.raises(TypeError, match="posenc.parse"):
            ask(thing)


@pytest.mark.parametrize("scheme", EVERY)
def test_under_a_window_and_at_coordinates_a_scheme_answers_as_without(scheme):
    bound = posenc.bind(scheme, posenc.Dims(width=32, heads=4, head=8, trained=16, longest=64))
    hooks = ("embed", "locate", "query", "key", "value", "score", "normalize", "value_bias", "output", "scale")
    text = posenc.spec(bound)
    for around in (posenc.parse(f"{text} + window(9)"), posenc.parse(f"{text} @ offset(3)")):
        assert {n: getattr(around, n) for n in DECLARED} == {n: getattr(bound, n) for n in DECLARED}
        assert [around.overrides(h) for h in hooks] == [bound.overrides(h) for h in hooks]
        assert around.scale(8) == bound.scale(8) and posenc.acts_on_input(around) == posenc.acts_on_input(bound)


def test_other_attributes_are_refused_and_copies_serve():
    whole = posenc.parse("rope + window(9)")
    with pytest.raises(AttributeError, match="has no 'score'; look at its attribute scheme"):
        whole.score  # noqa: B018
    assert pickle.loads(pickle.dumps(whole)) == whole == copy.deepcopy(whole)
