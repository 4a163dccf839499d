"""Every scheme holds every property: the registry, its samples, sums of them, and toys for the hooks that few use.

By day a sum holds all of it, and so does the scheme with the most traits where its record is of another engine; every
changed scheme holds what is its own. `.ci/run` adds the rest of a covering set (covering.py, `-m ci`), and all others
wait for the night (`-m nightly`). A new scheme is tested by existing.
`python -m tests.contract.parameters` writes parameters.json anew.
"""

import importlib.util
import inspect
import json
import pkgutil
import re

import jax
import jax.numpy as jnp
import pytest

import posenc
from posenc import contract
from posenc.core.scheme import SCHEMES, Scheme
from tests.contract.covering import OWN, covering, registered, traits
from tests.contract.parameters import FILE, snapshot
from tests.contract.toys import TOYS
from tests.recording import stale, unchanged

SUMS = (
    "rope + alibi",
    "learned + ssmax + shaw(reach=3)",
    "log_n + rope + fox",
    "sinusoidal + t5",
    "nope + (rope + alibi) @ index",
    "{rope + t5: 1, fox: 3}",
)


WHOLE = tuple(f.__name__ for f in contract.PROPERTIES)
TOY = {type(toy).__name__: toy for toy in TOYS}
STAND_IN = "learned + ssmax + shaw(reach=3)"
"""The sum that holds the whole contract by day."""


def cases(config):
    """A text, and which properties of it: all of a covering set, and what is its own of every scheme whose code is not
    that of its record; the record of the others is of this code, as tests/test_record.py holds."""
    if config.getoption("record"):
        return [(name, WHOLE) for name in posenc.names()]
    if config.getoption("unverified"):
        return [(name, WHOLE) for name in stale()]
    few, old = covering(registered()), stale()
    samples = [posenc.spec(SCHEMES.find(n)(**given)) for n in posenc.names() for given in SCHEMES.find(n).samples]
    recorded, found = unchanged(), []
    for text in (*posenc.names(), *samples, *SUMS, *TOY):
        if text in few or text == STAND_IN:
            late = text in few and (text != few[0] or text not in old)
            found.append(pytest.param(text, WHOLE, marks=pytest.mark.ci if late else ()))
            continue
        if text not in samples and text not in recorded:
            found.append(pytest.param(text, OWN, marks=pytest.mark.ci if text in (*SUMS, *TOY) else ()))
        found.append(pytest.param(text, WHOLE, marks=pytest.mark.nightly))
    return found


def pytest_generate_tests(metafunc):
    if metafunc.function is test_it_holds_its_contract:
        name = lambda value: value if isinstance(value, str) else "whole" if value is WHOLE else "own"  # noqa: E731
        metafunc.parametrize(("text", "properties"), cases(metafunc.config), ids=name)


def test_it_holds_its_contract(text, properties, record_property):
    """One case for all its properties, so that what they share is compiled once."""
    with jax.enable_x64(True):
        case = contract.Case(TOY.get(text) or posenc.parse(text))
    wrong = []
    for f in contract.PROPERTIES:
        if f.__name__ in properties:
            found = contract.examine(f, case)
            record_property("contract", [getattr(case.unbound, "name", ""), f.__name__, found.holds, found.figure])
            if found.holds is False:
                wrong.append(f"{f.__name__}: {found.figure} {found.reason}")
    assert not wrong, "\n".join(wrong)


def test_few_schemes_show_every_trait():
    every = registered()
    few = covering(every)
    assert len(few) < 15 and set().union(*map(traits, map(every.get, few))) == set().union(*map(traits, every.values()))


@pytest.mark.ci
def test_what_does_not_apply_says_why():
    report = posenc.check(posenc.parse("nope"))
    assert report.ok, str(report)
    assert all(f.outcome.reason for f in report.findings if f.outcome.holds is None)


def test_the_two_halves_of_order_apply_where_they_should():
    """The negative control fails nothing and shows nothing: without positions there is no order to be seen."""
    seen = lambda text: posenc.check(posenc.parse(text), only="G8").findings  # noqa: E731
    nope = {f.name: f.outcome.holds for f in seen("nope")}
    assert nope["without_positions_order_is_unseen"] is True and nope["with_positions_order_is_seen"] is None
    assert all(f.outcome.holds for f in seen("alibi"))


def test_a_report_is_a_value_that_prints_as_a_table():
    report = posenc.check(posenc.parse("alibi"), only=["G18", "its_text_names_it"])
    assert report.ok and not report.failures and len({f.name for f in report.findings}) == 3
    assert report == posenc.check(posenc.parse("alibi"), only=["G18", "its_text_names_it"])
    lines = str(report).splitlines()
    assert lines[0] == "alibi: 3 hold, 0 fail, 0 do not apply" and all("holds" in line for line in lines[1:])


