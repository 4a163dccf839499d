"""Schemes and tasks of results are chosen in any spelling that a sweep takes, and options come in any order."""

import json

import pytest

from posenc.lab.cli.evaluate import Evaluate
from posenc.lab.cli.export import Export
from posenc.lab.cli.extend import Check
from posenc.lab.cli.options import parse
from posenc.lab.cli.read import Tabulate
from posenc.lab.cli.report import WriteReport
from posenc.lab.cli.train import Sweep
from tests.lab import made
from tests.lab.test_sources import SCHEME

ROPE, TASK = "rope(base=500000.0)", "token_k_back(k=5)"
SPELLINGS = ["rope(base=5e5)", "rope( base = 500000 )", "rope(5e5)", ROPE]
NOPE = ["nope", "nope()", " nope ( ) "]
TASKS = ["token_k_back( k = 5 )", "token_k_back(5)", "token_k_back(k=5, symbols=16)"]


@pytest.fixture
def mixed(posenc):
    """Three schemes on two tasks, in runs/mine; one of them at two widths."""
    labels = {ROPE: "rotary", "nope": "none", "alibi": "linear"}
    records = [
        made.rope(seeds=range(6), label=label, family=family, task=task, drop=0.1 * n)
        for task in (TASK, "even_pairs")
        for n, (label, family) in enumerate(labels.items(), 1)
    ]
    return made.filled("mine", records)


def rows(said):
    assert said.code == 0, said
    return {(row["task"], row["scheme"]) for row in json.loads(said.out)["rows"]}


@pytest.mark.parametrize(
    ("only", "kept"),
    [(f"scheme={text}", {(TASK, ROPE), ("even_pairs", ROPE)}) for text in SPELLINGS]
    + [(f"scheme={text}", {(TASK, "nope"), ("even_pairs", "nope")}) for text in NOPE]
    + [(f"task={text}", {(TASK, s) for s in (ROPE, "nope", "alibi")}) for text in TASKS]
    + [("scheme=rope(base=5e5),nope()", {(t, s) for t in (TASK, "even_pairs") for s in (ROPE, "nope")})],
)
def test_a_table_is_of_what_a_text_means(posenc, mixed, only, kept):
    assert rows(posenc("table", "mine", "--only", only, "--json")) == kept


def test_what_no_text_means_is_still_refused(posenc, mixed):
    for only in ("scheme=rope", "scheme=rope(base=5e4)", "scheme=ropee", "task=token_k_back", "scheme=rope("):
        said = posenc("table", "mine", "--only", only)
        assert (said.code, said.out) == (3, "") and "Nothing has" in said.err


def test_a_label_with_settings_is_chosen_by_its_scheme_or_in_full(posenc):
    records = [made.rope(label=ROPE, task="copy"), made.rope(label=ROPE, task="copy")]
    records[1]["run"]["width"] = 32
    records[1]["trials"] = [{**t, "id": made.trial_id("wide", t["id"])} for t in records[1]["trials"]]
    made.filled("mine", records)
    labels = {f"{ROPE} (width={n})" for n in (32, 64)}
    assert {s for _, s in rows(posenc("table", "mine", "--only", "scheme=rope(base=5e5)", "--json"))} == labels
    only = "scheme=rope(base=5e5) (width=32)"
    assert {s for _, s in rows(posenc("table", "mine", "--only", only, "--json"))} == {f"{ROPE} (width=32)"}


def test_compare_takes_any_spelling(posenc, mixed):
    first = SPELLINGS[1]
    assert posenc("compare", "mine", first, "nope()").out == posenc("compare", "mine", ROPE, "nope").out != ""
    assert posenc("compare", "mine", first).out == posenc("compare", "mine", ROPE).out != ""


def test_a_class_of_a_file_is_chosen_as_it_is_swept(posenc, fresh, tmp_path):
    (tmp_path / "mine.py").write_text(SCHEME.format(rate=0.1))
    made.filled("own", [made.rope(label="mine(rate=0.5)", family="linear")])
    assert rows(posenc("table", "own", "--only", "scheme=mine:Mine(rate=5e-1)", "--json")) == {
        ("copy", "mine(rate=0.5)")
    }


def test_the_runs_of_an_experiment_are_chosen_by_what_they_mean(posenc, tmp_path):
    words = "sweep --grid scheme=rope,nope task=token_k_back(k=3),even_pairs --set length=8 steps=2 seeds=1 --dry-run"
    said = posenc(*words.split(), "--only", "scheme=rope(base=1e4)", "task=token_k_back(3)")
    assert said.code == 0 and "1 trial " in said.out, said


@pytest.mark.parametrize(
    ("cls", "words", "fields"),
    [
        (WriteReport, "a --only scheme=nope -o a.html", {"run": ("a",), "only": ("scheme=nope",), "out": "a.html"}),
        (
            WriteReport,
            "-o a.html --only scheme=nope a b",
            {"run": ("a", "b"), "only": ("scheme=nope",), "out": "a.html"},
        ),
        (
            Tabulate,
            "--only scheme=nope task=x mine --json",
            {"run": "mine", "only": ("scheme=nope", "task=x"), "json": True},
        ),
        (Evaluate, "--only scheme=nope -o a.png --by size r", {"run": "r", "only": ("scheme=nope",), "png": "a.png"}),
        (Export, "-o a.csv r", {"run": "r", "out": "a.csv"}),
        (Export, "r -o=a.csv", {"run": "r", "out": "a.csv"}),
        (Check, "rope --only G18 G19", {"what": "rope", "only": ("G18", "G19")}),
        (Sweep, "--set width=8 e.toml --only scheme=rope", {"file": "e.toml", "set": ("width=8",)}),
    ],
)
def test_options_come_in_any_order(cls, words, fields):
    command = parse(cls, words.split(), "posenc x")
    assert {name: getattr(command, name) for name in fields} == fields


def test_an_option_after_several_values_is_no_value(posenc, mixed, left):
    assert posenc("report", "mine", "--only", "scheme=nope", "-o", "a.html").code == 0
    assert "a.html" in left() and "report.html" not in left()


def test_a_short_option_is_typed_once(refuse):
    assert "--out is typed twice" in refuse("report", "mine", "-o", "a.html", "--out", "b.html")
