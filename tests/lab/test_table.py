"""The table: every number of the records is a line, and `reported` marks what tables report."""

import sys

import numpy as np
import pandas
import pytest

import posenc
from posenc.lab import metrics
from posenc.lab.results import results as reading
from posenc.lab.results.statistics import cells
from posenc.lab.results.table import COUNTED, METRICS, floors_by, load, table
from posenc.lab.spec import committed
from posenc.lab.store import folder as store
from tests.lab import made

RECORDS = committed.folders()[0] / "records"
ASKED = "task scheme model label family trial seed lr steps outcome part size metric value n tuning reported".split()


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    """Run folders of each test alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POSENC_RUNS", str(tmp_path / "runs"))


@pytest.fixture
def tuned(runs):
    """A run with a setting that a second scheme lacks, a trial that diverged and one that chose a rate."""
    rope, alibi = made.rope(range(3)), made.rope(range(3), label="alibi", family="linear")
    rope["run"] |= {"depth": 2, "revisions": {"RoPE": 1}}
    alibi["run"] |= {"depth": 4}
    alibi["trials"].append(made.trial("alibi", "copy", 7, {}, outcome="diverged"))
    alibi["trials"].append(made.trial("alibi", "copy", 8, {8: 0.5, 16: 0.25}, lr=3e-3, role="tuning"))
    return made.filled("mine", [rope, alibi])


def counts_of(bundle):
    for record, trial in reading.load(RECORDS / bundle).recorded_trials():
        for part, evaluations in (("test", trial.evaluations), ("validation", trial.validation or {})):
            for size, counts in evaluations.items():
                yield record.task.label, trial.id, part, size, counts


@pytest.mark.parametrize("bundle", ["length.json", "copying.json", "recall.json", "language_control.json.gz"])
def test_every_count_of_a_record_is_a_line(bundle):
    found = load(RECORDS / bundle)
    assert {*ASKED} <= {*found.columns}
    of_trials = found[found.outcome == "done"].set_index(["trial", "part", "size", "metric"])
    assert of_trials.index.is_unique
    expected = {}
    for _, trial, part, size, counts in counts_of(bundle):
        for metric, (right, total) in COUNTED.items():
            if right in counts and counts.get(total):
                unit = metrics.PARTS * metrics.LOSSES[metric] if metric in metrics.LOSSES else 1
                expected[trial, part, size, metric] = counts[right] / counts[total] / unit, counts["rows"]
    values = {key: (row.value, row.n) for key, row in of_trials.iterrows()}
    assert values.keys() == expected.keys()
    np.testing.assert_allclose([values[key] for key in expected], [*expected.values()], rtol=1e-12)


@pytest.mark.parametrize("bundle", ["norms.json", "base.json", "text.json.gz"])
def test_medians_of_what_is_reported_and_shown_are_the_cells(bundle):
    found = load(RECORDS / bundle)
    shown = found[found.reported & found.shown & (found.part == "test") & (found.outcome != "baseline")]
    per_seed = shown.groupby(["task", "label", "size", "seed"]).value.median()
    middle = per_seed.groupby(["task", "label", "size"]).median().to_dict()
    expected = {
        (cell.task, cell.scheme, size): float(np.median(values))
        for cell in cells(reading.load(RECORDS / bundle).shown())
        for size, values in cell.values.items()
        if values
    }
    assert middle == pytest.approx(expected)


def test_baselines_are_lines_and_a_diverged_trial_scores_as_the_uniform_one(tuned):
    found = load(tuned)
    guess = found[(found.scheme == "uniform") & (found.metric == "accuracy")].set_index("size").value
    assert guess.to_dict() == {size: made.FLOORS["uniform"] for size in made.SIZES}
    lost = found[(found.outcome == "diverged") & (found.metric == "accuracy")].set_index("size")
    assert lost.value.to_dict() == guess.to_dict() and not lost.n.any()
    (task,) = reading.load(tuned).tasks().values()
    assert floors_by(task, "accuracy") == floors_by(task, "token")


def test_settings_that_differ_are_columns_and_the_others_are_attributes(tuned):
    found = load(tuned)
    assert found[found.scheme == "rope"].depth.unique().tolist() == [2] and "width" not in found
    assert found.attrs["settings"]["width"] == 64 and found.attrs["settings"]["revisions.RoPE"] == 1
    assert found.attrs["name"] == "mine" and found.attrs["problems"] == [] and found.attrs["unreadable"] == 0
    assert {*found[found.tuning].trial} == {t.id for _, t in reading.load(tuned).recorded_trials() if t.tuning}
    assert not (found.tuning & found.reported).any()
    assert found[found["size"] == 16].trained.all() and not found[found["size"] == 24].trained.any()


def test_bins_have_the_sums_of_the_record():
    found = load(RECORDS / "base.json", bins=True)
    record, trial = reading.load(RECORDS / "base.json").recorded_trials()[0]
    size, sums = next(iter(trial.places.items()))
    about = record.task.places[size]
    lines = found[(found.trial == trial.id) & (found["size"] == size) & found.bin.notna()].set_index(["metric", "bin"])
    for k, (right, many) in enumerate(zip(sums["right"], about["scored"], strict=True)):
        if many:
            assert lines.value["accuracy", k * about["width"]] == right / many
    assert len(load(RECORDS / "base.json")) == found.bin.isna().sum()


def test_a_damaged_record_is_named_skipped_and_counted(tuned):
    path = min((tuned / "records").glob("*"))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.warns(UserWarning, match=path.name[:8]):
        found = load(tuned)
    assert found.attrs["unreadable"] == 1 and len(found.attrs["problems"]) >= 1


def test_without_pandas_one_sentence_says_what_to_install(tuned, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match=r"pip install 'posenc\[lab\]'"):
        load(tuned)


def test_an_empty_run_is_an_empty_table():
    folder = store.create("empty")
    made.write_plan(folder, made.plan(made.rope(), "g0"))
    assert len(load("empty")) == 0 and {*ASKED} <= {*load("empty").columns}


def test_an_experiment_is_loaded_by_its_name():
    """It is read by the metric of its table: accuracy, where of a text the last token would tell most."""
    found, record = load("length"), load(RECORDS / "length.json")
    pandas.testing.assert_frame_equal(found.drop(columns="shown"), record.drop(columns="shown"))
    assert {*found[found.shown].metric} == {"accuracy"} and {*record[record.shown].metric} == {"last"}
    pandas.testing.assert_frame_equal(load(RECORDS.parent / "length.py"), found)


def test_ranges_and_what_diverged_are_those_of_each_run():
    """Runs of 16 and of 24: what one was trained on another was not, and each diverges at the sizes of its own."""
    records = made.ranged((4, 16), (4, 24))
    for n, record in enumerate(records):
        record["trials"].append(made.trial("rope", "copy", 9 + n, {}, outcome="diverged"))
        record["task"]["floors"] = {size: made.FLOORS for size in ("8", "16", "24", "32")[: 3 + n]}
    found = load(made.filled("a", records))
    at = found[(found["size"] == 24) & (found.outcome == "done")]
    assert {*zip(at.length, at.trained, strict=True)} == {(16, False), (24, True)}
    lost = found[(found.outcome == "diverged") & (found.metric == "exact")]
    assert {*zip(lost.length, lost["size"], lost.value, strict=True)} >= {(24, 32, 0.0), (16, 24, 0.0)}
    assert len(lost[(lost.length == 24)]) == 4 and not lost.value.any(), "no baseline is known of whole answers"


def test_bins_are_no_numbers_of_tables():
    found = load(RECORDS / "text.json.gz", bins=True)
    assert not (found.shown & found.bin.notna()).any() and found.shown.any()


def test_it_is_what_posenc_load_gives():
    assert posenc.load is load and isinstance(table(reading.load(RECORDS / "length.json")), pandas.DataFrame)
    assert [*METRICS] == [*COUNTED]
