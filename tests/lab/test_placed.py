"""Coordinates of tasks and of distances reach training: one step of each, in a sweep of its own."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.models.interface import Inputs, coordinate_inputs
from posenc.lab.run.plan import rehearsed
from posenc.lab.run.sweep import sweep
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.run import Plan, Run
from posenc.lab.train import needs
from tests.lab.test_sweep import Watch, trials
from tests.night import by_day

RUNS = {
    "reverse_string": [
        "learned @ given('coupled', shift=3) + alibi(form='half') @ random_sorted(64, 'layer', over='distances')",
        "transformer_xl(form='scored') @ random_sorted(64, 'layer', over='distances', version='as_released')",
    ],
    "copy(symbols=5)": [
        "learned @ segments('inside') + rope @ segments('which')",
        "abacus(rows=40) @ given('coupled', shift=9) + sinusoidal @ augment + rope @ random_float(9.0)",
        "complex_order(words=9) @ axes('index', 'token')",
    ],
    "addition(other='same')": ["learned @ given('coupled', shift=9, each='example') + rope"],
    "addition(format='abacus')": ["abacus(rows=40) @ given('digit', shift=9) + alibi"],
    "minesweeper(shortest=2)": [
        "learned @ given('row') + learned @ given('col') + rope_2d @ axes('row', 'col', shift=3)"
    ],
}


EVERY = [(task, scheme) for task, schemes in RUNS.items() for scheme in schemes]


# resolving and rehearsing every such run stay daily; lab/test_train.py trains with random positions
@pytest.mark.nightly
@pytest.mark.parametrize(("task", "scheme"), by_day(EVERY, EVERY[::3]))
def test_a_step_is_trained_and_evaluated(task, scheme, tmp_path):
    model = "encoder" if task == "reverse_string" else "decoder"
    run = Run(task=task, scheme=scheme, model=model, width=8, depth=2, heads=2, hidden=8, batch=4, length=4, buckets=1)
    two = Plan(steps=2, seeds=(0,), sizes=(4, 6), rows=8)
    assert sweep(Experiment("one", (run,), two), tmp_path / "one", watch=Watch()) == 0
    (found,) = trials(tmp_path / "one").values()
    assert found.outcome == "done" and np.isfinite(found.curve["loss"]).all()


@pytest.mark.parametrize(
    ("scheme", "row"),
    [
        ("learned @ random_sorted(2048)", "2047.*'learned'"),
        ("learned @ given('coupled', shift=1000)", "1040"),
        ("rope + learned @ offset(499) + window(3)", "819"),
        ("learned @ skip(9999) + [rope, nope]", "9998"),
        ("abacus(rows=40) @ given('coupled', shift=9)", "49 .*'abacus'"),
        ("learned @ random_sorted(321)", "320"),
        ("learned @ offset(241, evaluate='zero')", "320"),
        ("abacus(rows=20) @ segments('inside')", "'separator'"),
    ],
)
def test_positions_that_a_table_does_not_hold_are_refused_before_training(scheme, row):
    with pytest.raises(ValueError, match=row):
        rehearsed(Run(scheme=scheme, depth=2), Plan())


def test_a_sum_that_carries_has_its_row_though_others_do_not_carry():
    """A sum of two numbers of four digits has four or five."""
    run = {"task": "addition(format='abacus', other='same')", "model": "decoder", "length": 4, "buckets": 1}
    plan = Plan(sizes=(4,))
    rehearsed(Run(scheme="abacus(rows=6) @ given('digit')", **run), plan)
    with pytest.raises(ValueError, match="5 .*'abacus'"):
        rehearsed(Run(scheme="abacus(rows=5) @ given('digit')", **run), plan)


@pytest.mark.guard
@pytest.mark.parametrize("scheme", ["abacus", "rope + abacus(rows=40) + window(3)", "abacus + [rope, nope]"])
@pytest.mark.parametrize("task", ["addition", "copy(symbols=5)"])
def test_a_scheme_of_what_a_task_tells_does_not_train_on_the_index(scheme, task):
    said = "'abacus' reads the coordinates 'digit' of a task, not the index; put @ given('digit') behind"
    with pytest.raises(ValueError, match=re.escape(said)):
        rehearsed(Run(scheme=scheme, task=task, model="decoder", depth=2), Plan())
    with pytest.raises(ValueError, match=re.escape(said)):
        rehearsed(Run(scheme="rope", then=f"0.5 {scheme}", task=task, model="decoder", depth=2), Plan())


@pytest.mark.guard
@pytest.mark.parametrize("scheme", ["relative_2d", "rope_axes", "[rope, rope_2d]", "alibi + mrope"])
def test_a_scheme_of_several_axes_does_not_train_on_the_index(scheme):
    """Also one of distances, to which the laboratory gives no positions."""
    with pytest.raises(ValueError, match="reads [23] numbers for each token, and the index is one; put .*@ axes"):
        rehearsed(Run(scheme=scheme, task="copy(symbols=5)", model="decoder", depth=2), Plan())
    for told in ("relative_2d @ grid", "rope_2d @ axes('index', 'token')", "convit(axes=1)"):
        rehearsed(Run(scheme=told, task="copy(symbols=5)", model="decoder", depth=2), Plan())


def test_a_scheme_of_words_is_told_the_tokens():
    run = {"task": "copy(symbols=5)", "model": "decoder"}
    with pytest.raises(ValueError, match=re.escape("put @ axes('index', 'token') behind it")):
        rehearsed(Run(scheme="complex_order(words=9)", **run), Plan())
    told = "complex_order(words={}) @ axes('index', 'token')"
    rehearsed(Run(scheme=told.format(9), **run), Plan())
    with pytest.raises(ValueError, match="8 .*'complex_order'.* 8 "):
        rehearsed(Run(scheme=told.format(8), **run), Plan())
    rehearsed(Run(scheme="complex_order", **run), Plan())


def test_padding_is_no_token():
    told = coordinate_inputs(Inputs(jnp.array([[4, 7, 9]]), jnp.array([[True, True, False]])))
    assert told["token"].tolist() == [[4, 7, 0]] and told["index"].tolist() == [0, 1, 2]


@pytest.mark.guard
@pytest.mark.parametrize(
    "run",
    [
        {"scheme": "(rope + abacus(rows=400)) @ index", "task": "copy(symbols=5)", "model": "decoder"},
        {"scheme": "rope @ skip(100)"},
        {"scheme": "learned @ random_sorted(320)"},
        {"scheme": "learned @ offset(240, evaluate='zero')"},
    ],
    ids=["the index is asked for", "a skip beyond its target", "the last row", "the last row of training"],
)
def test_what_tables_hold_is_not_refused(run):
    """The task has 2 n tokens: 320 in the table, 80 in training. One row more is refused above."""
    rehearsed(Run(**run), Plan())


@pytest.mark.parametrize(
    ("scheme", "drawn"), [("rope @ random_sorted(2048)", 0), ("learned @ given('coupled', shift=9) + rope", 2)]
)
def test_examples_are_drawn_only_for_coordinates_that_read_them(scheme, drawn, monkeypatch):
    asked, draw = [], needs._inputs_drawn
    monkeypatch.setattr(needs, "_inputs_drawn", lambda task, n: asked.append(n) or draw(task, n))
    rehearsed(Run(scheme=scheme, length=4), Plan(sizes=(8,)))
    assert sorted(set(asked)) == [4, 8][:drawn]
