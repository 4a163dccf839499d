"""One text, one scheme, both ways, for whatever can be composed."""

import dataclasses
import importlib
import sys

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import posenc
from posenc.coordinates import COORDINATES
from posenc.core.compose import Chain, Composed, Draw, Pattern, normal_form, parts, windowed
from posenc.core.scheme import SCHEMES

CALM = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@some.composite
def schemes(draw):
    """A scheme with one of its sampled settings, or with none; a third of them under coordinates."""
    cls = SCHEMES.find(draw(some.sampled_from(posenc.names())))
    one = cls(**draw(some.sampled_from(({}, *cls.samples))))
    return one @ draw(coordinates()) if draw(some.integers(0, 2)) == 0 else one


@some.composite
def coordinates(draw):
    name = draw(some.sampled_from(COORDINATES.names()))
    text = {
        "random_sorted": f"random_sorted({draw(some.integers(1, 10**6))}, each='example')",
        "offset": f"offset({draw(some.integers(0, 99))})",
        "scale": f"scale({draw(some.floats(1e-9, 1e9))!r})",
        "given": "given('digit')",
    }.get(name, name)
    return posenc.parse(f"nope @ {text}").coordinates[0].coordinates


@some.composite
def sums(draw):
    every = draw(some.lists(schemes(), min_size=1, max_size=4))
    whole = _added(every)
    if not normal_form(whole).coordinates and draw(some.booleans()):
        whole = whole @ draw(coordinates())
    if draw(some.booleans()):
        whole = _added([whole, draw(schemes())])
    return windowed(whole, draw(some.integers(1, 2**29 - 1))) if draw(some.booleans()) else whole


@some.composite
def patterns(draw):
    layers = draw(
        some.lists(sums().filter(lambda s: not normal_form(s).scheme.overrides("embed")), min_size=1, max_size=4)
    )
    hooks = ("query", "key", "value", "score", "normalize", "value_bias")
    before = draw(some.none() | schemes().filter(lambda s: not normal_form(s).scheme.overrides(*hooks)))
    return Pattern(tuple(layers), before)


def _added(parts):
    """Those of a sum that may stand together, in this order."""
    whole = parts[0]
    for part in parts[1:]:
        try:
            whole = whole + part
        except ValueError:
            continue
    return whole


@pytest.mark.ci
@CALM
@given(some.one_of(schemes(), sums(), patterns()))
def test_the_text_of_a_scheme_names_that_scheme(scheme):
    text = posenc.spec(scheme)
    again = posenc.parse(text)
    assert again == scheme and hash(again) == hash(scheme) and posenc.spec(again) == text


@pytest.mark.ci
@CALM
@given(some.lists(schemes(), min_size=2, max_size=5))
def test_sums_are_flat_however_they_are_bracketed(every):
    try:
        left = every[0]
        for part in every[1:]:
            left = left + part
        right = every[-1]
        for part in reversed(every[:-1]):
            right = part + right
    except ValueError:
        return
    assert left == right and normal_form(left).scheme == Chain(tuple(s for part in every for s in parts(part)))
    text = posenc.spec(left)
    assert posenc.parse(text) == posenc.parse(f"({text})") == left


@pytest.mark.parametrize("name", posenc.names())
def test_every_setting_of_a_scheme_survives_being_written(name):
    cls = SCHEMES.find(name)
    for sample in ({}, *cls.samples):
        scheme = cls(**sample)
        assert posenc.parse(posenc.spec(scheme)) == scheme
        whole = ", ".join(f"{f.name}={getattr(scheme, f.name)!r}" for f in dataclasses.fields(scheme))
        assert posenc.parse(f"{name}({whole})") == scheme and posenc.parse(f"{name}()") == cls()
        assert posenc.spec(scheme).count("=") == sum(
            getattr(scheme, f.name) != f.default for f in dataclasses.fields(scheme)
        )


