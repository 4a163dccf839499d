"""What is stored is whole or absent, and what cannot be read is named."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import posenc.lab.store.disk as disk
from posenc.lab.results.results import load
from posenc.lab.store import folder as store
from posenc.lab.store.schema import written
from tests.lab import made

pytestmark = pytest.mark.usefixtures("runs")


def refuse(code, monkeypatch, what="fsync"):
    def raising(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, what, raising)


def test_a_really_full_device_is_the_same_sentence():
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(store.DiskError, match="full"), disk.guarded(Path("x")):
        with open("/dev/full", "wb", buffering=0) as file:
            file.write(b"x")


@pytest.mark.parametrize("code, said", [(errno.EROFS, "read-only"), (errno.EACCES, "permission")])
def test_a_folder_that_cannot_be_written_is_known_before_anything_is_computed(monkeypatch, code, said):
    with monkeypatch.context() as patch:
        refuse(code, patch, "mkdir")
        with pytest.raises(store.DiskError, match=said):
            store.create("a")


def test_another_process_that_starts_at_the_same_moment_may_remove_the_probe_first(monkeypatch):
    real = disk.write
    monkeypatch.setattr(disk, "write", lambda path, content: real(path, content).unlink())
    assert store.create("a").is_dir()


def test_an_output_path_that_is_a_file_is_refused(runs):
    runs.mkdir()
    (runs / "a").write_text("mine")
    with pytest.raises(ValueError, match="file"):
        store.create("a")
    assert (runs / "a").read_text() == "mine"


def test_old_leftovers_are_removed_and_young_ones_kept(runs):
    folder = store.create("a")
    old, young = folder / "records" / ".x.json.aa.tmp", folder / "records" / ".y.json.bb.tmp"
    for path in (old, young):
        path.write_text("half")
    os.utime(old, (1, 1))
    store.create("a")
    assert not old.exists() and young.exists()
    assert store.read_records(folder) == store.Stored((), ())


BAD_NAMES = ["../x", "/etc/x", "a/b", "", ".", "..", ".hidden", "a\0b", "a" * 65, "-rf", "a b", "ä", "a\n", "..\\x"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_could_leave_the_folder_are_refused(name, runs):
    with pytest.raises(ValueError, match="name"):
        store.create(name)
    assert not runs.exists() or not list(runs.iterdir())
    with pytest.raises(ValueError, match="name"):
        disk.inside(runs, name)


@pytest.mark.parametrize("name", ["a", "A.b_c-1", "0", "x" * 64])
def test_plain_names_work(name, runs):
    assert store.create(name) == runs / name


def test_links_in_a_run_folder_are_refused(runs, tmp_path):
    folder = made.filled("a", [made.rope()])
    (path,) = (folder / "records").iterdir()
    outside = tmp_path / "outside.json"
    path.rename(outside)
    path.symlink_to(outside)
    stored = store.read_records(folder)
    assert stored.records == () and "it is a link" in stored.problems[0]
    (folder / "errors").rmdir()
    (folder / "errors").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="link"):
        store.write_error(folder, "g0", "failed", "x")
    (runs / "b").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="link"):
        store.create("b")


def test_planning_again_appends_and_never_changes_a_line():
    folder = store.create("a")
    first = made.plan(made.rope((0, 1)), "g0")
    assert len(made.write_plan(folder, first)) == 2
    before = (folder / "plan.jsonl").read_bytes()
    assert made.write_plan(folder, first) == []
    assert (folder / "plan.jsonl").read_bytes() == before
    more = first + made.plan(made.rope((2,)), "g1")
    assert [line.group for line in made.write_plan(folder, more)] == ["g1"]
    assert (folder / "plan.jsonl").read_bytes().startswith(before)
    assert [line.knobs.seed for line in store.read_plan(folder)] == [0, 1, 2]
    assert [*map(written, store.read_plan(folder)[:2])] == first


def test_a_group_is_fixed_and_sizes_of_a_planned_trial_too():
    folder = store.create("a")
    made.write_plan(folder, made.plan(made.rope((0,)), "g0"))
    with pytest.raises(ValueError, match="'g0' is fixed"):
        made.write_plan(folder, made.plan(made.rope((1,)), "g0"))
    other = [{**line, "sizes": [8]} for line in made.plan(made.rope((0,)), "g0")]
    with pytest.raises(ValueError, match=r"\[8, 16, 24, 32\].*\[8\]"):
        made.write_plan(folder, other)


def test_a_folder_without_a_plan_is_no_run_folder():
    with pytest.raises(ValueError, match="run folder"):
        store.read_plan(store.create("b"))


@pytest.mark.parametrize("rest", [7, [7], [{"id": "x"}], "outcome"])
def test_a_bundle_whose_unfinished_trials_are_none_is_refused(rest, tmp_path):
    folder = made.filled("a", [made.rope()])
    path = store.bundle(folder, tmp_path / "a.json")
    said = json.loads(path.read_bytes())
    path.write_text(json.dumps({**said, "unfinished": made.plan(made.rope((9,)), "g") if rest == "outcome" else rest}))
    with pytest.raises(ValueError, match="unfinished"):
        load(path)


def test_every_outcome_is_counted():
    folder = store.create("a")
    diverged = made.rope((5,))
    diverged["trials"][0] |= {"outcome": "diverged", "evaluations": {}}
    for number, record in enumerate([made.rope((0, 1)), diverged]):
        made.write_plan(folder, made.plan(record, f"g{number}"))
        made.write_record(folder, record)
    for seed, outcome in enumerate(("failed", "oom"), 10):
        made.write_plan(folder, made.plan(made.rope((seed,)), outcome))
        store.write_error(folder, outcome, outcome, f"Traceback\nBoom: {outcome}")
    made.write_plan(folder, made.plan(made.rope((20, 21)), "waits"))
    made.write_plan(folder, made.plan(made.rope((30,)), "runs"))
    with store.claim(folder, "runs"):
        state = store.status(folder)
    expected = {"done": 2, "diverged": 1, "failed": 1, "oom": 1, "running": 1, "pending": 2}
    assert {k: v for k, v in state.counts.items() if v} == expected
    rows = {row.group: row for row in state.rows}
    assert rows["oom"].error == "Boom: oom" and "beat" in rows["runs"].worker and rows["g0"].trials == 2
    store.clear_error(folder, "oom")
    store.write_error(folder, "g0", "failed", "a record outranks an old error")
    assert store.status(folder).counts["pending"] == 4 and store.status(folder).counts["done"] == 2


def test_tracebacks_are_kept_without_private_paths():
    folder = store.create("a")
    files = ("/else/lib/site-packages/jax/api.py", "/else/run.py", "/else/posenc-copy/posenc/lab/train.py")
    text = "".join(f'  File "{file}", line 1\n' for file in files)
    path = store.write_error(folder, "g", "failed", text)
    assert "/else" not in path.read_text()
    assert 'File "jax/api.py"' in path.read_text() and 'File "posenc/lab/train.py"' in path.read_text()
    with pytest.raises(ValueError, match="'done' cannot be stored as a failure"):
        store.write_error(folder, "g", "done", "x")


def test_events_are_appended_one_a_line():
    folder = store.create("a")
    store.log(folder, "w1", "start", group="g0")
    store.log(folder, "w1", "end", loss=float("nan"))
    first, second = (folder / "events" / "w1.jsonl").read_text().splitlines()
    assert json.loads(first)["event"] == "start" and json.loads(second)["loss"] is None


def test_a_moved_folder_gives_the_same_results(runs, tmp_path):
    folder = made.filled("a", [made.rope(), made.rope(label="alibi", family="linear")])
    before = load("a").rows()
    folder.rename(tmp_path / "elsewhere")
    assert load(tmp_path / "elsewhere").rows() == before != []
    text = "".join(p.read_text() for p in (tmp_path / "elsewhere").rglob("*") if p.is_file())
    assert str(runs) not in text and str(tmp_path) not in text


def test_a_missing_run_says_which_there_are():
    made.filled("mine", [made.rope()])
    with pytest.raises(ValueError, match="'mein'.* mine"):
        load("mein")


def test_reading_results_imports_no_jax(runs):
    made.filled("a", [made.rope()])
    code = "import sys, posenc; assert len(posenc.load('a')); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "POSENC_RUNS": str(runs)}, check=True)
