"""`posenc explain attention` as typed: its text, files and JSON, and one sentence for what makes no sense."""

import json

import pytest


@pytest.mark.ci
def test_a_worksheet_and_its_solution_are_one_problem(posenc, tmp_path):
    both = posenc("explain", "attention", "--blank", "--solution", "--seed", "4", "--html", "a.html").out
    blank, solved = both.split("\n\n\n")[:2]
    assert blank == posenc("explain", "attention", "--blank", "--seed", "4").out.rstrip("\n")
    assert "[      ]" in blank and "[      ]" not in solved
    assert (tmp_path / "a.html").read_text(encoding="utf-8").count("<article") == 2
    assert posenc("explain", "attention", "--seed", "4").out.rstrip("\n") in both


def test_json_alone_is_on_stdout_and_has_the_steps_by_name(posenc):
    (sheet,) = json.loads(posenc("explain", "attention", "--form", "masked", "--json", "--html", "a.html").out)
    steps = {step["name"]: step for step in sheet["steps"]}
    assert list(steps)[:4] == ["embeddings", "matrices", "projections", "scores"]
    assert steps["softmax"]["matrices"][1]["values"][0] == [1, 0, 0]
    assert steps["mask"]["matrices"][0]["values"][0][1:] == [None, None]


@pytest.mark.ci
def test_a_scheme_that_few_tokens_leave_nothing_is_shown_as_trained_on_more(posenc):
    said = posenc("explain", "attention", "--scheme", "fope")
    assert said.code == 0 and "training length of 8" in " ".join(said.out.split())
    assert "trained on" not in posenc("explain", "attention", "--scheme", "fope(length=7)").out


def test_aliases_are_said_as_text_and_as_json(posenc, left):
    said = posenc("explain", "aliases", "--len", "32", "-o", "a.svg")
    assert said.code == 0 and "+16" in said.out and "positions 16 to 21  none" in said.out and left() == ["a.svg"]
    made = json.loads(posenc("explain", "aliases", "rope", "--len", "32", "--json").out)
    assert [(alias["distance"], round(alias["gap"], 2)) for alias in made["aliases"]] == [(-22, 0.16), (16, 0.16)]
    assert made["distances_trained_on"] == [-15, 12] and [part["first"] for part in made["places"]] == [3, 16, 22]
    wide, usual = (json.loads(posenc("explain", "aliases", *more, "--json").out) for more in (["--within=0.5"], []))
    assert len(wide["aliases"]) == 7 and len(usual["aliases"]) == 2
    assert "No distance beyond training" in posenc("explain", "aliases", "rope(base=10.0)").out
