"""`posenc reproduce`: every experiment file, its claims beside what is recorded, and a verdict."""

import json
from pathlib import Path

import pytest

import posenc as package
from posenc.lab.results.reproduction import VERDICTS
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
    Published("copy", "rope", 0.74, "their table", runs=3, seen="paper"),
    Published("copy", "alibi", 0.9, "their table", seen="copy"),
    Published("copy", "t5", 0.9, "their table", seen="copy"),
    Order("copy", "rope", "alibi", "their text", seen="memory"),
    Order("copy", "rope", "nope", "because it turns", origin="ours"),
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


def flowing(said):
    return " ".join(said.out.split())


def rows(said):
    assert said.code == 0
    (only,) = json.loads(said.out)["experiments"]
    return only["rows"]


def test_each_claim_has_a_value_of_ours_an_n_and_a_verdict(posenc, carried):
    """Rope is 0.8 - s/100 at size 24 and 0.7 - s/100 at 32: in the mean 0.75, 0.74, 0.73."""
    first, second, third, order, ours = rows(posenc("reproduce", "carried", "--json"))
    assert (first["value"], first["verdict"], first["ours"]["n"], first["origin"]) == (0.74, "agrees", 3, "published")
    assert first["reason"] == "" and second["reason"].endswith("rejected by 6; our runs are 0.36 below 0.90")
    assert (first["ours"]["low"], first["ours"]["median"], first["ours"]["high"]) == pytest.approx((0.73, 0.74, 0.75))
    assert (second["verdict"], second["cause"], second["needs"]) == ("open", "few", 6)
    assert second["ours"]["median"] == pytest.approx(0.54)
    assert third["verdict"] == "not run" and third["ours"] is None
    assert first["ours"]["best"] is first["ours"]["best_of"] is None, "nobody spoke of a best"
    assert (order["kind"], order["verdict"], order["needs"], order["p"]) == ("order", "open", 6, None)
    assert order["ours"]["median"] == pytest.approx(0.2) and order["reason"].startswith("n too small: 3 pairs")
    assert (ours["origin"], ours["verdict"], ours["source"]) == ("ours", "not run", "because it turns")


def test_the_page_shows_the_same(posenc, carried):
    said = posenc("reproduce", "carried")
    assert said.code == 0 and said.err == ""
    assert "0.740 [0.730–0.750]" in said.out and "0.740 (median of 3) ±0.02" in said.out
    assert "copy, rope above alibi" in said.out and "their text" in said.out and "Setting: smaller." in said.out
    assert all(len(line) <= 100 for line in said.out.splitlines()) and "\nagrees: copy, rope 0.740" in said.out
    counts = "{} agrees, 0 differs, {} open, 0 both at a baseline, 0 uninformative, 1 not run, 0 not attempted."
    assert f"Published claims: 4; {counts.format(1, 2)}" in flowing(said) and "open: too few runs" in said.out
    assert f"(predictions and arithmetic): 1; {counts.format(0, 0)}" in flowing(said)
    assert "Open: 2 too few runs." in said.out and "Orders tested" not in said.out
    assert "Published values at a baseline (†): 0; at 0 of them ours is at a baseline too." in said.out


def test_claims_of_one_fact_are_counted_once_and_orders_by_chance_are_told(posenc, carried):
    seeds = range(6)
    filled = made.filled("six", [made.rope(seeds), made.rope(seeds, label="alibi", family="linear", drop=0.3)])
    store.bundle(filled, carried / "records" / "carried.json")
    old = 'Order("copy", "rope", "alibi", "their text", seen="memory"),'
    twice = "\n".join(f'Order("copy", "rope", "alibi", "{s}", seen="memory", fact="ahead"),' for s in ("text", "b"))
    (carried / "carried.py").write_text(FILE.replace(old, twice))
    page = flowing(posenc("reproduce", "carried"))
    assert "Published claims: 5, counted as 4; 2 agrees, 1 differs," in page
    assert "Orders tested, with 6 pairs of runs or more: 2, of which 2 decided." in page
    assert "chance would decide 0.1 of them (each with p = 0.031 at 6 pairs)" in page
    found = json.loads(posenc("reproduce", "carried", "--json").out)
    assert found["orders"] == {"tested": 2, "decided": 2, "by_chance": pytest.approx(0.0625)}
    assert found["verdicts"]["published"]["agrees"] == 2


