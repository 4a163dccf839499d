"""What reading commands print: results on stdout, sentences on stderr, JSON that parses, codes that mean something."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from posenc.lab.explain import induced
from posenc.lab.store import folder
from tests.lab import made


def test_status_counts_trials_and_lists_groups(posenc, runs):
    said = posenc("status", "mine")
    assert said.code == 0 and said.err == ""
    head, columns, *rows = said.out.splitlines()
    assert head == "mine: done 18, failed 0, pending 0"
    assert columns.split() == ["task", "scheme", "trials"] and len(rows) == 4
    assert posenc("status", "runs/mine").out == said.out


def test_status_tells_the_error_of_a_group_and_its_trials_can_be_chosen(posenc, runs):
    late = made.rope(task="late", label="t5")
    made.write_plan(runs, made.plan(late, "late"))
    folder.write_error(runs, "late", "failed", "Traceback\nValueError: no such luck")
    said = posenc("status", "mine")
    assert "failed 3" in said.out and "ValueError: no such luck" in said.out
    said = posenc("table", "mine", "--only", "scheme=t5")
    assert said.code == 0 and "late  t5" in said.out


def test_a_damaged_record_is_named_on_stderr(posenc, runs):
    path = made.log_of(runs)
    path.write_bytes(path.read_bytes()[:-20])
    said = posenc("table", "mine")
    assert said.code == 0 and path.name in said.err and path.name not in said.out
    assert "1 record could not be read." in said.out


@pytest.mark.ci
def test_a_damaged_record_is_named_when_figures_are_drawn(posenc, runs, tmp_path):
    path = made.log_of(runs)
    path.write_bytes(path.read_bytes()[:-20])
    said = posenc("plot", "mine", "--figure", "length", "-o", "figures")
    assert said.code == 0 and path.name in said.err
    assert "1 record could not be read." in (tmp_path / "figures" / "length.caption.txt").read_text()
    bundle = tmp_path / "mine.json"
    folder.bundle(runs, bundle)
    bundle.write_text(bundle.read_text().replace('"correct":1000', '"correct":1001', 1))
    said = posenc("plot", "mine.json", "--figure", "length", "-o", "figures")
    assert said.code == 0 and "is left out: its checksum does not match" in said.err


def csv_rows(said):
    return list(csv.DictReader(io.StringIO(said.out)))


def test_a_table_can_be_narrowed(posenc, runs):
    rows = csv_rows(posenc("table", "mine", "--format", "csv", "--only", "scheme=rope"))
    assert {row["scheme"] for row in rows} == {"rope"} and len(rows) == 2
    said = posenc("table", "mine", "--only", "scheme=t5")
    assert said.code == 3 and "alibi, rope" in said.err and said.out == ""
    whole = posenc("table", "mine", "--format", "csv").out
    assert posenc("table", "mine", "--format", "csv", "--only", "lr=1e-3", "seed=0,1,2,3,4,5").out == whole
    none = posenc("table", "mine", "--only", "task=index", "seed=5")
    assert none.code == 3 and "not together" in none.err and none.out == ""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_table_is_printed_where_its_rules_cannot_be(runs, tmp_path, encoding):
    env = {**os.environ, "PYTHONIOENCODING": encoding, "POSENC_RUNS": str(tmp_path / "runs")}
    words = [sys.executable, "-m", "posenc", "table", "mine"]
    done = subprocess.run(words, capture_output=True, cwd=tmp_path, env=env)
    assert done.returncode == 0 and b"alibi" in done.stdout, done.stderr


@pytest.mark.parametrize("change", [{"id": [1]}, {"run": 1}])
@pytest.mark.parametrize("command", ["status", "table"])
def test_a_damaged_plan_is_one_sentence(refuse, runs, command, change):
    shared, first, *rest = (runs / "plan.jsonl").read_text().splitlines()
    (runs / "plan.jsonl").write_text("\n".join([shared, json.dumps({**json.loads(first), **change}), *rest]))
    assert refuse(command, "mine").startswith("line 2 of ")


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
    ["list", "stems"],
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
    from posenc.lab import tasks
    from posenc.lab.models.stems import STEMS

    assert [row["name"] for row in json.loads(posenc("list", "--json").out)] == package.names()
    assert [row["name"] for row in json.loads(posenc("list", "tasks", "--json").out)] == tasks.names()
    found = json.loads(posenc("list", "stems", "--json").out)
    assert [row["name"] for row in found] == ["none", *STEMS.names()] and found[1]["use"] == "--stem conv"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["table", "mine", "--only", "colour=red"], ""),
        (["table", "mine", "--only", "scheme=rope", "scheme=alibi"], "--only scheme is given twice; give it once, as"),
        (["compare", "mine", "rope", "t5"], "alibi, rope"),
        (["compare", "mine", "rope", "rope"], ""),
        (["compare", "mine", "rope", "alibi", "--size", "7"], ""),
        (["plot", "mine", "-o", ""], "is empty; give"),
        (["export", "mine", "--bundle", ""], "is empty; give"),
    ],
)
def test_what_cannot_be_read_or_drawn_is_one_sentence(refuse, runs, words, why):
    assert why in refuse(*words)


def test_a_plot_leaves_five_files_for_each_figure(posenc, runs, left, tmp_path):
    said = posenc("plot", "mine", "--figure", "length", "-o", "figures")
    assert said.code == 0, said.err
    expected = [f"figures/length.{kind}" for kind in ("caption.txt", "csv", "pdf", "png", "svg")]
    assert [name for name in left() if name.startswith("figures")] == expected


@pytest.mark.ci
def test_errors_are_drawn_when_asked_for(posenc, runs, left, tmp_path):
    assert posenc("plot", "mine", "-o", "figures").code == 0
    assert not [name for name in left() if "error" in name]
    assert posenc("plot", "mine", "--figure", "error", "-o", "figures").code == 0
    assert (tmp_path / "figures" / "error.caption.txt").read_text().startswith("error rate (last token) (up)")


@pytest.mark.ci
def test_figures_that_do_not_apply_are_left_out_unless_asked_for(posenc, left):
    made.filled("within", made.ranged((4, 32)))
    said = posenc("plot", "within", "-o", "figures")
    assert said.code == 0 and not [name for name in left() if "heatmap" in name]
    asked = posenc("plot", "within", "--figure", "heatmap", "-o", "figures")
    assert asked.code == 2 and "no size beyond the training range" in asked.err


@pytest.mark.parametrize("words", [["plot", "mine"], ["explain", "rope", "--png", "x.png"]])
def test_drawing_without_matplotlib_says_what_to_install(refuse, runs, monkeypatch, words):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert refuse(*words) == "Figures need matplotlib; pip install 'posenc[plot]'.\n"


EXPERIMENT = '''"""Rope turns.

