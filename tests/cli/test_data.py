"""Results as data of other programs: Parquet and event files hold what the records hold."""

import importlib.util
import sys
from pathlib import Path

import pytest

from posenc.lab.results import results as reading
from posenc.lab.results.table import load
from tests.lab import made

HAS = {name: importlib.util.find_spec(name) is not None for name in ("pyarrow", "tensorboardX", "tensorboard")}
needs = {name: pytest.mark.skipif(not has, reason=f"{name} is not installed") for name, has in HAS.items()}


@pytest.fixture
def tuned(posenc):
    """A run with a setting that a second scheme lacks, a trial that diverged and one that chose a rate."""
    rope, alibi = made.rope(range(3)), made.rope(range(3), label="alibi", family="linear")
    rope["run"] |= {"depth": 2, "revisions": {"RoPE": 1}}
    alibi["trials"].append(made.trial("alibi", "copy", 7, {}, outcome="diverged"))
    alibi["trials"].append(made.trial("alibi", "copy", 8, {8: 0.5, 16: 0.25}, lr=3e-3, role="tuning"))
    return made.filled("mine", [rope, alibi])


@needs["pyarrow"]
def test_a_parquet_file_holds_the_table(posenc, tuned):
    import pandas

    said = posenc("export", "mine", "-o", "mine.parquet")
    assert (said.code, said.out) == (0, "mine.parquet\n"), said.err
    table = load(tuned)
    pandas.testing.assert_frame_equal(pandas.read_parquet("mine.parquet"), table, check_dtype=False)
    assert posenc("export", "mine", "-o", "curves.parquet", "--what", "curves").code == 0
    curves = pandas.read_parquet("curves.parquet")
    assert {*zip(curves.step, curves.loss, strict=True)} == {(5, 1.0), (10, 0.5)} and len(curves) == 16


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
    monkeypatch.setattr("importlib.util.find_spec", lambda name: True)
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

    results = reading.load(tuned)
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
