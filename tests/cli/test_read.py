"""What reading commands print: results on stdout, sentences on stderr, JSON that parses, codes that mean something."""

import csv
import io
import json
import os
import subprocess
import sys

import pytest

from posenc.lab import store
from tests.lab import made


def test_status_counts_trials_and_lists_groups(posenc, runs):
    said = posenc("status", "mine")
    assert said.code == 0 and said.err == ""
    head, columns, *rows = said.out.splitlines()
    assert head == "mine: done 18, failed 0, pending 0"
    assert columns.split() == ["task", "scheme", "trials"] and len(rows) == 4
    assert posenc("status", "runs/mine").out == said.out


def test_status_tells_the_error_of_a_group(posenc, runs):
    late = made.rope(task="late")
    store.write_plan(runs, made.plan(late, "late"))
    store.write_error(runs, "late", "failed", "Traceback\nValueError: no such luck")
    said = posenc("status", "mine")
    assert "failed 3" in said.out and "ValueError: no such luck" in said.out


def test_a_damaged_record_is_named_on_stderr(posenc, runs):
    path = next((runs / "records").glob("*.json"))
    path.write_bytes(path.read_bytes()[:-20])
    said = posenc("table", "mine")
    assert said.code == 0 and path.name in said.err and path.name not in said.out


@pytest.mark.parametrize("format", ["text", "csv", "md", "latex", "json"])
def test_a_table_has_every_format(posenc, runs, format):
    said = posenc("table", "runs/mine", "--format", format)
    assert said.code == 0 and said.err == "" and "alibi" in said.out and said.out.endswith("\n")


def test_a_table_can_be_narrowed(posenc, runs):
    rows = list(csv.DictReader(io.StringIO(posenc("table", "mine", "--format", "csv", "--only", "scheme=rope").out)))
    assert {row["scheme"] for row in rows} == {"rope"} and len(rows) == 2
    said = posenc("table", "mine", "--only", "scheme=t5")
    assert said.code == 3 and "alibi, rope" in said.err and said.out == ""
    assert posenc("table", "mine", "--only", "colour=red").code == 2


READ = [
    ["status", "mine"],
    ["table", "mine"],
    ["compare", "mine", "rope", "alibi"],
    ["export", "mine"],
    ["list"],
    ["list", "tasks"],
    ["list", "models"],
    ["list", "experiments"],
    ["list", "coordinates"],
    ["describe", "rope"],
    ["describe", "[rope + window(4), nope @ random_sorted]"],
    ["cite", "rope + t5"],
]


@pytest.mark.parametrize("words", READ, ids=" ".join)
def test_json_parses_and_holds_no_nan(posenc, runs, words):
    said = posenc(*words, "--json")
    assert said.code == 0, said.err

    def refuse(constant):
        raise AssertionError(constant)

    found = json.loads(said.out, parse_constant=refuse)
    assert isinstance(found, list) == (words[0] in ("list", "cite", "export")) and found != []


def test_a_list_names_everything_that_is_registered(posenc):
    import posenc as package
    from posenc import tasks

    assert [row["name"] for row in json.loads(posenc("list", "--json").out)] == package.names()
    assert [row["name"] for row in json.loads(posenc("list", "tasks", "--json").out)] == tasks.names()


def test_a_comparison_is_paired_and_says_how_many(posenc, runs):
    said = posenc("compare", "mine", "rope", "alibi")
    assert said.code == 0 and said.out.startswith("P(rope > alibi) = 1.00 [") and "n = 9 pairs" in said.out
    other = posenc("compare", "mine", "rope", "t5")
    assert other.code == 2 and "alibi, rope" in other.err


def test_an_export_has_one_row_per_trial_and_size(posenc, runs):
    rows = list(csv.DictReader(io.StringIO(posenc("export", "mine").out)))
    assert len(rows) == 18 * 4 and {row["scheme"] for row in rows} == {"rope", "alibi"}
    assert len(json.loads(posenc("export", "mine", "--format", "json").out)) == len(rows)


