"""Results as data of other programs: frames, Parquet and event files hold what the records hold."""

import importlib.util
import io
import math
import sys
from pathlib import Path

import pytest

from posenc.lab.figures.exports import as_parquet
from posenc.lab.results import frame
from posenc.lab.results.results import load
from tests.lab import made

HAS = {
    name: importlib.util.find_spec(name) is not None
    for name in ("pandas", "polars", "pyarrow", "tensorboardX", "tensorboard")
}
needs = {name: pytest.mark.skipif(not has, reason=f"{name} is not installed") for name, has in HAS.items()}


@pytest.fixture
def tuned(posenc):
    """A run with a setting that a second scheme lacks, a trial that diverged and one that chose a rate."""
    rope, alibi = made.rope(range(3)), made.rope(range(3), label="alibi", family="linear")
    rope["run"] |= {"depth": 2, "revisions": {"RoPE": 1}}
    alibi["trials"].append(made.trial("alibi", "copy", 7, {}, outcome="diverged"))
    alibi["trials"].append(made.trial("alibi", "copy", 8, {8: 0.5, 16: 0.25}, lr=3e-3, role="tuning"))
    return made.filled("mine", [rope, alibi])


def test_every_trial_and_size_is_a_row_with_every_setting(tuned):
    results = load(tuned)
    rows = frame.flat(results)
    assert len(rows) == len(results.rows()) + len(results.tuning_rows()) == 3 * 4 + 3 * 4 + 4 + 2
    assert len({tuple(row) for row in rows}) == 1 and len({(row["trial"], row["size"]) for row in rows}) == len(rows)
    for record in (*results.records, *results.tuning):
        for trial in record.trials:
            for row in (row for row in rows if row["trial"] == trial.id):
                assert row["seed"] == trial.knobs.seed and row["clip"] == trial.knobs.clip
                assert row["run.scheme"] == record.run["scheme"] and row["width"] == record.run["width"]
                assert row["depth"] == record.run.get("depth") and row["tuning"] == (trial.role == "tuning")
                assert row["revisions.RoPE"] == record.run.get("revisions", {}).get("RoPE")
                if trial.outcome == "done":
                    counts = trial.evaluations[row["size"]]
                    assert row["value"] == counts["correct"] / counts["total"] and row["final_loss"] == 0.5


@pytest.mark.parametrize("library", [pytest.param(name, marks=needs[name]) for name in frame.LIBRARIES])
def test_a_frame_is_a_table_of_its_library(tuned, library):
    results = load(tuned)
    table = results.frame(library)
    assert type(table).__module__.startswith(library)
    assert list(table.columns) == list(frame.flat(results)[0]) and len(table) == len(frame.flat(results))
    rows = table.to_dicts() if library == "polars" else table.to_dict("records")
    rope = [row for row in rows if row["scheme"].startswith("rope") and row["size"] == 32]
    assert rope[1]["value"] == pytest.approx(0.69) and {row["depth"] for row in rope} == {2}


def test_a_frame_without_either_library_says_what_to_install(tuned, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="needs pandas or polars, and neither is installed; pip install pandas"):
        load(tuned).frame()
    with pytest.raises(ValueError, match="needs polars, which is not installed; pip install polars"):
        load(tuned).frame("polars")
    with pytest.raises(ValueError, match="was given 'numpy'; take 'pandas' or 'polars'"):
        load(tuned).frame("numpy")
    with pytest.raises(ValueError, match="need pyarrow; pip install pyarrow"):
        as_parquet([{"a": 1}])