Result: nothing yet.
"""
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Run
def runs():
    return grid(Run(), scheme=["rope", "alibi"])
'''


@pytest.fixture
def commit(runs, tmp_path):
    """`commit(more)` makes experiments/turns.py, which ends so, with the run "mine" as its record; the folder."""
    experiments = tmp_path / "experiments"
    experiments.mkdir()

    def write(more=""):
        (experiments / "turns.py").write_text(EXPERIMENT + more)
        folder.bundle(runs, experiments / "records" / "turns.json", "turns")
        return experiments

    return write


@pytest.mark.ci
def test_an_experiment_is_drawn_again_from_its_committed_record(posenc, refuse, commit, left):
    experiments = commit()
    record, figure = experiments / "records" / "turns.json", experiments / "figures" / "turns.svg"
    record.rename("away")
    assert "turns.json" in refuse("plot", "experiments/turns.py")
    Path("away").rename(record)
    assert posenc("plot", "experiments/turns.py").code == 0
    first = figure.read_bytes()
    assert posenc("plot", "experiments/turns.py").code == 0 and figure.read_bytes() == first
    assert posenc("table", "experiments/turns.py").out == posenc("table", "mine").out
    assert posenc("plot", "experiments/turns.py", "--figure", "heatmap,length").code == 0
    assert {f"experiments/figures/turns.{name}.svg" for name in ("heatmap", "length")} < set(left())
    assert figure.read_bytes() == first


def test_the_table_of_an_experiment_is_by_the_metric_of_its_figure(posenc, commit):
    experiments = commit('\nmetric = "exact"\n')
    assert posenc("plot", "experiments/turns.py").code == 0
    caption = (experiments / "figures" / "turns.caption.txt").read_text()
    assert caption.startswith("accuracy (whole answers) (up)")
    assert "; whole answers right. " in posenc("table", "experiments/turns.py").out
    assert "; accuracy at the last token. " in posenc("table", "experiments/turns.py", "--metric", "last").out


OWN = """
def figure(results):
    from matplotlib.figure import Figure
    figure = Figure()
    figure.subplots().set(xlabel="depth", ylabel="loss")
    return figure