def test_a_bundle_is_read_in_place_of_its_run(posenc, runs):
    assert posenc("export", "mine", "--bundle", "mine.json").code == 0
    assert posenc("table", "mine.json").out == posenc("table", "mine").out
    assert posenc("export", "mine.json", "--bundle", "again.json").code == 2


def test_an_export_starts_no_formula(posenc):
    made.filled("evil", [made.rope(task="=cmd()")])
    assert "\n'=cmd()" in posenc("export", "evil").out


def test_a_plot_leaves_five_files_for_each_figure(posenc, runs, left, tmp_path):
    said = posenc("plot", "mine", "--figure", "length", "-o", "figures")
    assert said.code == 0, said.err
    expected = [f"figures/length.{kind}" for kind in ("caption.txt", "csv", "pdf", "png", "svg")]
    assert [name for name in left() if name.startswith("figures")] == expected


EXPERIMENT = '''"""Rope turns.

Result: nothing yet.
"""
from posenc.lab.experiment import grid
from posenc.lab.run import Run
def runs():
    return grid(Run(), scheme=["rope", "alibi"])
'''


def test_an_experiment_is_drawn_again_from_its_committed_record(posenc, runs, left, tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "turns.py").write_text(EXPERIMENT)
    said = posenc("plot", "experiments/turns.py")
    assert said.code == 2 and "turns.json" in said.err
    store.bundle(runs, tmp_path / "experiments" / "records" / "turns.json", "turns")
    assert posenc("plot", "experiments/turns.py").code == 0
    first = (tmp_path / "experiments" / "figures" / "turns.svg").read_bytes()
    assert posenc("plot", "experiments/turns.py").code == 0
    assert (tmp_path / "experiments" / "figures" / "turns.svg").read_bytes() == first
    assert posenc("table", "experiments/turns.py").out == posenc("table", "mine").out


def test_experiments_are_listed_without_running_them(posenc, tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "bad.py").write_text('"""It stops."""\nraise SystemExit(9)\n')
    rows = json.loads(posenc("list", "experiments", "--json").out)
    assert {"name": "bad", "file": "experiments/bad.py", "claim": "It stops.", "cost": ""} in rows


def test_explain_prints_the_penalty_of_alibi_and_draws_it(posenc, left):
    said = posenc("explain", "alibi", "--len", "3", "-o", "alibi.png")
    assert said.code == 0 and "-0.50  -0.25   0.00" in said.out and "── alibi ──" in said.out
    assert left() == ["alibi.png"]


def test_explain_gives_its_matrices_as_json(posenc):
    views = json.loads(posenc("explain", "alibi", "--len", "3", "--json").out)
    assert views[0]["matrix"][2] == pytest.approx([-0.5, -0.25, 0])


def test_describe_tells_where_it_enters_and_what_it_costs(posenc):
    said = posenc("describe", "t5").out
    assert "enters at    scale, score" in said and "128 in each layer" in said or "128 shared" in said
    assert "raffel" in said.lower()


def test_cite_gives_each_entry_once(posenc):
    said = posenc("cite", "rope + rope(base=5.0) + nope").out
    assert said.count("@article{su2021roformer") == 1 and "@inproceedings{kazemnejad2023impact" in said


def test_doctor_names_versions_and_devices(posenc):
    found = json.loads(posenc("doctor", "--json").out)
    assert {"jax", "device", "runs", "compilation cache", "tyro"} <= set(found)


def test_a_reader_that_leaves_early_is_no_error(runs, tmp_path):
    done = subprocess.run(
        f"{sys.executable} -m posenc export mine --format json | head -c 1",
        shell=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "POSENC_RUNS": str(tmp_path / "runs")},
    )
    assert done.stderr == "" and done.stdout == "["


def test_a_device_that_is_not_there_is_named(tmp_path):
    env = {**os.environ, "JAX_PLATFORMS": "cuda"}
    words = [sys.executable, "-m", "posenc", "doctor"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=env)
    if done.returncode == 0:
        pytest.skip("a GPU is here")
    assert done.returncode == 2 and "JAX_PLATFORMS=cuda" in done.stderr.splitlines()[-1]