@pytest.mark.parametrize("text", ["rope(base=500000)", "rope(500000.0)", "rope( base = 5e5 )"])
def test_numbers_are_of_their_settings_type_and_give_one_text_and_one_hash(text):
    one = posenc.parse("rope(base=500000.0)")
    assert posenc.parse(text) == one and hash(posenc.parse(text)) == hash(one)
    assert posenc.spec(posenc.parse(text)) == "rope(base=500000.0)"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ropee", "'ropee'.*'rope'"),
        ("sinusodal", "'sinusoidal'"),
        ("rope @ random_sort", "'random_sorted'"),
        ("rope @ alibi", "'alibi'"),
        ("random_sorted(9)", "'random_sorted'"),
        ("alibi(base=3)", "'alibi'.*'base'.*'base'"),
        ("nope(layout='half')", "'nope'.*'layout'.*'layout'"),
        ("rope(bass=1)", "'rope'.*'bass'"),
        ("nope(1)", "'nope'.* 1 "),
        ("rope(500.0, base=500.0)", "'base'.*'rope'"),
        ("rope(base='x')", "'base'.*'rope'.*'x'"),
        ("rope(base=True)", "not True"),
        ("rope(base=None)", "not None"),
        ("rope(layout='halves')", "takes 'half' or 'interleaved', not 'halves'"),
        ("log_n(trained=2.5)", "2.5"),
        (f"rope(base={'9' * 400})", "999"),
        ("window(3)", "mask"),
        ("[window(3)]", "mask"),
        ("rope + window(0)", "not 0"),
        ("rope + window(2.0)", "not 2.0"),
        ("rope + window(True)", "not True"),
        ("rope + window()", "number of"),
        ("rope + window(2, 3)", "number of"),
        ("rope + window(2) + window(3)", "one window"),
        ("window(5) + window(6)", "mask"),
        ("rope + window(foo=5)", "number of"),
        ("rope + window(5, keys=5)", "number of"),
        ("[rope, nope] + window(5)", "a list"),
        ("learned + window(5) + [rope]", "a list"),
        ("(rope + window(2)) @ offset(3)", "after"),
        ("(rope @ index + nope) @ index", "already"),
        ("[[rope]]", "another"),
        ("[learned, rope]", "the input"),
        ("rope + [nope]", "the input"),
        ("rope + log_n", "before"),
    ],
)
def test_what_has_no_meaning_is_refused_in_a_sentence_that_says_what_has(text, why):
    with pytest.raises(ValueError, match=why) as refusal:
        posenc.parse(text)
    said = str(refusal.value)
    assert said.endswith((".", "'")) and "\n" not in said


def test_names_are_those_of_schemes_or_of_coordinates():
    assert {"rope", "alibi", "nope"} <= set(posenc.names()) and "index" in posenc.names("coordinates")
    with pytest.raises(ValueError, match="choose 'schemes' or 'coordinates'"):
        posenc.names("tasks")


@pytest.mark.parametrize("thing", [None, 3, b"rope", object(), ["rope"]])
def test_what_is_no_text_and_no_scheme_is_refused(thing):
    with pytest.raises(TypeError, match="text"):
        posenc.parse(thing)
    with pytest.raises(TypeError, match="scheme"):
        posenc.spec(thing)


def test_the_keys_of_a_window_may_be_named():
    assert posenc.parse("rope + window(keys=5)") == posenc.parse("rope + window(5)")


def test_a_window_has_no_other_window_and_no_list_inside():
    for scheme in ("rope + window(5)", "[rope, nope]"):
        with pytest.raises(ValueError, match="one window|a list"):
            windowed(posenc.parse(scheme), 5)
    with pytest.raises(ValueError, match="list"):
        windowed(posenc.parse("learned"), 5) + posenc.parse("[rope, nope]")


def test_the_normal_form_of_a_sum_has_plain_schemes_their_coordinates_and_a_window():
    rope, alibi, nope, shifted = (posenc.parse(text) for text in ("rope", "alibi", "nope", "nope @ offset(3)"))
    offset = shifted.coordinates[0].coordinates
    whole = posenc.parse("(rope + alibi) @ offset(3) + nope + window(9)")
    assert whole == Composed(Chain((rope, alibi, nope)), (Draw(offset, 2), Draw(None)), 9)
    assert whole == windowed((rope + alibi) @ offset + nope, 9) and whole != windowed(whole.scheme, 9)
    assert whole.draws == ((offset, (rope, alibi)), (None, (nope,)))
    assert posenc.spec(whole) == "(rope + alibi) @ offset(limit=3) + nope + window(9)"
    bound = posenc.bind(posenc.parse("log_n + (rope + alibi) @ random_float + window(9)"), DIMS)
    assert bound == posenc.bind(bound, DIMS) and bound.scheme.parts[0].trained == DIMS.trained
    assert bound.coordinates[1].coordinates.trained == DIMS.trained and bound.window == 9
    assert (
        normal_form(rope) == Composed(rope) and parts(rope) == (rope,) and posenc.parse("rope + alibi") == rope + alibi
    )
    for wrong in (lambda: Chain((rope, Chain((alibi, nope)))), lambda: Chain((rope, shifted)), lambda: Chain((rope,))):
        with pytest.raises(ValueError, match="two parts"):
            wrong()
    with pytest.raises(ValueError, match="2 schemes"):
        Composed(rope + alibi, (Draw(offset),))
    with pytest.raises(TypeError, match="scheme"):
        Composed(shifted)