def test_what_is_no_property_is_refused():
    with pytest.raises(ValueError, match="G99.*G18.*the_future_is_unseen"):
        posenc.check(posenc.parse("rope"), only="G99")
    with pytest.raises(TypeError, match="pattern"):
        posenc.check(posenc.parse("[rope, nope]"))


@pytest.mark.parametrize("name", posenc.names())
def test_its_parameters_are_those_recorded(name):
    """Where a name or a shape changes, saved models cannot be read: `python -m tests.contract.parameters`."""
    assert snapshot(name) == json.loads(FILE.read_text())[name]


def test_nothing_is_recorded_that_is_gone():
    assert sorted(json.loads(FILE.read_text())) == posenc.names()


@pytest.mark.parametrize("name", posenc.names())
def test_its_docstring_says_what_it_is_where_it_is_from_and_how_to_cite_it(name):
    text = inspect.cleandoc(SCHEMES.find(name).__doc__)
    idea = text.split("\n\n")[0]
    assert re.search(r"(19|20)\d\d|folklore", idea), f"the first paragraph names no source: {idea}"
    assert idea.endswith("."), "the first paragraph is a sentence"
    assert "\n    " in text, "an equation, indented, says what it computes"
    assert "```bibtex\n@" in text, "a BibTeX entry says how to cite it"


@pytest.mark.parametrize("name", posenc.names())
def test_it_belongs_to_a_family(name):
    assert SCHEMES.find(name).family != "none" or name == "nope"


UNCOMPARED = {
    "binary": "told in tutorials; no authors released code",
    "carope": "published as an equation; no authors' code was found",
    "dual_triangle": "published as an equation; the authors' code was not in reach",
    "key_weight": "one line of its papers' equations, which its oracle holds",
    "hope": "published as an equation; no authors' code was found",
    "tapa": "published as an equation; no authors' code was found",
}
"""Schemes without golden numbers, and why."""


def test_every_scheme_has_golden_numbers_or_a_reason():
    import tests.golden.adapters as adapters

    modules = [
        importlib.import_module(f"{adapters.__name__}.{m.name}") for m in pkgutil.iter_modules(adapters.__path__)
    ]
    covered = {name for module in modules for name in getattr(module, "schemes", ())}
    assert sorted(set(posenc.names()) - covered - UNCOMPARED.keys()) == []


@pytest.mark.parametrize(
    ("text", "dims", "only"),
    [
        ("alibi", posenc.Dims(16, 1, 8, 8, 64), ["hooks_run_once_in_order", "scores_do_not_look_beyond_their_tile"]),
        ("kerple", posenc.Dims(16, 2, 8, 8, 64), ["hooks_run_once_in_order", "scores_do_not_look_beyond_their_tile"]),
        ("learned", posenc.Dims(16, 4, 4, 64), "hooks_run_once_in_order"),
    ],
)
def test_good_schemes_pass_at_other_sizes(text, dims, only):
    report = posenc.check(posenc.parse(text), dims, only=only)
    assert report.ok, str(report)


@pytest.mark.parametrize(
    ("text", "dims", "why"),
    [
        ("learned", posenc.Dims(16, 4, 4, 16), "64 tokens.* 16.*longest=64"),
        ("alibi", posenc.Dims(16, 4, 4, 64, causal=False), "key_heads"),
        ("alibi", posenc.Dims(16, 4, 4, 64, key_heads=2), "key_heads"),
        ("rope + window(3)", None, r"window\(3\)"),
    ],
)
def test_what_a_check_would_fail_or_leave_out_for_no_fault_is_refused(text, dims, why):
    with pytest.raises(ValueError, match=why):
        posenc.check(posenc.parse(text), dims)


class Forgetful(Scheme, name=None):
    """Declares a name that no setting ever makes."""

    double: bool = False

    tied = frozenset({"table", "tabel"})
    samples = ({"double": True},)

    def init(self, key, dims):
        return {"table": jnp.ones(dims.width)} if self.double else {}


def test_a_name_declared_tied_is_made_under_some_setting(monkeypatch):
    declared = lambda: posenc.check(Forgetful(), only="parameters_are_as_declared")  # noqa: E731
    assert "tabel" in declared().failures[0].outcome.reason
    monkeypatch.setattr(Forgetful, "tied", frozenset({"table"}))
    assert declared().ok
