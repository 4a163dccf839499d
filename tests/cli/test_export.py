"""`posenc export`: every number of a run as rows, its losses, or all its records as one file."""

import csv
import io
import json

from tests.lab import made


def test_an_export_has_one_line_per_trial_size_and_metric(posenc, refuse, runs):
    rows = list(csv.DictReader(io.StringIO(posenc("export", "mine", "--metric", "accuracy").out)))
    trials = [row for row in rows if row["outcome"] == "done" and row["part"] == "test"]
    assert len(trials) == 18 * 4 and {row["scheme"] for row in trials} == {"rope", "alibi"}
    assert len(json.loads(posenc("export", "mine", "--metric", "accuracy", "--format", "json").out)) == len(rows)
    assert {row["tuning"] for row in rows} == {"False"}
    assert {(float(row["final_loss"]), round(float(row["final_fall"]), 9)) for row in trials} == {(0.5, 0.5)}
    every = list(csv.DictReader(io.StringIO(posenc("export", "mine").out)))
    assert {row["metric"] for row in every} > {"accuracy"} and len(every) > len(rows)
    assert "'nats'" in refuse("export", "mine", "--metric", "nats")


def test_an_export_of_curves_has_one_row_per_trial_and_point(posenc, refuse, runs):
    rows = list(csv.DictReader(io.StringIO(posenc("export", "mine", "--what", "curves").out)))
    assert len(rows) == 2 * 18 and rows[0]["step"] == "5" and float(rows[0]["loss"]) == 1.0
    assert {(row["step"], row["loss"]) for row in rows} == {("5", "1.0"), ("10", "0.5")}
    assert len(json.loads(posenc("export", "mine", "--what", "curves", "--json").out)) == len(rows)
    assert "so leave --metric out" in refuse("export", "mine", "--what", "curves", "--metric", "last")
    made.filled("none", [{**(rec := made.rope()), "trials": [{**t, "curve": {}} for t in rec["trials"]]}])
    assert "hold no loss along training; export its sizes" in refuse("export", "none", "--what", "curves")


def fill_lossy(**task):
    """A run whose loss is half a nat at every size."""
    lossy = made.rope()
    lossy["task"] |= task
    for trial in lossy["trials"]:
        for counts in trial["evaluations"].values():
            counts["nats"] = 512 * counts["scored"]
    made.filled("lossy", [lossy])


def test_a_loss_has_figures_of_its_own_and_no_others(posenc, refuse, runs, tmp_path):
    sentence = refuse("plot", "mine", "--metric", "nats", "--figure", "heatmap")
    assert "nats is a loss, and --figure heatmap shows what is right; take length, place" in sentence
    fill_lossy()
    assert posenc("plot", "lossy", "--metric", "nats", "-o", "figures").code == 0
    assert "loss (nats) (up)" in (tmp_path / "figures" / "length.caption.txt").read_text()
    assert "0.50" in posenc("table", "lossy", "--metric", "nats").out
    assert "0.72" in posenc("table", "lossy", "--metric", "bits").out


def test_results_that_are_read_by_a_loss_are_drawn_by_it(posenc, refuse, tmp_path):
    fill_lossy(read_by="bits")
    assert "0.72" in posenc("table", "lossy").out
    sentence = refuse("plot", "lossy", "--figure", "heatmap")
    assert "bits is a loss, and --figure heatmap shows what is right" in sentence
    assert posenc("plot", "lossy", "--figure", "length", "-o", "figures").code == 0
    assert "loss (bits) (up)" in (tmp_path / "figures" / "length.caption.txt").read_text()


def test_an_export_goes_to_a_file(posenc, refuse, runs, tmp_path):
    for name, more in {"mine.csv": [], "mine.json": [], "named.json": ["--json"]}.items():
        said = posenc("export", "mine", *more, "-o", name)
        assert (said.code, said.out) == (0, f"{name}\n")
        assert (tmp_path / name).read_text() == posenc("export", "mine", "--format", name.partition(".")[2]).out
    for words, why in {
        ("-o", "x.csv", "--json"): "does not end in .json",
        ("-o", "no/x.csv"): "in an existing folder",
        ("-o", "x.txt"): "use a file name with .csv, .json or .parquet",
        ("-o", "x.csv", "--bundle", "y.json"): "give one of them",
    }.items():
        assert why in refuse("export", "mine", *words)


def test_a_bundle_is_read_in_place_of_its_run(posenc, runs):
    assert posenc("export", "mine", "--bundle", "mine.json").code == 0
    assert posenc("table", "mine.json").out == posenc("table", "mine").out
    assert posenc("export", "mine.json", "--bundle", "again.json").code == 2


def test_an_export_starts_no_formula(posenc):
    made.filled("evil", [made.rope(task="=cmd()")])
    assert "\n'=cmd()," in posenc("export", "evil").out