"""


def test_the_caption_of_a_figure_of_its_own_is_of_that_figure(posenc, commit):
    experiments = commit(OWN)
    assert posenc("plot", "experiments/turns.py").code == 0
    caption = (experiments / "figures" / "turns.caption.txt").read_text()
    assert caption.startswith("loss (up) against depth") and "Trials: 18 done" in caption
    assert "Over the sizes beyond" not in caption


def test_experiments_are_listed_without_running_them(posenc, tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "bad.py").write_text('"""It stops."""\nraise SystemExit(9)\n')
    rows = json.loads(posenc("list", "experiments", "--json").out)
    assert {"name": "bad", "file": "experiments/bad.py", "idea": "It stops.", "cost": ""} in rows


def test_explain_prints_the_penalty_of_alibi_and_draws_it(posenc, left):
    said = posenc("explain", "alibi", "--len", "3", "-o", "alibi.png")
    assert said.code == 0 and "-0.50  -0.25   0.00" in said.out and "── alibi ──" in said.out
    assert left() == ["alibi.png"]
    views = json.loads(posenc("explain", "alibi", "--len", "3", "--json").out)
    assert views[0]["matrix"][2] == pytest.approx([-0.5, -0.25, 0])


@pytest.mark.ci
def test_explain_draws_a_path_for_each_distinct_layer_with_what_reads_content_before_it(posenc):
    path = lambda scheme: posenc("explain", scheme, "--len", "3").out.split("\n\n")[1]  # noqa: E731
    assert path("alibi @ offset(3)") == path("alibi") != path("repo")
    assert path("repo").startswith("token  ── position computed from content ── repo ─►")
    whole = induced.diagram("[alibi, alibi @ offset(3), repo]")
    assert whole == "\n\n".join(map(path, ("alibi", "repo")))


def test_cite_gives_each_entry_once(posenc):
    said = posenc("cite", "rope + rope(base=5.0) + nope").out
    assert said.count("@article{su2021roformer") == 1 and "@inproceedings{kazemnejad2023impact" in said


def test_doctor_names_versions_devices_and_the_size_of_the_cache(posenc, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = json.loads(posenc("doctor", "--json").out)
    assert {"jax", "device", "runs", "compilation cache", "tyro"} <= set(found)
    assert found["compilation cache"].startswith(f"{tmp_path}/posenc/xla, ")
    kept = tmp_path / "posenc" / "xla"
    before = len(list(kept.glob("*-cache")))
    for name in ("jit_a-1-cache", "jit_b-2-cache"):
        (kept / name).write_bytes(bytes(3 * 2**19))
    said = json.loads(posenc("doctor", "--json").out)["compilation cache"]
    assert f" {before + 2} programs, 3 MiB; to empty it, remove this folder" in said


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


@pytest.mark.ci
def test_a_device_that_is_not_there_is_named(tmp_path):
    env = {**os.environ, "JAX_PLATFORMS": "cuda"}
    words = [sys.executable, "-m", "posenc", "doctor"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=env)
    if done.returncode == 0:
        pytest.skip("a GPU is here")
    assert done.returncode == 2 and "JAX_PLATFORMS=cuda" in done.stderr.splitlines()[-1]
