"""The benchmark of programs: what is counted as a scheme's and what as a task's. No clock judges here."""

import pytest

from benchmarks import programs as benchmark

TINY = {"width": 8, "heads": 2, "depth": 1, "hidden": 8, "batch": 4, "length": 4, "buckets": 1}


def test_schemes_and_tasks_add_up_where_pairs_would_multiply():
    parts = benchmark.Parts(scheme=6.0, tasks=15.0, alone=150.0)
    assert parts.ratio(12) == pytest.approx((12 * 6 + 15) / (12 * 150))


@pytest.mark.ci
def test_a_further_task_adds_none_of_the_programs_of_a_scheme():
    first = benchmark.compiled([benchmark.cell("nope", "even_pairs", **TINY)])
    second = benchmark.compiled([benchmark.cell("nope", "parity_check", **TINY)])
    assert {*benchmark.OF_SCHEME, "make_batches"} <= first.keys()
    assert "make_batches" in second and not second.keys() & {*benchmark.OF_SCHEME}
