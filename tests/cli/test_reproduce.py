"""`posenc reproduce`: every experiment file, what was published beside what is recorded, and a verdict; without jax."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import posenc as package
from posenc.lab.results.published import VERDICTS
from posenc.lab.store import folder as store
from tests.lab import made

FILE = '''"""Rope carries copies farther than ALiBi.

Source: someone (2020).
Setting: smaller.
Cost: a minute.
Command: posenc sweep experiments/carried.py
Variation: none.
Result: not run.
"""
from posenc.lab.spec.experiment import grid
from posenc.lab.results.published import Order, Published
from posenc.lab.spec.run import Run
published = [
    Published("copy", "rope", 0.74, "their table", runs=3),
    Published("copy", "alibi", 0.9, "their table"),
    Published("copy", "t5", 0.9, "their table"),
    Order("copy", "rope", "alibi", "their text"),
]
def runs():
    return grid(Run(), scheme=["rope", "alibi"])
'''


@pytest.fixture
def carried(posenc, tmp_path):
    """An experiment here with a committed record: rope at 0.75 and 0.05 on either side of it, alibi 0.2 below."""
    folder = tmp_path / "experiments"
    folder.mkdir()
    (folder / "carried.py").write_text(FILE)
    (folder / "pending.py").write_text(FILE)
    filled = made.filled("mine", [made.rope(), made.rope(label="alibi", family="linear", drop=0.3)])
    store.bundle(filled, folder / "records" / "carried.json")
    return folder


def rows(said):
    assert said.code == 0
    (only,) = json.loads(said.out)["experiments"]
    return only["rows"]


def test_each_claim_has_a_value_of_ours_an_n_and_a_verdict(posenc, carried):
    """Rope is 0.8 - s/100 at size 24 and 0.7 - s/100 at 32: in the mean 0.75, 0.74, 0.73."""
    first, second, third, order = rows(posenc("reproduce", "carried", "--json"))
    assert (first["value"], first["verdict"], first["ours"]["n"]) == (0.74, "agrees", 3)
    assert (first["ours"]["low"], first["ours"]["median"], first["ours"]["high"]) == pytest.approx((0.73, 0.74, 0.75))
    assert second["verdict"] == "differs" and second["ours"]["median"] == pytest.approx(0.54)
    assert third["verdict"] == "not run" and third["ours"] is None
    assert first["ours"]["best"] is first["ours"]["best_of"] is None, "nobody spoke of a best"
    assert (order["kind"], order["verdict"]) == ("order", "agrees")
    assert order["ours"]["median"] == pytest.approx(0.2)


def test_the_page_shows_the_same(posenc, carried):
    said = posenc("reproduce", "carried")
    assert said.code == 0 and said.err == ""
    assert "0.740 [0.730–0.750]" in said.out and "0.740 (median of 3) ±0.02" in said.out
    assert "rope over alibi" in said.out and "their text" in said.out and "Setting: smaller." in said.out
    assert "Claims, in all: 4; 2 agrees, 1 differs, 0 open, 1 not run. Published values at a floor (†): 0." in said.out
    assert "agrees: the interval, widened by the tolerance" in said.out.replace("\n", " ")


def test_a_best_of_several_runs_stands_beside_our_median_range_and_best(posenc, carried):
    """Of two sizes both rules give the plain mean: 0.75, 0.74, 0.73."""
    old, new = 'Published("copy", "alibi", 0.9, "their table")', '{}, of="best", runs=30, weights="trapezoid")'
    (carried / "carried.py").write_text(FILE.replace(old, new.format('Published("copy", "rope", 0.76, "their best"')))
    row = rows(posenc("reproduce", "carried", "--json"))[1]
    assert (row["of"], row["runs"], row["weights"], row["verdict"]) == ("best", 30, "trapezoid", "agrees")
    ours = row["ours"]
    assert (ours["low"], ours["median"], ours["high"], ours["best"]) == pytest.approx((0.73, 0.74, 0.75, 0.75))
    assert (ours["n"], ours["best_of"], ours["kind"]) == (3, 3, "range")
    page = posenc("reproduce", "carried").out
    assert "0.740 [0.730–0.750], best of 3: 0.750" in page and "0.760 (best of 30) ±0.02" in page
    assert "accuracy, beyond, trapezoid" in page and "weighted by the trapezoid rule" in page


def test_an_experiment_without_a_record_is_one_line_unless_it_is_named(posenc, carried):
    whole, named = posenc("reproduce"), posenc("reproduce", "pending")
    assert "not run: 4 claims; posenc sweep experiments/pending.py. Cost: a minute." in whole.out
    assert named.out.count("not run") >= 5 and "their table" in named.out


def test_every_experiment_of_the_checkout_is_there(posenc):
    found = json.loads(posenc("reproduce", "--json").out)
    files = {p.stem for p in (Path(package.__file__).parent.parent / "experiments").glob("*.py")}
    assert {one["name"] for one in found["experiments"]} == files and len(files) >= 13
    for one in found["experiments"]:
        assert one["claim"] and one["source"] and isinstance(one["recorded"], bool)
        for row in one["rows"]:
            assert row["verdict"] in VERDICTS and row["source"]
            assert (row["ours"] is None) == (row["verdict"] == "not run")
            assert one["recorded"] or row["verdict"] == "not run"
    assert sum(found["verdicts"].values()) == sum(len(one["rows"]) for one in found["experiments"]) > 200


def test_a_file_is_named_by_its_path_too(posenc, carried):
    assert rows(posenc("reproduce", "experiments/carried.py", "--json"))[0]["verdict"] == "agrees"


def test_an_unknown_experiment_is_refused_with_the_nearest(posenc, carried):
    said = posenc("reproduce", "carred")
    assert said.code == 2 and "Did you mean 'carried'?" in said.err and said.out == ""


def test_a_broken_file_is_told_and_the_others_stand(posenc, carried):
    (carried / "broken.py").write_text("import nowhere_at_all\n")
    said = posenc("reproduce")
    assert said.code == 0 and "nowhere_at_all" in said.err and "carried: Rope carries" in said.out


def test_a_damaged_record_is_told(posenc, carried):
    path = carried / "records" / "carried.json"
    path.write_text(path.read_text().replace('"correct":800', '"correct":801', 1))
    said = posenc("reproduce", "carried")
    assert said.code == 0 and "checksum" in said.err and "not run" in said.out


def test_it_needs_no_jax(tmp_path):
    program = (
        "import sys; from posenc.lab.cli import main; code = main(['reproduce']); print(code, 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "0 False", done.stderr
