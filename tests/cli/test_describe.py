"""`posenc describe` and `cite` of tasks, models and presets: what they show is true, and of all that a name is."""

import dataclasses
import json
import math

import pytest

import posenc as package
from posenc.lab import tasks
from posenc.lab.cli import listing
from posenc.lab.explain import task_card
from posenc.lab.models import kinds
from posenc.lab.spec.presets import PRESETS
from posenc.lab.spec.run import Run
from posenc.lab.tasks.examples import ROWS
from posenc.lab.tasks.task import TASKS
from tests.night import by_day
from tests.tasks.task_checks import known

OURS = [name for name in tasks.names() if TASKS.find(name).__module__.startswith("posenc.")]


@pytest.mark.parametrize("name", by_day(OURS, OURS[::20]))
def test_every_task_has_a_card_whose_example_its_oracle_answers(name):
    card = task_card.card(name)
    found, task = card.as_dict(), tasks.parse(name)
    example = found["example"]
    oracle = known(task, example["ids"]["targets"])
    assert oracle == example["ids"]["answer"] == task.answer(list(example["ids"]["prompt"]))
    assert known(task, [w for w in example["out"] if w is not None]) == example["oracle"] != []
    assert len(example["in"]) == len(example["out"]) <= task.tokens(example["size"])
    assert tasks.parse(found["task"]) == task and found["idea"].endswith(".") and found["lines"]
    text = card.as_text()
    assert f"An example of size {example['size']}:" in text and all(line in text for line in found["lines"])
    assert max(len(line) for line in text.splitlines() if line.startswith("      ")) < 125
    assert json.loads(json.dumps(found))["sizes"]["smallest"] == task.sizes.smallest


@pytest.mark.parametrize("name", OURS)
def test_every_task_says_whom_to_cite_or_that_it_is_ours(name):
    entries, doc = task_card.entries(TASKS.find(name)), TASKS.find(name).__doc__
    assert entries or "(ours" in doc
    for entry in entries:
        assert entry.startswith("@") and entry.count("{") == entry.count("}") and entry.endswith("}")


@pytest.mark.parametrize("name", OURS)
def test_names_of_tokens_are_few_short_and_told_apart(name):
    for settings in ({}, *TASKS.find(name).samples):
        task = TASKS.find(name)(**settings)
        assert all(0 <= token < task.alphabet for token in task.vocabulary)
        words = [task.word(token) for token in range(min(task.vocab, 300))]
        assert all(words) and not any(c.isspace() for word in words for c in word)
        assert len(set(words)) == len(words) or name == "lego", "its number 1 and its sign for it are one word"
        assert [task.word(task.special(word)) for word in task.layout.specials] == list(task.layout.specials)


def test_an_example_asks_for_something_where_most_rows_do_not():
    assert task_card.card("fill_blank(hide=0.02)", 8).as_dict()["example"]["oracle"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", OURS)
def test_the_floors_of_every_task_can_be_counted(name):
    found = task_card.floor_table(name)
    if tasks.parse(name).metric == "gain":
        assert "at size" not in found, "its floors are losses"
        return
    assert 1 <= len(found["at size"]) <= 2
    for n, at in found["at size"].items():
        assert tasks.parse(name).tokens(n) <= task_card.LONGEST or len(found["at size"]) == 1
        assert all(0 <= value <= 1 for value in at.values())


@pytest.mark.ci
def test_a_task_is_described_as_typed(posenc):
    said = posenc("describe", "even_pairs", "--size", "5")
    assert said.code == 0 and said.err == ""
    for part in (
        "even_pairs\n",
        "0 1 0 1 0 0 1 ?  ->  1",
        "oracle",
        "Baselines, in accuracy",
        "size 40: uniform 50.0 %",
    ):
        assert part in said.out
    found = json.loads(posenc("describe", "even_pairs", "--json").out)
    assert list(found["floors"]["at size"]) == ["40", "500"] and found["floors"]["rows"] > 1000
    assert found["floors"]["at size"]["40"]["uniform"] == 0.5 and found["example"]["size"] == 8


def test_a_suite_is_described_as_typed(posenc):
    said = posenc("describe", "suite:kazemnejad")
    assert said.code == 0 and said.err == "" and said.out.startswith("task=suite:kazemnejad\n")
    copy = next(line.split() for line in said.out.splitlines() if line.startswith("  copy "))
    assert copy == "copy decoder 4 to 20 43 5, 10, 15, 20, 25, 30, 40, 60, 80".split()
    assert "published    --preset kazemnejad" in said.out
    found = json.loads(posenc("describe", "suite:quick", "--json").out)
    assert [row["task"] for row in found["tasks"]] == list(tasks.suite("quick")) and found["settings"]["batch"] == 32
    assert found["tasks"][2]["trained on"] == [32] and found["presets"] == []


def test_a_task_is_cited_as_typed(posenc):
    said = posenc("cite", "copy(hints=30)")
    assert said.code == 0 and "kazemnejad2023impact" in said.out and "zhou2024algorithms" in said.out
    assert posenc("cite", "reverse").out.count("@") == 1, "of its family, what the task itself names"
    assert posenc("cite", "before").out.startswith("% before: ")
    assert len(json.loads(posenc("cite", "copy", "--json").out)) == 2


@pytest.mark.parametrize("name", kinds.MODELS.names())
def test_every_model_has_a_card(posenc, name):
    row = next(row for row in listing.models() if row["name"] == name)
    found = json.loads(posenc("describe", name, "--json").out)
    assert found["idea"] == row["idea"] and found["source"] == row["source"] and found["model"] == name
    assert found["position enters"] == ["input", "query and key", "score", "value"] or row["position"] == "input"
    assert list(found["settings"]) == [f.name for f in dataclasses.fields(kinds.MODELS.find(name))]
    run = Run(model=name, width=64, hidden=256 if "hidden" in found["reads of a run"] else None)
    assert found["weights"]["each layer"] == kinds.parse(name).weights(run)
    said = posenc("describe", name)
    assert said.code == 0 and said.out.startswith(f"{name}\n  {row['idea']}\n")
    assert all(setting in said.out for setting in (*found["settings"], *found["reads of a run"]))
    assert f"posenc run --model {name}\n" in said.out


def test_a_preset_is_named_alone_by_its_name_and_also_by_its_kind(posenc):
    said = posenc("describe", "quick_copy").out
    assert said == posenc("describe", "preset:quick_copy").out == posenc("describe", "preset", "quick_copy").out
    found = json.loads(posenc("describe", "ruoss", "--json").out)
    assert found["settings"]["left_out"] == list(PRESETS["ruoss"].left_out)


def test_an_experiment_is_described_by_its_header_and_the_reading_of_its_page(posenc):
    found = json.loads(posenc("describe", "counting", "--json").out)
    assert found["experiment"] == "counting" and found["seen"] == {"paper": 2, "copy": 0, "memory": 2}
    assert "0." in found["result"] and "](" not in found["result"], "links are for the page"


def test_a_name_is_of_a_scheme_or_of_a_task_and_never_of_both():
    assert not set(package.names()) & set(tasks.names())
    assert not {*package.names(), *tasks.names()} & set(kinds.MODELS.names())
    assert not {"all", "attention"} & set(package.names())


def test_a_name_that_is_two_things_shows_both(posenc, tmp_path):
    said = posenc("describe", "cope")
    scheme, preset = said.out.split("\n\ncope is also a preset:\n\n")
    assert "enters at" in scheme and preset == posenc("describe", "preset", "cope").out
    found = json.loads(posenc("describe", "cope", "--json").out)
    assert found["enters"] and found["also"]["preset"] == json.loads(posenc("describe", "preset:cope", "--json").out)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "nope.py").write_text('"""A claim of ours.\n\nCost: none.\n"""\n')
    said = posenc("describe", "nope")
    assert said.out.startswith("nope\n") and said.out.endswith("A claim of ours.\n\n  cost         none.\n")
    assert "\n\nnope is also an experiment:\n\nnope (an experiment)\n" in said.out
    assert "is also" not in posenc("describe", "rope").out and "also" not in json.loads(
        posenc("describe", "rope", "--json").out
    )


