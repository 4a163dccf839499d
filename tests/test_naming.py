"""One text, one scheme, both ways, for whatever can be composed."""

import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import posenc
from posenc.compose import Chain, Pattern, Placed, Windowed, bare
from posenc.coordinates import COORDINATES
from posenc.scheme import SCHEMES

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
    return posenc.parse(f"nope @ {text}").coordinates


@some.composite
def sums(draw):
    parts = draw(some.lists(schemes(), min_size=1, max_size=4))
    whole = _added(parts)
    plain = [p for p in parts if not isinstance(p, Placed)]
    if len(plain) == len(parts) and draw(some.booleans()):
        whole = Placed(whole, draw(coordinates()))
    return Windowed(whole, draw(some.integers(1, 10**9))) if draw(some.booleans()) else whole


@some.composite
def patterns(draw):
    layers = draw(some.lists(sums().filter(lambda s: not bare(s).overrides("embed")), min_size=1, max_size=4))
    hooks = ("query", "key", "value", "score", "weigh", "extra")
    before = draw(some.none() | schemes().filter(lambda s: not bare(s).overrides(*hooks)))
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


@CALM
@given(some.one_of(schemes(), sums(), patterns()))
def test_the_text_of_a_scheme_names_that_scheme(scheme):
    text = posenc.spec(scheme)
    again = posenc.parse(text)
    assert again == scheme and hash(again) == hash(scheme) and posenc.spec(again) == text


@CALM
@given(some.lists(schemes(), min_size=2, max_size=5))
def test_sums_are_flat_however_they_are_bracketed(parts):
    try:
        left = parts[0]
        for part in parts[1:]:
            left = left + part
        right = parts[-1]
        for part in reversed(parts[:-1]):
            right = part + right
    except ValueError:
        return
    assert left == right and isinstance(left, Chain) and len(left.parts) == len(parts)
    text = posenc.spec(left)
    assert posenc.parse(text) == posenc.parse(f"({text})") == left


@pytest.mark.parametrize("name", posenc.names())
def test_every_setting_of_a_scheme_survives_being_written(name):
    cls = SCHEMES.find(name)
    for sample in ({}, *cls.samples):
        scheme = cls(**sample)
        assert posenc.parse(posenc.spec(scheme)) == scheme
        whole = ", ".join(f"{f.name}={getattr(scheme, f.name)!r}" for f in dataclasses.fields(scheme))
        assert posenc.parse(f"{name}({whole})") == scheme
        assert posenc.spec(scheme).count("=") == sum(
            getattr(scheme, f.name) != f.default for f in dataclasses.fields(scheme)
        )


@pytest.mark.parametrize("text", ["rope(base=500000)", "rope(500000.0)", "rope( base = 5e5 )"])
def test_numbers_are_of_their_settings_type_and_give_one_text_and_one_hash(text):
    one = posenc.parse("rope(base=500000.0)")
    assert posenc.parse(text) == one and hash(posenc.parse(text)) == hash(one)
    assert posenc.spec(posenc.parse(text)) == "rope(base=500000.0)"


def test_a_default_that_is_written_is_a_default():
    assert posenc.spec(posenc.parse("rope(base=10000, layout='half')")) == "rope"
    assert posenc.parse("rope()") == posenc.parse("rope")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ropee", "No scheme is called 'ropee'. Did you mean 'rope'"),
        ("sinusodal", "Did you mean 'sinusoidal'"),
        ("rope @ random_sort", "Did you mean 'random_sorted'"),
        ("rope @ alibi", "No kind of coordinates is called 'alibi'"),
        ("random_sorted(9)", "No scheme is called 'random_sorted'"),
        ("alibi(base=3)", r"'alibi' has no setting 'base'; it has .* 'base' is a setting of .*rope"),
        ("nope(layout='half')", r"'nope' has no setting 'layout'; it has none\. 'layout' is a setting of .*rope"),
        ("rope(bass=1)", "'rope' has no setting 'bass'; it has base, layout"),
        ("nope(1)", "'nope' was given 1 settings; it has none"),
        ("rope(500.0, base=500.0)", "The setting 'base' of 'rope' is given twice"),
        ("rope(base='x')", "The setting 'base' of 'rope' takes a number, not 'x'"),
        ("rope(base=True)", "takes a number, not True"),
        ("rope(base=None)", "takes a number, not None"),
        ("rope(layout='halves')", "takes 'half' or 'interleaved', not 'halves'"),
        ("log_n(trained=2.5)", "takes a whole number or None, not 2.5"),
        (f"rope(base={'9' * 400})", "takes a number, not 999"),
        ("window(3)", "narrows what one sees"),
        ("[window(3)]", "narrows what one sees"),
        ("rope + window(0)", "at least 1, not 0"),
        ("rope + window(2.0)", "a whole number of keys of at least 1, not 2.0"),
        ("rope + window(True)", "not True"),
        ("rope + window()", "one number"),
        ("rope + window(2, 3)", "one number"),
        ("rope + window(2) + window(3)", "one window"),
        ("(rope + window(2)) @ offset(3)", "stands after them"),
        ("(rope @ index + nope) @ index", "has coordinates already"),
        ("[[rope]]", "cannot hold another"),
        ("[learned, rope]", "no scheme may act on the input"),
        ("rope + [nope]", "only what acts on the input"),
        ("rope + log_n", "stands before what it scales"),
    ],
)
def test_what_has_no_meaning_is_refused_in_a_sentence_that_says_what_has(text, why):
    with pytest.raises(ValueError, match=why) as refusal:
        posenc.parse(text)
    said = str(refusal.value)
    assert said.endswith((".", "'")) and "\n" not in said


@pytest.mark.parametrize("name", ["Chain", "Placed", "Windowed", "Pattern", "Scheme", "chain", "sum", "add", "window"])
def test_what_combines_schemes_has_no_name(name):
    assert name not in posenc.names() and name not in posenc.names("coordinates")
    with pytest.raises(ValueError):
        posenc.parse(name)


def test_names_are_those_of_schemes_or_of_coordinates():
    assert {"rope", "alibi", "nope"} <= set(posenc.names()) and "index" in posenc.names("coordinates")
    with pytest.raises(ValueError, match="choose 'schemes' or 'coordinates'"):
        posenc.names("tasks")


@pytest.mark.parametrize("thing", [None, 3, object(), ["rope"]])
def test_what_is_no_text_and_no_scheme_is_refused(thing):
    with pytest.raises(TypeError, match="expected"):
        posenc.parse(thing)
    with pytest.raises(TypeError, match="expected"):
        posenc.spec(thing)
