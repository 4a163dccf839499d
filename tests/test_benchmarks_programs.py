"""The benchmark of programs: what is counted as a scheme's and what as a task's. No clock judges here."""

import pytest

from benchmarks import programs as benchmark

TINY = {"width": 8, "heads": 2, "depth": 1, "hidden": 8, "batch": 4, "length": 4, "buckets": 1}


@pytest.mark.ci
def test_a_further_task_adds_none_of_the_programs_of_a_scheme():
    first = benchmark.compiled([benchmark.cell("nope", "even_pairs", **TINY)])
    second = benchmark.compiled([benchmark.cell("nope", "parity_check", **TINY)])
    assert {*benchmark.OF_SCHEME, "make_batches"} <= first.keys()
    assert "make_batches" in second and not second.keys() & {*benchmark.OF_SCHEME}
