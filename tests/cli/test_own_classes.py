"""`mine:Mine` wherever a scheme's or a task's text is typed, and `--import` for runs that name such a class."""

import json
import sys

import pytest

from tests.lab import made
from tests.lab.made import unexamined
from tests.lab.test_sources import SCHEME, TASK

TINY = "width=8 depth=1 heads=2 hidden=8 batch=4 length=4 steps=2 sizes=4 rows=8".split()
EXPERIMENT = """
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

plan = Plan(steps=2, seeds=(0,))


def runs():
    return grid(Run(task="odd:Odd", length=4), scheme=["alibi", "[mine:Mine, mine:Mine(rate=0.5) + rope]"])
"""


@pytest.fixture
def files(tmp_path, fresh, monkeypatch):
    """A scheme and a task in the working folder; a command plans, and trains nothing."""
    (tmp_path / "mine.py").write_text(SCHEME.format(rate=0.1))
    (tmp_path / "odd.py").write_text(TASK)
    return fresh


@pytest.fixture
def planned(monkeypatch):
    """The runs that commands would train."""
    from posenc.lab.run.plan import label
    from posenc.lab.train.training import resolve

    found = []

    def rehearse(experiment, folder, runs=None):
        found.extend((label(run), resolve(run).task.name) for run in experiment.runs)
        return {
            "trials": 1,
            "done": 0,
            "programs": 3,
            "operations": 1e12,
            "seconds": 9.0,
            "device": "cpu",
            "memory": 1.0,
        }

    monkeypatch.setattr("posenc.lab.run.sweep.rehearse", rehearse)
    monkeypatch.setattr("posenc.lab.run.plan.examined", unexamined)
    return found


@pytest.mark.ci
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["describe", "mine:Mine(rate=0.5) + alibi"], "mine(rate=0.5) + alibi"),
        (["describe", "alibi + mine:Mine"], "A penalty, linear in distance."),
        (["explain", "mine:Mine(rate=0.5)"], "-0.50"),
        (["explain", "attention", "--scheme", "mine:Mine"], "mine"),
        (["cite", "mine:Mine"], "% mine: "),
        (["cite", "odd:Odd"], "% odd: "),
        (["check", "mine:Mine(rate=0.5) + alibi", "--only", "G18"], "mine(rate=0.5) + alibi: "),
        (["check", "odd:Odd", "--only", "the_text_names_the_task"], "odd: 1 hold"),
        (["describe", "mine", "--import", "mine"], "A penalty, linear in distance."),
        (["--import=mine", "describe", "mine"], "A penalty, linear in distance."),
    ],
)
def test_a_class_of_a_file_is_a_text(posenc, files, words, shown):
    said = posenc(*words)
    assert said.code == 0 and shown in said.out and not said.err, said


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (["run", "--scheme", "mine:Mine", "--task", "odd:Odd"], [("mine", "odd")]),
        (["run", "--scheme", "rope", "--then", "0.5 mine:Mine", "--task", "copy"], [("rope, then mine", "copy")]),
        (
            ["sweep", "--grid", "scheme=alibi,mine:Mine(rate=0.5)", "task=odd:Odd,even_pairs"],
            [(s, t) for s in ("alibi", "mine(rate=0.5)") for t in ("odd", "even_pairs")],
        ),
        (["sweep", "e.py"], [("alibi", "odd"), ("[mine, mine(rate=0.5) + rope]", "odd")]),
        (["sweep", "e.py", "--only", "scheme=alibi"], [("alibi", "odd")]),
        (["run", "--task", "shifted(task='odd:Odd', size=4)", "--import", "odd"], [("rope", "shifted")]),
    ],
    ids=lambda words: " ".join(map(str, words))[:40],
)
def test_runs_and_experiments_name_classes_of_files(posenc, files, tmp_path, planned, words, runs):
    (tmp_path / "e.py").write_text(EXPERIMENT)
    said = posenc(*words, "--dry-run")
    assert said.code == 0 and planned == runs, said


def test_an_experiment_in_toml_names_them_too(posenc, files, tmp_path, planned):
    (tmp_path / "e.py").write_text(EXPERIMENT)
    assert posenc("sweep", "e.py", "--save", "e.toml", "--dry-run").code == 0
    assert 'task = "odd:Odd"' in (tmp_path / "e.toml").read_text()
    files()
    before = list(planned)
    assert posenc("sweep", "e.toml", "--dry-run").code == 0 and planned == 2 * before


