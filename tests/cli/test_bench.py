"""`posenc bench`: which kernels it times, what it says of the others, and what it refuses."""

import json

import pytest

from posenc.lab.train import bench


@pytest.mark.nightly  # test_benchmarks_tasks.py times programs, and test_equal runs every kernel
def test_every_kernel_that_serves_is_timed_and_the_choice_of_auto_is_marked(posenc):
    said = posenc(
        "bench", "rope", "stick_breaking", "--length", "16", "--heads", "2", "--head", "4", "--rounds", "2", "--json"
    )
    found = json.loads(said.out)
    timed = {(r["scheme"], r["kernel"], r["passes"]) for r in found["rows"]}
    of = {"rope": ("dense", "tiled", "rows"), "stick_breaking": ("dense", "rows")}
    assert timed == {(s, k, p) for s, kernels in of.items() for k in kernels for p in ("forward", "both")}
    assert {r["kernel"] for r in found["rows"] if r["auto"]} == {"dense"}
    assert all(len(r["seconds"]) == 2 and r["median"] > 0 and r["of_peak"] > 0 for r in found["rows"])
    assert list(found["refused"]["stick_breaking"]) == ["tiled"] and not found["refused"]["rope"]
    assert "jax" in found["machine"]


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
        (["nosuch"], "No scheme is called 'nosuch'"),
        (["--length", "0"], "--length is (0,); it must be a whole number of at least 1"),
        (["--dtype", "float16"], "Expected one of ('float32', 'bfloat16')"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_sentence(posenc, words, says):
    said = posenc("bench", *words)
    assert said.code == 2 and says in said.err and "Traceback" not in said.err
