"""No scheme is called better where nothing was learned: beside floors, unsolved sizes, and losses that still fell."""

import pytest

from posenc.lab.figures import claims, tables
from posenc.lab.results import learned, losses
from posenc.lab.results.floors import best_floor
from posenc.lab.results.statistics import cells
from tests.lab import made

FALLS = {"step": list(range(1, 11)), "loss": [2 * 0.8**k for k in range(10)]}
FLAT = {"step": list(range(1, 11)), "loss": [0.5] * 10}


def scheme(label, inside, beyond, curve=FLAT, task="copy", seeds=6, rows=1000):
    """Runs of a scheme that are right in these shares within and beyond the sizes trained on."""
    at = lambda s: {8: inside, 16: inside, 24: beyond + s / 1000, 32: beyond}  # noqa: E731
    trials = [made.trial(label, task, s, at(s), rows=rows) | {"curve": curve} for s in range(seeds)]
    return made.record(label, label, task, trials)


def pair(inside=(1.0, 1.0), beyond=(0.9, 0.5), curves=(FLAT, FLAT), **more):
    """Two schemes, of which the first is clearly better beyond."""
    sides = zip(("rope", "alibi"), inside, beyond, curves, strict=True)
    return [scheme(*side, **more) for side in sides]


NOTHING = {"inside": (0.9, 0.4)}
ALL_FALL = {"curves": (FALLS, FALLS)}
CASES = [
    ({}, "", "Highest on average beyond them"),
    ({"inside": (0.96, 0.4)}, "", "Highest on average beyond them"),
    ({"curves": (FALLS, FLAT)}, "", "Highest on average beyond them"),
    (NOTHING, "unsolved", "No scheme solves the sizes trained on, so none is called better beyond them."),
    (ALL_FALL, "falling", "All losses still fell, so this compares speed of learning; train longer."),
    (
        NOTHING | ALL_FALL,
        "both",
        "No scheme solves the sizes trained on and all losses still fell, so this compares speed of learning; train"
        " longer.",
    ),
]


@pytest.mark.parametrize(("case", "hindrance", "said"), CASES)
def test_no_winner_is_named_where_none_learned_or_all_still_learn(case, hindrance, said):
    """The caption, the table for papers and the comparison over tasks name a winner, or none of them does."""
    results = made.results("a", pair(**case))
    text = claims.better(results, {})
    assert text.startswith(said) and ("above" in text) == (not hindrance)
    bold = {size for *_, size in tables._best(results, cells(results))}
    assert ({"24", "32"} <= bold) == (not hindrance)
    assert learned.hindrance(cells(results), losses.falling(results)) == hindrance


def test_each_task_has_its_own_sentence_where_they_differ():
    results = made.results("a", [*pair(), *pair(**NOTHING, task="sort"), *pair(**ALL_FALL, task="parity")])
    assert claims.better(results, {}) == (
        "Highest on average beyond them (rank-sum tests with Holm's correction): rope above 1 of 1, p = 0.0022 (copy)."
        " parity: all losses still fell, so this compares speed of learning; train longer."
        " sort: no scheme solves the sizes trained on, so none is called better beyond them."
    )
    assert claims.better(made.results("a", pair(**NOTHING, seeds=2)), {}).startswith("No scheme solves"), "of few runs"


@pytest.mark.parametrize(("share", "rows"), [(0.237, 1000), (0.242, 1000), (0.1, 1000), (0.242, 100)])
def test_a_share_is_clear_of_a_floor_by_three_standard_errors(share, rows):
    """At a floor of .2, over two sizes of 1,000 rows, three standard errors are 3 sqrt(.16 / 2000) = .0268."""
    results = made.results("a", pair(beyond=(share - 0.013, 0.1), rows=rows))
    rope, alibi = (next(c for c in cells(results) if c.scheme == name) for name in ("rope", "alibi"))
    task = results.tasks()["copy"]
    assert best_floor(task, [24, 32]) == ("position", 0.2)
    middle = share - 0.013 + 0.0025 / 2
    clear = middle > 0.2 + 3 * (0.2 * 0.8 / (2 * rows)) ** 0.5
    assert learned.at_floor(task, [rope], [24, 32]) != clear and learned.at_floor(task, [alibi], [24, 32])
    assert learned.at_floor(task, [rope, alibi], [24, 32]) != clear, "one of two is enough"


def test_the_best_below_a_floor_is_not_called_better():
    """Far below it, where a share is as far from the floor as one that is clear of it."""
    said = claims.better(made.results("a", pair(beyond=(0.15, 0.05), rows=10_000)), {})
    assert said.endswith("none (copy).")


@pytest.mark.parametrize(("share", "told"), [(0.2, True), (0.21, True), (0.15, True), (0.9, False)])
def test_a_first_group_at_its_baseline_is_told(share, told):
    """The best floor is 0.2; tuning trials tell it too."""
    for role in ({}, {"role": "tuning"}):
        trials = [made.trial("rope", "copy", s, {8: share, 16: share, 32: 0.1}, **role) for s in range(3)]
        found = learned.nothing_learned(made.typed(made.record("rope", "rotary", "copy", trials)))
        assert found == ((16, share, 0.2) if told else None)
