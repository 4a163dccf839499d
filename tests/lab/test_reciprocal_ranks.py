"""Mean reciprocal ranks, by hand."""

import pytest

from posenc.lab.results.evidence import Evidence
from posenc.lab.results.published import ALL
from posenc.lab.results.reciprocal_ranks import reciprocal_ranks
from posenc.lab.results.reproduction import NOT_RUN, UNINFORMATIVE
from posenc.lab.results.verdicts import findings
from tests.lab import made
from tests.lab.seen import Published
from tests.lab.test_false_agreements import record


def measured(tasks):
    """Task to scheme to one value per seed, the same at both sizes beyond the training range."""
    return made.results("x", [record(s, values, task) for task, row in tasks.items() for s, values in row.items()])


def test_reciprocal_ranks_are_averaged_over_tasks_and_equals_share_theirs():
    """By hand, seed 0: on copy a, b, c are first, second and third; on sort b is first, a and c share 2 and 3."""
    values = {"copy": {"a": (0.9,), "b": (0.8,), "c": (0.1,)}, "sort": {"a": (0.3,), "b": (0.7,), "c": (0.3,)}}
    expected = {"a": (1 + 1 / 2.5) / 2, "b": (1 / 2 + 1) / 2, "c": (1 / 3 + 1 / 2.5) / 2}
    for name, rank in expected.items():
        (found,) = findings([Published(ALL, name, round(rank, 4), "x", tolerance=0.0)], measured(values))
        assert found.ours.median == pytest.approx(rank) and found.ours.n == 1
    del values["sort"]["c"]
    (found,) = findings([Published(ALL, "c", 0.7, "x")], measured(values))
    assert found.verdict == NOT_RUN


def test_a_task_on_which_no_scheme_is_clear_of_its_floor_leaves_a_mean_rank():
    """On the dead task all are at zero, where each of three would have the rank 2."""
    live = {"a": (0.9,), "b": (0.8,), "c": (0.1,)}
    claim = Published(ALL, "a", 1.0, "x", tolerance=0.1)
    carried = Evidence(measured({"copy": live, "dead": dict.fromkeys(live, (0.0,))}))
    assert reciprocal_ranks(claim, carried) == {0: 1.0}
    (found,) = findings([claim], measured({"dead": dict.fromkeys(live, (0.0,))}))
    assert found.verdict == UNINFORMATIVE and "no task has a scheme clear of its baseline" in found.reason
