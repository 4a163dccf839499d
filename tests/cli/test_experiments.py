"""One object from grids, files and TOML; words split where they should."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.lab.spec import settings as words
from posenc.lab.spec.experiment import Experiment, Header, NothingMatches, from_words, grid
from posenc.lab.spec.experiment_file import from_file, header
from posenc.lab.spec.run import Plan, Run
from posenc.lab.spec.toml import from_toml, to_toml

SPECS = ("rope", "rope(base=5e5) + alibi", "[rope, nope]", "alibi(form='half')", "rope @ random_sorted(2048, 'layer')")


def several(inner):
    return st.lists(inner, min_size=1, max_size=3)


items = st.recursive(
    st.text("ab =+@.", min_size=1, max_size=4).map(str.strip).filter(bool),
    lambda inner: st.one_of(
        several(inner).map(lambda parts: f"f({', '.join(parts)})"),
        several(inner).map(lambda parts: f"[{','.join(parts)}]"),
        several(inner).map(lambda parts: f"'{','.join(parts).replace(chr(39), '')}'"),
    ),
    max_leaves=6,
)


@given(st.lists(items, min_size=1, max_size=5))
def test_commas_inside_brackets_and_quotes_belong_to_the_value(values):
    assert words.split(",".join(values)) == values
    assert words.split(" , ".join(values)) == values


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("5", (0, 1, 2, 3, 4)),
        ("3,5,7", (3, 5, 7)),
        ("0:5", (0, 1, 2, 3, 4)),
        ("2:4,9", (2, 3, 9)),
        ("1,", None),
        ("0", None),
    ],
)
def test_seeds_are_a_count_a_list_or_a_span(text, seeds):
    if seeds is None:
        with pytest.raises(ValueError, match="seeds"):
            words.seeds(text)
    else:
        assert words.seeds(text) == seeds


def test_grids_and_sets_become_runs_and_a_plan():
    made = from_words(
        ["scheme=rope(base=1e4),[rope, nope]", "task=copy,reverse_string", "lr=1e-3,3e-4"],
        ["width=32", "depth=1", "steps=100", "hidden=None"],
        seeds="2",
        name="mine",
    )
    assert [(r.scheme, r.task) for r in made.runs] == [
        ("rope(base=1e4)", "copy"),
        ("rope(base=1e4)", "reverse_string"),
        ("[rope, nope]", "copy"),
        ("[rope, nope]", "reverse_string"),
    ]
    assert made.runs[0].width == 32 and made.plan == Plan(steps=100, seeds=(0, 1), lr=(1e-3, 3e-4))
    assert made.trials == 16 and made.name == "mine"


def test_every_field_of_run_and_plan_can_be_set():
    for cls in (Run, Plan):
        for f in dataclasses.fields(cls):
            usual = f.default
            text = ",".join(map(str, usual)) if isinstance(usual, tuple) else str(usual)
            assert words.value(f.name, text) == usual, f.name


def test_many_trials_ask_for_confirmation_and_are_not_built_before():
    grids = [f"width={','.join(str(8 * n) for n in range(1, 1001))}", f"batch={','.join(map(str, range(1, 1001)))}"]
    with pytest.raises(ValueError, match="3000000 trials.*--yes"):
        from_words(grids)


def test_a_grid_refuses_what_is_unknown_empty_or_double():
    for axes, said in [({"sceme": ["rope"]}, "sceme"), ({"scheme": []}, "no values"), ({"width": [64, 64]}, "twice")]:
        with pytest.raises(ValueError, match=said):
            grid(Run(), **axes)
    with pytest.raises(TypeError, match="scheme"):
        grid(Run(), scheme="rope")
    assert grid(Run()) == (Run(),)


def test_an_experiment_refuses_no_runs_and_double_ones():
    for runs, said in [((), "no runs"), ((Run(), Run()), "twice")]:
        with pytest.raises(ValueError, match=said):
            Experiment("x", runs)


def test_only_keeps_what_matches_and_says_what_there_is():
    made = from_words(["scheme=rope + alibi,t5,nope", "task=copy,reverse_string"])
    assert [r.scheme for r in made.only(["scheme=rope+alibi", "task=copy"]).runs] == ["rope + alibi"]
    with pytest.raises(NothingMatches, match="rope \\+ alibi, t5, nope"):
        made.only(["scheme=t5,alibi"])


runs = st.builds(
    Run,
    scheme=st.sampled_from(SPECS),
    task=st.sampled_from(["copy", "token_k_back(k=3)"]),
    model=st.sampled_from(["encoder", "decoder"]),
    width=st.sampled_from([12, 60]),
    heads=st.sampled_from([1, 3]),
    hidden=st.sampled_from([None, 48]),
    dtype=st.sampled_from(["float32", "bfloat16"]),
)
plans = st.builds(
    Plan,
    steps=st.integers(0, 10**6),
    seeds=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=4, unique=True).map(tuple),
    lr=st.lists(st.floats(0, 1024, width=32), min_size=1, max_size=3, unique=True).map(tuple),
    sizes=st.none() | st.lists(st.integers(1, 999), min_size=1, max_size=3).map(tuple),
    clip=st.floats(0, 2.0**100, exclude_min=True, width=32),
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@pytest.mark.ci
@settings(deadline=None, max_examples=40)
@given(st.lists(runs, min_size=1, max_size=6, unique=True), plans, texts, st.builds(Header, texts, texts))
def test_an_experiment_survives_toml(runs, plan, source, head):
    made = Experiment("mine", tuple(runs), plan, source, head)
    assert from_toml(to_toml(made)) == made


def test_a_file_has_what_all_runs_share_and_a_line_for_each():
    made = from_words(["task=copy,reverse_string", "scheme=rope,alibi,nope"], ["width=32"])
    text = to_toml(made)
    assert text.count("width = ") == 1 and '    {task = "copy", scheme = "nope"},\n' in text and text.count("{") == 6
    assert from_toml(text) == made
    assert "runs" not in to_toml(from_words(["scheme=rope"]))


def test_a_file_written_by_hand_is_read(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[plan]\nseeds = "3,4"\nlr = 1e-3\n[run]\nbatch = 8\n'
        '[[runs]]\nscheme = "rope"\nwidth = 32\n[[runs]]\nscheme = "alibi"\nheads = 2\n'
    )
    made = from_file(path)
    assert [(r.scheme, r.width, r.heads, r.batch) for r in made.runs] == [
        ("rope", 32, Run().heads, 8),
        ("alibi", Run().width, 2, 8),
    ]
    assert made.plan.seeds == (3, 4) and made.name == "mine"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[run", "TOML"),
        ("[rnu]\n", "'run'"),
        ("run = 3\n", r"\[run\]"),
        ("[grid]\nscheme = ['rope']\n", "'grid'"),
        ("[run]\nwidht = 3\n", "'width'"),
        ("[run]\nwidth = 'x'\n", "whole number"),
        ("[run]\nwidth = true\n", "whole number"),
        ("[plan]\nseeds = []\n", "at least"),
        ("runs = 'rope'\n", r"written runs = \[\{...\}, ...\]"),
        ("runs = ['rope']\n", r"written runs = \[\{...\}, ...\]"),
        ("runs = []\n", "no runs"),
        ("runs = [{width = 8}]\n[run]\nwidth = 8\n", "width.* twice"),
        ("runs = [{widht = 8}]\n", "'width'"),
        ("runs = [{task = 'copy'}, {task = 'copy'}]\n", "twice"),
        ("preset = 'rouss'\n", "'rouss'"),
        ("preset = ['ruoss']\n", 'written preset = "..."'),
        ("[header]\ncliam = 'x'\n", "'claim'"),
        ("name = '../x'\n", "name"),
    ],
)
def test_a_wrong_file_is_refused_with_what_is_wrong(text, said):
    with pytest.raises(ValueError, match=said):
        from_toml(text)


PYTHON = '''"""Rope
turns.