def test_what_is_too_dear_to_run_here_is_not_counted_as_not_run(posenc, carried):
    (carried / "pending.py").write_text(FILE.replace("Result: not run.", "Result: not attempted here, for its cost."))
    named = flowing(posenc("reproduce", "pending"))
    assert "not attempted: cost" in named and "0 not run, 4 not attempted." in named


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"their text"', '""', "has no source; give the publication as source."),
        (', seen="memory"', "", "does not say where it was seen; give seen='paper' or"),
    ],
)
def test_a_published_claim_without_source_or_place_is_refused(posenc, carried, old, new, says):
    (carried / "carried.py").write_text(FILE.replace(old, new))
    for command in ("reproduce", "describe"):
        said = posenc(command, "carried")
        assert f"The claim of 'rope' above 'alibi' on 'copy' {says}" in said.err
        assert len(said.err.strip().splitlines()) == 1 and "Traceback" not in said.err
    assert said.code == 2


def test_a_best_of_several_runs_stands_beside_our_median_range_and_best(posenc, carried):
    """Of two sizes both rules give the plain mean: 0.75, 0.74, 0.73."""
    old = 'Published("copy", "alibi", 0.9, "their table"'
    new = 'Published("copy", "rope", 0.76, "their best", of="best", runs=30, weights="trapezoid"'
    (carried / "carried.py").write_text(FILE.replace(old, new))
    row = rows(posenc("reproduce", "carried", "--json"))[1]
    assert (row["of"], row["runs"], row["weights"], row["verdict"]) == ("best", 30, "trapezoid", "agrees")
    assert row["origin"] == "published"
    ours = row["ours"]
    assert (ours["low"], ours["median"], ours["high"], ours["best"]) == pytest.approx((0.73, 0.74, 0.75, 0.75))
    assert (ours["n"], ours["best_of"], ours["kind"]) == (3, 3, "range")
    page = posenc("reproduce", "carried").out
    assert "0.740 [0.730–0.750], best of 3: 0.750" in page and "0.760 (best of 30) ±0.02" in page
    legend = posenc("reproduce", "--legend").out
    assert "accuracy, beyond, trapezoid" in page and "weighted by the trapezoid rule" in legend
    assert max(map(len, legend.splitlines())) <= 100


@pytest.mark.ci
def test_an_experiment_without_a_record_is_one_line_unless_it_is_named(posenc, carried):
    whole, named = posenc("reproduce"), posenc("reproduce", "pending")
    assert "not run: 5 claims; posenc sweep experiments/pending.py. Cost: a minute." in whole.out
    assert named.out.count("not run") >= 5 and "their table" in named.out


@pytest.mark.ci
def test_every_experiment_of_the_checkout_is_there(posenc):
    found = json.loads(posenc("reproduce", "--json").out)
    files = {p.stem for p in (Path(package.__file__).parent.parent / "experiments").glob("*.py")}
    assert {one["name"] for one in found["experiments"]} == files and len(files) >= 13
    for one in found["experiments"]:
        assert one["claim"] and one["source"] and isinstance(one["recorded"], bool)
        for row in one["rows"]:
            assert row["verdict"] in VERDICTS and row["source"]
            assert row["seen"] in (("paper", "copy", "memory") if row["origin"] == "published" else (None,))
            without = row["verdict"] in ("not run", "not attempted")
            assert without <= (row["ours"] is None) and (one["recorded"] or without)
            assert bool(row["reason"]) == bool(row["cause"]) == (row["verdict"] != "agrees")
    assert "sign test" in found["test"]
    assert all(n > 0 for n in found["seen"].values()) and list(found["seen"]) == ["paper", "copy", "memory"]
    rows = [row for one in found["experiments"] for row in one["rows"]]
    for origin, counts in found["verdicts"].items():
        assert 20 < sum(counts.values()) <= sum(row["origin"] == origin for row in rows)
    assert {row["origin"] for row in rows} == set(found["verdicts"]) and len(rows) > 200


def test_a_file_is_named_by_its_path_too(posenc, carried):
    assert rows(posenc("reproduce", "experiments/carried.py", "--json"))[0]["verdict"] == "agrees"


def test_an_unknown_experiment_is_refused_with_the_nearest(refuse, carried):
    assert "Did you mean 'carried'?" in refuse("reproduce", "carred")


@pytest.mark.ci
def test_a_broken_file_is_told_and_the_others_stand(posenc, carried):
    (carried / "broken.py").write_text("import nowhere_at_all\n")
    said = posenc("reproduce")
    assert said.code == 0 and "nowhere_at_all" in said.err and "carried: Rope carries" in said.out


def test_a_damaged_record_is_told(posenc, carried):
    path = carried / "records" / "carried.json"
    path.write_text(path.read_text().replace('"correct":800', '"correct":801', 1))
    said = posenc("reproduce", "carried")
    assert said.code == 0 and "checksum" in said.err and "not run" in said.out
