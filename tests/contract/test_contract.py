"""Every scheme holds every property: the registry, its samples, sums of them, and toys for the hooks that few use.

Samples, and what is slow, are left to the night (`-m nightly`). A new scheme is tested by existing.
`python -m tests.contract.parameters` writes parameters.json anew.
"""

import ast
import importlib.util
import inspect
import json
import pkgutil
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import posenc
from posenc import contract
from posenc.core.scheme import SCHEMES, Scheme
from tests.contract.parameters import FILE, snapshot
from tests.contract.toys import TOYS

SUMS = (
    "rope + alibi",
    "learned + ssmax + shaw(reach=3)",
    "log_n + rope + fox",
    "sinusoidal + t5",
    "nope + (rope + alibi) @ index",
)


def texts():
    """Every scheme as it stands; every sample of its settings takes its turn at night."""
    for name in posenc.names():
        cls = SCHEMES.find(name)
        yield name
        for settings in cls.samples:
            text = posenc.spec(cls(**settings))
            yield pytest.param(text, marks=pytest.mark.nightly, id=text)


CASES = [*texts(), *SUMS, *(type(toy).__name__ for toy in TOYS)]


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """One case for all its properties, so that what they share is compiled once."""
    toys = {type(toy).__name__: toy for toy in TOYS}
    scheme = toys.get(request.param) or posenc.parse(request.param)
    with jax.enable_x64(True):
        return contract.Case(scheme)


SLOW = ("compiled_equals_op_by_op",)
"""Properties that cost as much as many others together; by day a few schemes stand for all."""
SHARED = (
    "parameter_sets_stack",
    "sums_run_in_order",
    "grouped_queries_equal_repeated_keys",
    "examples_are_independent",
    "a_block_of_queries_is_part_of_the_square",
)
"""What attention sees to, for one scheme as for the next: likewise, unless `--record` asks for all."""
BY_DAY = ("rope", "fox", "t5", "learned + ssmax + shaw(reach=3)")


def pytest_generate_tests(metafunc):
    if metafunc.function is test_it_holds:
        late = SLOW if metafunc.config.getoption("record") else SLOW + SHARED
        marks = {f: [pytest.mark.nightly] * (f.__name__ in late) for f in contract.PROPERTIES}
        metafunc.parametrize("holds", [pytest.param(f, marks=marks[f], id=f.__name__) for f in contract.PROPERTIES])


def test_it_holds(case, holds, record_property):
    outcome = contract.examine(holds, case)
    record_property("contract", [getattr(case.asked, "name", ""), holds.__name__, outcome.holds, outcome.figure])
    assert outcome.holds is not False, f"{outcome.figure} {outcome.reason}"


@pytest.mark.parametrize("text", BY_DAY)
def test_a_few_hold_by_day_what_all_hold_at_night(text):
    report = posenc.check(posenc.parse(text), only=(*SLOW, *SHARED))
    assert report.ok, str(report)


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
    with pytest.raises(ValueError, match="No property is called G99; choose from .*G18.*the_future_is_unseen"):
        posenc.check(posenc.parse("rope"), only="G99")
    with pytest.raises(TypeError, match="a pattern of layers"):
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


@pytest.mark.parametrize("name", posenc.names())
def test_it_has_an_oracle_written_from_its_equation(name):
    spec = importlib.util.find_spec(f"tests.oracles.{name}")
    assert spec is not None, f"tests/oracles/{name}.py is missing"
    tree = ast.parse(Path(spec.origin).read_text())
    used = {n.split(".")[0] for node in ast.walk(tree) for n in _imported(node)}
    assert not used & {"posenc", "jax"}, "an oracle shares no code with what it judges"


def _imported(node):
    if isinstance(node, ast.Import):
        return [a.name for a in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


UNCOMPARED = {
    "binary": "told in tutorials; no authors released code",
    "carope": "published as an equation; no authors' code was found",
    "hope": "published as an equation; no authors' code was found",
    "ssmax": "published as an equation; no authors' code was found",
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
        ("learned", posenc.Dims(16, 4, 4, 16), r"runs 64 tokens, more than 16; say Dims\(\.\.\., longest=64\)\."),
        ("alibi", posenc.Dims(16, 4, 4, 64, causal=False), "leave causal and key_heads out of dims"),
        ("alibi", posenc.Dims(16, 4, 4, 64, key_heads=2), "leave causal and key_heads out of dims"),
        ("rope + window(3)", None, r"window\(3\) narrows the mask and is no part of a scheme"),
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
    assert declared().failures[0].outcome.reason == "tabel is declared tied, but no such parameter exists"
    monkeypatch.setattr(Forgetful, "tied", frozenset({"table"}))
    assert declared().ok