And more of it.

Source: someone
(2020).
Cost: 2 minutes
on 2 cores.
Result: it turned.
"""
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run
plan = Plan(steps=5)
def runs():
    return grid(Run(), scheme=["rope", "alibi"])
def figure(results):
    return results
'''


def test_an_experiment_file_is_a_claim_with_runs(tmp_path):
    path = tmp_path / "turns.py"
    path.write_text(PYTHON)
    made = from_file(path)
    assert made.name == "turns" and made.plan.steps == 5 and len(made.runs) == 2 and made.figure(3) == 3
    parts = {"source": "someone (2020).", "cost": "2 minutes on 2 cores.", "result": "it turned."}
    assert made.header == Header("Rope turns.", **parts)
    assert from_toml(to_toml(made)) == made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "runs"),
        ("def runs(:\n", "SyntaxError"),
        ("\nimport nowhere_at_all\n", "line 2.*nowhere_at_all"),
        ("def runs():\n    return 1 / 0\n", "line 2.*ZeroDivisionError"),
        ("def runs():\n    return []\n", "no runs"),
        ("def runs():\n    return ['rope']\n", "Run"),
        ("from posenc.lab.spec.run import *\ndef runs():\n    return [Run(width=3)]\n", "line 3.*4 heads"),
    ],
)
def test_a_broken_experiment_file_says_where(tmp_path, text, said):
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        from_file(path)


def test_a_result_may_have_paragraphs_and_no_other_part_of_a_header():
    head = header("A claim.\n\nAn aside.\n\nCost: a\nminute\n\nof that.\nResult: one,\ntwo.\n\n  \nThree\n  four.\n")
    assert (head.claim, head.cost, head.result) == ("A claim.", "a minute", "one, two.\n\nThree four.")
    assert header("A claim.").result == ""
