"""`posenc evaluate` as typed: what it passes on, prints and writes, and what it refuses."""

import json

import pytest

from posenc.lab.results.results import load
from posenc.lab.reuse import evaluate
from posenc.lab.tasks import spec
from tests.show.test_grouped import depths


@pytest.fixture
def asked(monkeypatch):
    """What the two functions are asked; they answer with what was recorded, and with groups by depth."""
    heard = []

    def ask(results, **how):
        heard.append(how)
        return results

    def groups(results, by, **how):
        heard.append({"by": by, **how})
        return depths()

    monkeypatch.setattr(evaluate, "ask", ask)
    monkeypatch.setattr(evaluate, "groups", groups)
    return heard


def test_whole_sizes_are_a_table_and_a_bundle(posenc, runs, asked):
    said = posenc(
        "evaluate", "mine", "--task", "copy(symbols=3)", "--sizes", "8,20:22", "--rows", "64", "--bundle", "b.json"
    )
    assert said.code == 0 and said.err == ""
    table = posenc("table", "mine").out
    assert said.out == f"{table}Wrote b.json.\n" and posenc("table", "b.json").out == table
    (how,) = asked
    assert spec(how.pop("task")) == "copy(symbols=3)"
    assert how == {"sizes": (8, 20, 21), "rows": 64, "schemes": None}
    assert json.loads(posenc("evaluate", "mine", "--json").out)["rows"]
    assert asked[-1] == {"task": None, "sizes": None, "rows": None, "schemes": None}


def test_schemes_are_separated_by_commas_outside_brackets(posenc, runs, asked):
    text = "rope,yarn(factor=4.0, base=10.0), [rope, nope]"
    for words in ((), ("--by", "depth")):
        assert posenc("evaluate", "mine", "--scheme", text, *words).code == 0
        assert asked[-1]["schemes"] == ["rope", "yarn(factor=4.0, base=10.0)", "[rope, nope]"]


def test_only_some_models_are_asked(posenc, runs, monkeypatch):
    kept = []
    monkeypatch.setattr(evaluate, "ask", lambda results, **how: kept.append(results) or results)
    assert posenc("evaluate", "mine", "--only", "scheme=rope", "seed=1").code == 0
    assert {(r.scheme, r.seed) for r in kept[0].rows()} == {("rope", 1)} and len(load("mine").rows()) > 4


def test_groups_are_text_json_table_and_figure(posenc, runs, asked):
    said = posenc("evaluate", "mine", "--by", "depth", "--csv", "d.csv", "--png", "d.svg")
    assert said.code == 0 and "depth 5: 0.60" in said.out and said.out.endswith("Wrote d.csv, d.svg.\n")
    assert asked[0]["by"] == ["depth"]
    with open("d.csv") as file:
        assert len(file.readlines()) == 1 + len(depths())
    with open("d.svg") as file:
        assert "run mine by depth" in file.read()
    told = json.loads(posenc("evaluate", "mine", "--by", "depth", "--json").out)
    assert told["by"] == ["depth"] and len(told["rows"]) == len(depths()) and told["diverged"] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--csv", "a.csv"], "--csv"),
        (["--png", "a.png"], "--png"),
        (["--by", "size", "--bundle", "b"], "--bundle"),
        (["--by", "size", "--png", "a.gif"], "--png"),
        (["--by", "size,"], "--by"),
        (["--scheme", "rope,"], "--scheme"),
        (["--scheme", "none:Such"], "'none'"),
        (["--task", "kopy"], "'kopy'"),
        (["--sizes", "a"], "'a'"),
        ([], "18 of 18"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(refuse, runs, words, says):
    assert says in refuse("evaluate", "mine", *words)
