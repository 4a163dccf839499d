"""`posenc compare` names no winner where both schemes are at the floor, or neither has learned the sizes trained on."""

import json

import pytest

from tests.lab import made
from tests.lab.test_learned import ALL_FALL, NOTHING, pair

GUESSES = {"beyond": (0.15, 0.1)}
CASES = {
    "floor": (GUESSES, "copy: both at the floor (position .20); not compared."),
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


def test_a_task_that_none_has_learned_is_left_out_of_means_over_tasks(posenc, refuse):
    made.filled("a", [*pair(**NOTHING), *pair(task="sort")])
    said = posenc("compare", "a", "rope").out
    assert "Left out: copy (no scheme solves the sizes trained on)." in said and "over 1 task" in said
    made.filled("b", pair(**NOTHING))
    assert refuse("compare", "b", "rope") == (
        "Nothing can be compared: on copy no scheme solves the sizes trained on. Train longer, or at a smaller size.\n"
    )
