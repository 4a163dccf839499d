"""`posenc bench`: which kernels it times, what it says of the others, and what it refuses."""

import pytest

from posenc.lab.train import bench


@pytest.mark.ci
def test_memory_is_known_without_a_run():
    (row,) = bench.measure("rope", 16, 2, 4, rounds=1, passes=["both"], kernels=["tiled"])
    assert bench.scratch("rope", 16, "tiled", "both", 2, 4) == row.scratch > 0


def test_rounds_that_differ_by_half_are_marked():
    row = bench.Measured("rope", 16, "dense", "both", True, (1.0, 1.4), 0, 0.5)
    assert [row._replace(seconds=s).marks for s in ((), (1.0, 1.4), (1.0, 1.6))] == ["", "", "noisy"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nosuch"], "'nosuch'"),
        (["--length", "0"], "--length"),
        (["--dtype", "float16"], "Expected one of ('float32', 'bfloat16')"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_sentence(refuse, words, says):
    assert says in refuse("bench", *words)