DIMS = posenc.Dims(8, 2, 4, 8)
KEY = jax.random.key(0)
ROPE = posenc.parse("rope")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: posenc.bind(type(ROPE), DIMS), "RoPE"),
        (lambda: posenc.init("rope", KEY, DIMS), "'rope'"),
        (lambda: posenc.bind(ROPE, {"width": 8}), "dims.* dict"),
        (lambda: posenc.init(ROPE, KEY, {"width": 8}), "dims.* dict"),
        (lambda: posenc.init(ROPE, 0, DIMS), "key.* 0"),
        (lambda: posenc.init(ROPE, jax.random.split(KEY), DIMS), "random key"),
        (lambda: posenc.init(ROPE, "0", DIMS), "key.* str"),
        (lambda: ROPE @ 5, "not 5"),
        (lambda: ROPE @ COORDINATES.find("index"), "after @"),
        (lambda: posenc.place(ROPE, KEY, 5), "given.* int"),
    ],
)
def test_what_is_of_another_kind_is_refused_in_one_sentence(call, why):
    with pytest.raises(TypeError, match=why) as refusal:
        call()
    assert str(refusal.value).endswith(".") and "\n" not in str(refusal.value)


def test_random_keys_of_either_kind_serve_compiled_or_not():
    for key in (KEY, jax.random.PRNGKey(0)):
        made = [
            posenc.init(posenc.parse("kerple"), key, DIMS),
            jax.jit(posenc.init, static_argnums=(0, 2))(posenc.parse("kerple"), key, DIMS),
        ]
        np.testing.assert_allclose(*(p["heads"]["r1"] for p in made))


def test_sizes_are_whole_numbers_of_any_library_but_no_truth_values():
    dims = posenc.Dims(np.int64(8), np.int32(2), 4, 8, key_heads=np.uint8(1))
    assert dims == posenc.Dims(8, 2, 4, 8, key_heads=1) and type(dims.width) is type(dims.key_heads) is int
    for wrong in (True, np.True_, 8.0, "8"):
        with pytest.raises(ValueError, match="whole number"):
            posenc.Dims(wrong, 2, 4, 8)


def test_citing_a_composition_cites_the_coordinates_that_were_published():
    for text, who in (("random_sorted(64)", "ruoss2023"), ("offset(3)", "kiyono2021"), ("scale(2.0)", "chen2023")):
        said = posenc.cite(f"rope @ {text}")
        assert who in said and "su2021roformer" in said and "names no publication" not in said
    assert "kiyono2021" in posenc.cite("sinusoidal @ offset(3) + [rope, nope]")


def test_a_scheme_that_follows_the_model_is_described_as_serving_both_ways():
    assert posenc.describe("t5")["causal only"] == posenc.describe("fire")["causal only"] == ""
    assert "before the query" in posenc.describe("t5(bidirectional=False)")["causal only"]


@pytest.mark.parametrize(
    ("text", "kernel", "cache"),
    [
        ("rope + nope", "any attention kernel", "keys and values, for each key head"),
        ("cope + alibi", "whole rows of scores", "keys, values and features of each key, for each key head"),
        ("fox + dynamic_ntk", "an elementwise score with features of each token", "keys and values before any hook"),
    ],
)
def test_a_composition_needs_the_kernel_and_the_cache_of_its_most_demanding_part(text, kernel, cache):
    forward, backward = (posenc.describe(" + ".join(parts)) for parts in (text.split(" + "), text.split(" + ")[::-1]))
    for found in (forward, backward):
        assert found["kernel class"].startswith(kernel) and found["cache"].startswith(cache)
        assert found["kernel class"] in {part["kernel class"] for part in found["parts"]}
        assert found["cache"] in {part["cache"] for part in found["parts"]}


def test_a_text_names_a_class_of_a_module_that_the_caller_imported_and_imports_none(tmp_path, monkeypatch, fresh):
    (tmp_path / "mine.py").write_text(
        "from posenc import Scheme\n\nclass Mine(Scheme, name='mine'):\n    rate: float = 1.0\n\n"
        "class Bare(Scheme, name=None): ..."
    )
    monkeypatch.syspath_prepend(tmp_path)
    for text in ("mine:Mine", "rope + mine:Mine(rate=2.0)", "rope @ mine:Where"):
        with pytest.raises(ValueError, match="'mine:.*' is a class of the module 'mine', which is not imported"):
            posenc.parse(text)
    assert "mine" not in sys.modules
    importlib.import_module("mine")
    scheme = posenc.parse("rope + mine:Mine(rate=2)")
    assert posenc.spec(scheme) == "rope + mine(rate=2.0)" and posenc.parse(posenc.spec(scheme)) == scheme
    with pytest.raises(ValueError, match="'mine:Bare' is not the class of a scheme; write mine:Mine"):
        posenc.parse("mine:Bare")
    with pytest.raises(ValueError, match="'posenc:nnx' is not the class of a scheme|The module 'posenc' has no 'nnx'"):
        posenc.parse("posenc:nnx")
