"""The committed record of what tests found is of the schemes as they are, and says nothing that they do not hold."""

import json

import pytest

import posenc
from posenc.catalog import RECORD
from tests.contract.test_contract import UNCOMPARED
from tests.golden.case import load
from tests.golden.test_golden import KEPT
from tests.recording import collected, digest, merged

ANEW = "run: pytest tests/contract tests/oracles tests/golden --record"
FOUND = json.loads(RECORD.read_text(encoding="utf-8"))


def test_every_scheme_and_no_other_is_recorded():
    assert sorted(FOUND) == posenc.names(), ANEW


@pytest.mark.parametrize("name", posenc.names())
def test_what_is_recorded_of_a_scheme_is_of_its_file_as_it_is(name):
    assert FOUND[name]["file"] == digest(name), ANEW


@pytest.mark.parametrize("name", posenc.names())
def test_what_is_recorded_of_a_scheme_holds(name):
    found = FOUND[name]
    assert found["oracle"]["largest"] <= 1e-10
    assert found["contract"]["holds"] == found["contract"]["applies"] > 20
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
    rope = merged({"rope": {"file": "old", "oracle": {"settings": 9, "largest": 1}}}, collected(stats))["rope"]
    assert rope["golden"] == {
        "cases": ["rotary-half0", "rotary-half1"],
        "sources": ["someone/code 1234567"],
        "largest": 3.1e-7,
    }
    assert rope["oracle"] == {"settings": 1, "largest": 2e-16}
    assert rope["contract"] == {"properties": 2, "applies": 1, "holds": 1, "gradient": 1e-9}
    assert rope["file"] == digest("rope")


def test_what_was_not_run_stays_as_it_was_recorded():
    before = {"rope": {"file": "old", "oracle": {"settings": 9, "largest": 1}}, "gone": {}}
    after = merged(before, {})
    assert after["rope"]["oracle"] == before["rope"]["oracle"] and "gone" not in after
