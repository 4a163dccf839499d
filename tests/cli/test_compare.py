"""`posenc compare` names no winner where both schemes are at the floor, or neither has learned the sizes trained on."""

import json

import pytest

from posenc.lab.results.ties import holm
from tests.lab import made
from tests.lab.test_learned import ALL_FALL, NOTHING, pair

GUESSES = {"beyond": (0.15, 0.1)}
CASES = {
    "floor": (GUESSES, "both at the baseline (position .20); not compared."),
    "both": (
        NOTHING | ALL_FALL,
        "neither solves the sizes trained on and both losses still fell, so this compares speed of learning; train"
        " longer.",
    ),
    "unsolved": (NOTHING, "neither solves the sizes trained on, so neither is called better beyond them."),
    "falling": (ALL_FALL, "both losses still fell, so this compares speed of learning; train longer."),
}


@pytest.mark.parametrize("name", CASES)
def test_two_schemes_are_not_ranked(posenc, name):
    """The sentence stands in the place of probability and test, and JSON has none of these either."""
    case, said = CASES[name]
    made.filled(name, [*pair(**case), *pair(task="sort")])
    _, copy, sort, *_ = posenc("compare", name, "rope", "alibi", "--metric", "accuracy").out.splitlines()
    assert copy.endswith(said) and "P(" not in copy and "Wilcoxon" not in copy and "P(rope > alibi) = 1.00" in sort
    assert ("median difference" in copy) == (name != "floor")
    found = json.loads(posenc("compare", name, "rope", "alibi", "--metric", "accuracy", "--json").out)["tasks"]
    assert [row["better"] for row in found] == [None, 1.0] and [row["wilcoxon"] for row in found][0] is None
    assert found[0]["doubt"] in said and found[1]["doubt"] is None and found[0]["over"] == [24, 32]
    assert (found[0]["difference"] is None) == (name == "floor")


def test_a_size_that_was_trained_is_compared_though_neither_solves_it(posenc):
    made.filled("a", pair(**NOTHING))
    said = posenc("compare", "a", "rope", "alibi", "--size", "16", "--metric", "accuracy").out
    assert "copy: P(rope > alibi) = 1.00" in said and "neither" not in said


def test_a_control_is_compared_with_each_other_scheme_and_p_is_corrected_for_all(posenc, refuse):
    """Six pairs of one sign have p = 2/64; of three tests the smallest p is taken three times."""
    drops = {"rope": 0.0, "alibi": 0.3, "t5": 0.2}
    made.filled("a", [made.rope(seeds=range(6), label=label, drop=drop) for label, drop in drops.items()])
    found = json.loads(posenc("compare", "a", "rope", "--metric", "accuracy", "--json").out)
    assert [(row["second"], row["wilcoxon"], row["holm"]) for row in found["tasks"]] == [
        ("alibi", 2 / 64, 4 / 64),
        ("t5", 2 / 64, 4 / 64),
    ]
    made.filled("b", [made.rope()])
    assert "only scheme" in refuse("compare", "b", "rope")


def test_holm_multiplies_the_smallest_most_and_keeps_the_order():
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06]) and holm([0.6, 0.7]) == [1.0, 1.0]