@needs["pyarrow"]
def test_a_parquet_file_holds_the_rows(posenc, tuned):
    from pyarrow import parquet

    same = lambda a, b: a == b or a != a and b != b  # noqa: E731
    said = posenc("export", "mine", "-o", "mine.parquet", "--metric", "accuracy")
    assert (said.code, said.out) == (0, "mine.parquet\n"), said.err
    rows, table = frame.flat(load(tuned)), parquet.read_table("mine.parquet").to_pylist()
    assert len(rows) == len(table) and [*rows[0]] == [*table[0]]
    assert all(same(a[k], b[k]) for a, b in zip(rows, table, strict=True) for k in a)
    assert posenc("export", "mine", "-o", "curves.parquet", "--what", "curves").code == 0
    points = parquet.read_table("curves.parquet").to_pylist()
    assert {(row["step"], row["loss"]) for row in points} == {(5, 1.0), (10, 0.5)} and len(points) == 16


@needs["pyarrow"]
def test_a_column_of_texts_and_numbers_is_of_texts():
    from pyarrow import parquet

    rows = [{"a": 1, "b": 1, "c": [1], "d": None}, {"a": "x", "b": 0.5, "c": [2], "d": math.nan}]
    table = parquet.read_table(io.BytesIO(as_parquet(rows))).to_pydict()
    assert table["a"] == ["1", "x"] and table["b"] == [1.0, 0.5] and table["c"] == ["[1]", "[2]"]
    assert table["d"][0] is None and math.isnan(table["d"][1])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--format", "parquet"), "give --out NAME.parquet too"),
        (("--format", "parquet", "-o", "x.csv"), "does not end in .parquet"),
        (("--format", "tensorboard"), "give --out FOLDER"),
        (("--format", "tensorboard", "-o", "e", "--json"), "leave --json and --what out"),
        (("--format", "tensorboard", "-o", "full"), "exists and is not empty"),
    ],
)
def test_a_format_is_refused_in_one_sentence(refuse, tuned, monkeypatch, words, why):
    monkeypatch.setattr("posenc.lab.figures.exports.importlib.util.find_spec", lambda name: True)
    Path("full").mkdir()
    (Path("full") / "mine.txt").write_text("mine")
    assert why in refuse("export", "mine", *words)


def test_event_files_need_their_library(refuse, tuned, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.setattr("posenc.lab.figures.exports.importlib.util.find_spec", lambda name: None)
    assert "pip install 'posenc[tensorboard]'" in refuse("export", "mine", "--format", "tensorboard", "-o", "events")
    assert not Path("events").exists()


@needs["tensorboardX"]
@needs["tensorboard"]
@pytest.mark.filterwarnings("ignore")
def test_tensorboard_reads_losses_and_evaluations(posenc, tuned):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    results = load(tuned)
    said = posenc("export", "mine", "--format", "tensorboard", "-o", "events", "--metric", "accuracy")
    assert said.code == 0 and "8 trials" in said.out, said.err
    folders = sorted(path.parent for path in Path("events").rglob("events.out.tfevents.*"))
    assert len(folders) == 8 and all(len(folder.relative_to("events").parts) == 3 for folder in folders)
    for trial in (trial for record in results.records for trial in record.trials):
        (folder,) = (folder for folder in folders if folder.name.endswith(trial.id[:8]))
        events = EventAccumulator(str(folder))
        events.Reload()
        assert [(e.step, e.value) for e in events.Scalars("loss")] == [(5, 1.0), (10, 0.5)]
        shares = {row.size: row.value for row in results.rows() if row.trial == trial.id}
        assert len(shares) == 4 and {e.step: e.value for e in events.Scalars("by_size/token")} == pytest.approx(shares)


def test_names_stay_inside_the_folder():
    from posenc.lab.figures.exports import _folder

    results = made.results("evil", [made.rope((0,), label="../../<a>/b", task="..")])
    name = _folder(results, results.records[0], results.records[0].trials[0])
    assert name.startswith("_/") and len(Path(name).parts) == 3 and not {"..", "."} & {*Path(name).parts}


def test_a_notebook_shows_the_table(tuned):
    page = load(tuned)._repr_html_()
    assert "<table>" in page and "floor: guess" in page and ">rope<" in page.replace("rope (depth=2)", "rope")