def test_a_scheme_that_a_stranger_calls_like_a_task_is_shown_as_both_and_checked_as_neither(posenc, monkeypatch):
    monkeypatch.setitem(TASKS._classes, "rope", TASKS.find("copy"))
    monkeypatch.setattr(task_card, "WORK", 2**14)  # floors of few examples
    said = posenc("describe", "rope").out
    assert "score reads" in said and "\n\nrope is also a task:\n\ncopy\n" in said
    assert "su2021roformer" in (both := posenc("cite", "rope").out) and "kazemnejad2023impact" in both
    said = posenc("check", "rope")
    assert said.code == 2 and said.out == "" and "'rope'" in said.err


def test_an_experiment_is_described_by_its_file(posenc, tmp_path):
    (tmp_path / "mine.py").write_text('"""Mine goes on.\n\nCost: a minute.\n"""\n')
    assert posenc("describe", "mine.py").out == "mine (an experiment)\n  Mine goes on.\n\n  cost         a minute.\n"
    shipped = json.loads(posenc("describe", "counting", "--json").out)
    assert json.loads(posenc("describe", shipped["file"], "--json").out) == shipped
    (tmp_path / "plain.py").write_text("x = 1\n")
    assert "describes no experiment" in posenc("describe", "plain.py").err


def test_floors_are_counted_on_rows_that_fall_into_few_equal_parts(monkeypatch):
    """A text of settings too: `token_at_index(indices=8)` was made in 8,065 parts of two rows, and never ended."""
    monkeypatch.setattr(task_card, "floors", lambda task, sizes, rows: rows)
    counted = [name for name in OURS if tasks.parse(name).metric != "gain"]
    for text in (*counted, "token_at_index(indices=8)"):
        rows = task_card.floor_table(text)["at size"]
        assert math.gcd(rows, ROWS) == min(rows, ROWS), text


@pytest.mark.parametrize("name", ["copies", "hidden_markov"])
def test_a_source_shows_what_readers_of_ever_more_tokens_lose(name):
    """The memory of one ends at 16; the other needs all of its text."""
    floors = task_card.floor_table(name)
    losses = floors["losses"]
    assert list(losses) == ["unigram", "1", "4", "16", "64", "all"] and floors["places"] == [64, 255]
    assert list(losses.values()) == pytest.approx(sorted(losses.values(), reverse=True))
    assert (losses["16"] - losses["all"] < 0.03) == (name == "hidden_markov")
    assert (losses["64"] - losses["all"] > 0.2) == (name == "copies")
    text = task_card.card(name, floors=floors).as_text()
    (line,) = (line for line in text.splitlines() if line.strip().startswith("last 16 "))
    bar = round(40 * (losses["16"] - losses["all"]) / (losses["unigram"] - losses["all"]))
    assert line.split()[2] == f"{losses['16']:.2f}" and line.count("█") == bar
    assert f"all tokens (Bayes)  {losses['all']:.2f}" in text


def test_windows_are_those_that_are_asked_for(posenc):
    said = posenc("describe", "hidden_markov", "--windows", "2,256", "--json")
    losses = json.loads(said.out)["floors"]["losses"]
    assert list(losses) == ["unigram", "2", "256", "all"] and losses["256"] == pytest.approx(losses["all"])