FAULTY = {
    "broken": "\nnowhere.Mine\n",
    "ends": "raise SystemExit(3)\n",
    "crooked": "def f(:\n",
    "clash": "from posenc import Scheme\n\nclass Clash(Scheme, name='rope'):\n    pass\n",
    "twice": "from posenc import Scheme\nimport mine\nclass Twice(Scheme, name='mine'):\n    pass\n",
    "helper": "class Helper:\n    name = 'rope'\nnumber = 5\n",
}


@pytest.mark.parametrize(
    ("scheme", "why"),
    [
        ("nowhere:Mine", "'nowhere'"),
        ("no.where:Mine", "'no.where'"),
        ("mine.py:Mine", "'mine'"),
        ("mine:Mime", "'Mime'"),
        ("helper:Nothing", "'Nothing'"),
        ("helper:Helper", "'helper:Helper'"),
        ("helper:number", "'helper:number'"),
        ("odd:Odd", "'odd:Odd'"),
        ("broken:Mine", "NameError"),
        ("ends:Mine", "SystemExit: 3"),
        ("crooked:Mine", "SyntaxError"),
        ("clash:Clash", "'rope' is taken"),
        ("twice:Twice", "'mine' is taken"),
        ("mine:Mine(bass=1)", "'bass'"),
        (":Mine", "':Mine'"),
        ("./mine.py:Mine", "mine:Mine"),
        ("os:path", "'os:path'"),
    ],
)
def test_what_is_not_there_or_no_scheme_is_one_sentence(refuse, files, tmp_path, scheme, why):
    for name, text in FAULTY.items():
        (tmp_path / f"{name}.py").write_text(text)
    for words in (["run", "--task", "copy", "--scheme", scheme], ["explain", scheme]):
        files()
        assert why in refuse(*words)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["run", "--scheme", "rope", "--task", "mine:Mine"], "'mine:Mine'"),
        (["describe", "odd:Even"], "The module 'odd' has no 'Even'"),
        (["run", "--scheme", "rope", "--task", "shifted(task='odd:Odd')"], "--import"),
        (["describe", "mine", "--import"], "--import"),
        (["describe", "mine", "--import", "../mine"], "--import"),
        (["describe", "mine", "--import", "nowhere"], "'nowhere'"),
    ],
)
def test_a_wrong_task_or_import_is_one_sentence(refuse, files, words, why):
    assert why in refuse(*words)


@pytest.mark.ci
def test_reading_a_run_imports_nothing(posenc, files, tmp_path):
    """Not by tables, figures, or what makes a bundle, nor from a bundle."""
    (tmp_path / "mine.py").write_text("from pathlib import Path\nPath('imported').touch()\n")
    records = [made.rope(seeds=range(6), label="mine"), made.rope(seeds=range(6), label="mine:Mine")]
    for record in records:
        record["run"]["sources"] = {"mine:Mine": "0" * 64}
    made.filled("mine", records)
    of_run = ("table mine", "status mine", "compare mine mine mine:Mine", "export mine", "export mine --bundle b.json")
    for words in (*of_run, "table b.json", "plot b.json -o figures", "export b.json --json"):
        said = posenc(*words.split())
        assert said.code == 0, said
    assert "mine" not in sys.modules and not (tmp_path / "imported").exists()


@pytest.mark.ci
def test_a_scheme_of_a_file_is_swept_and_edited_and_evaluated(posenc, refuse, files, tmp_path):
    sweep = "sweep --seeds 1 --name r --keep --grid scheme=mine:Mine(rate=0.5) task=even_pairs --set".split() + TINY
    assert posenc(*sweep).code == 0 and "mine(rate=0.5)  1     1" in posenc("table", "r").out
    plan = tmp_path / "runs" / "r" / "plan.jsonl"
    first = plan.read_text()
    files()
    assert "add --import mine to the command" in refuse("evaluate", "r") and "mine" not in sys.modules
    evaluated = json.loads(posenc("evaluate", "r", "--import", "mine", "--json").out)
    assert evaluated["rows"] == json.loads(posenc("table", "r", "--json").out)["rows"]
    files()
    (tmp_path / "mine.py").write_text(SCHEME.format(rate=0.1) + "# edited\n")
    assert "The file of 'mine:Mine' has changed" in refuse("evaluate", "r", "--import", "mine")
    assert posenc(*sweep).code == 0
    trials = [line["id"] for line in map(json.loads, plan.read_text().splitlines()) if "id" in line]
    assert len({*trials}) == len(trials) == 2 and plan.read_text().startswith(first)
    assert posenc("table", "r", "--format", "csv").out.count("(file of mine:Mine=") == 2
