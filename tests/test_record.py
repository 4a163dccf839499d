"""The committed record of what tests found is of the schemes as they are, and says nothing that they do not hold."""

import json

import pytest

import posenc
from posenc.catalog.schemes import RECORD
from posenc.contract import PROPERTIES
from tests import recording
from tests.contract.test_contract import UNCOMPARED
from tests.golden.case import load
from tests.golden.test_golden import KEPT
from tests.recording import collected, digest, engine, merged, stale

ANEW = "run: pytest tests/contract tests/oracles tests/golden --record"
FOUND = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def test_every_scheme_and_no_other_is_recorded():
    assert sorted(FOUND) == posenc.names(), ANEW


@pytest.mark.parametrize("name", FOUND)
def test_what_is_recorded_of_a_scheme_is_of_its_code_as_it_is(name):
    assert {kind["code"] for kind in FOUND[name].values()} == {digest(name)}, ANEW


@pytest.mark.parametrize("name", FOUND)
def test_what_is_recorded_of_a_scheme_holds(name):
    found = FOUND[name]
    assert found["oracle"]["largest"] <= 1e-10
    assert found["contract"]["holds"] == found["contract"]["applies"] > 20
    assert found["contract"]["properties"] == len(PROPERTIES)
    assert found["contract"]["gradient"] <= 1e-6
    assert ("golden" in found) == (name not in UNCOMPARED)


def test_the_cases_recorded_are_those_that_there_are():
    known = {f"{case.family}-{case.id}" for path in KEPT for case in load(path)}
    assert {case for found in FOUND.values() for case in found.get("golden", {}).get("cases", ())} <= known


class Report:
    def __init__(self, *properties, when="call", passed=True):
        self.user_properties, self.when, self.passed = properties, when, passed


def test_what_tests_find_is_summed_up_by_scheme():
    stats = {
        "passed": [
            Report(("golden", [["rope"], "rotary-half0", "someone/code 1234567", 1e-7])),
            Report(("golden", [["rope", "nope"], "rotary-half1", "someone/code 1234567", 3.14159e-7])),
            Report(("oracle", ["rope", 2e-16]), ("other", 1)),
            Report(("contract", ["rope", "gradients_are_those_of_the_function", True, 1e-9])),
            Report(("contract", ["rope", "weights_are_zero_where_nothing_is_seen", None, None])),
            Report(("contract", ["", "a_sum", True, 1.0])),
        ],
        "failed": [Report(("oracle", ["rope", 1.0]), passed=False)],
    }
    rope = merged({"rope": {"oracle": {"settings": 9, "largest": 1, "code": "old"}}}, collected(stats))["rope"]
    code = {"code": digest("rope")}
    assert rope["golden"] == code | {
        "cases": ["rotary-half0", "rotary-half1"],
        "sources": ["someone/code 1234567"],
        "largest": 3.1e-7,
    }
    assert rope["oracle"] == code | {"settings": 1, "largest": 2e-16}
    assert rope["contract"] == code | {"engine": engine()} | {
        "properties": 2,
        "applies": 1,
        "holds": 1,
        "gradient": 1e-9,
    }


def test_what_was_not_run_stays_as_it_was_recorded():
    before = {"rope": {"oracle": {"settings": 9, "largest": 1, "code": "old"}}, "gone": {}}
    after = merged(before, {})
    assert after["rope"] == before["rope"] and "gone" not in after


def test_a_change_of_shared_mathematics_makes_a_record_old(monkeypatch):
    rope, alibi, whole = digest("rope"), digest("alibi"), recording.inspect.getsource
    for more, changes in (("\nONE = 1", True), ('\n"""Words."""  # and more', False)):
        changed = lambda m, more=more: whole(m) + more * (m.__name__ == "posenc.numerics.rotation")  # noqa: E731
        monkeypatch.setattr(recording.inspect, "getsource", changed)
        assert (digest("rope") != rope) == changes and digest("alibi") == alibi


@pytest.mark.ci
def test_a_scheme_is_unverified_where_its_code_the_engine_or_jax_changed(monkeypatch, tmp_path):
    kept = {name: {"contract": {"code": digest(name), "engine": engine()}} for name in posenc.names()}
    path = tmp_path / "record.json"
    monkeypatch.setattr("posenc.catalog.schemes.RECORD", path)
    path.write_text(json.dumps(kept))
    assert stale() == []
    path.write_text(json.dumps(kept | {"rope": {"contract": {**kept["rope"]["contract"], "code": "older"}}}))
    assert stale() == ["rope"]
    path.write_text(json.dumps({name: of for name, of in kept.items() if name != "fox"}))
    assert stale() == ["fox"]
    path.write_text(json.dumps(kept))
    monkeypatch.setattr(recording, "version", lambda package: "another")
    engine.cache_clear()
    assert stale() == posenc.names()
    engine.cache_clear()


def test_nothing_is_recorded_where_anything_fails(monkeypatch, tmp_path):
    monkeypatch.setattr("posenc.catalog.schemes.RECORD", tmp_path / "record.json")
    lines = []

    class Terminal:
        stats = {"failed": [Report(passed=False)], "passed": [Report(("oracle", ["rope", 2e-16]))]}
        write_line = staticmethod(lines.append)

    class Config:
        getoption = staticmethod(lambda name: True)

    recording.pytest_terminal_summary(Terminal, Config)
    assert lines == ["recorded: nothing, for some tests failed"] and not (tmp_path / "record.json").exists()
