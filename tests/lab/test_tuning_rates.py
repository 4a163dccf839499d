"""A folder tunes once. Of older folders, where rates were added, the choice is among all, and rates are never mixed."""

import json

import pytest

from posenc.lab.cli import main
from posenc.lab.explain import patterns
from posenc.lab.figures.captions import rates as caption
from posenc.lab.figures.tables import table
from posenc.lab.results import rates
from posenc.lab.results.results import load
from posenc.lab.results.standing import finished, standing
from posenc.lab.reuse import continuing
from posenc.lab.run import sweep as sweeping
from posenc.lab.run import tuning
from posenc.lab.run.sweep import rehearse
from posenc.lab.store import folder as store
from tests.lab.retuned import HIGH, LOW, MIDDLE, asked, at, cell, cluster, reported, said, sweep, workers
from tests.lab.retuned import folder as folder  # fixtures
from tests.lab.retuned import recorder as recorder

SETTINGS = "width=8 depth=1 heads=2 hidden=8 batch=4 length=4 steps=2 sizes=4,8 rows=8 segment=1"


@pytest.fixture
def older(monkeypatch):
    """Rates are added as by older versions."""
    monkeypatch.setattr("posenc.lab.store.plans._check_rates", lambda *_: None)


# another choice in the same folder


OTHER = {
    "another rate": {"lr": (LOW, MIDDLE)},
    "a rate more": {"lr": (LOW, MIDDLE, HIGH)},
    "another tuning seed": {"tuning": (0, 5)},
    "a tuning seed more": {"tuning": (0, 1, 5)},
    "an untuned trial at another rate": {"tuning": (), "lr": (MIDDLE,)},
    "another scheme by another choice": {"scheme": "nope", "lr": (LOW, MIDDLE)},
}


@pytest.mark.parametrize("change", OTHER.values(), ids=OTHER)
def test_a_folder_tunes_once(folder, change):
    sweep(folder, lr=(LOW, HIGH))
    before = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    here = r"Learning rates are chosen here among 0.001, 0.01 \(tuning seeds 0, 1\), not among .*; use a new --name\.$"
    with pytest.raises(ValueError, match=here) as refused:
        sweep(folder, **change)
    assert "\n" not in str(refused.value)
    assert before == {path.name: path.read_bytes() for path in folder.glob("*.*")}


def test_the_same_choice_with_other_seeds_and_the_same_rates_untuned_go_on(folder):
    for change in ({}, {"seeds": (4,)}, {"scheme": "nope"}, {"tuning": (), "lr": (LOW,), "seeds": (7,)}, {}):
        assert sweep(folder, lr=change.pop("lr", (LOW, HIGH)), **change)[0] == 0
    assert reported(folder) == at(HIGH, 2, 3, 4) | {(7, LOW)} and finished(folder)


def test_the_command_line_refuses_another_choice_with_exit_code_2(folder, capsys):
    sweep(folder, lr=(LOW, HIGH))
    words = "sweep --grid scheme=rope task=even_pairs --set " + SETTINGS + " lr=1e-3,3e-3 tuning=0,1 seeds=2,3 --name a"
    assert main(words.split()) == 2
    refusal = capsys.readouterr().err.splitlines()[-1]
    assert refusal.endswith("not among 0.001, 0.003 (tuning seeds 0, 1); use a new --name.")


def test_a_tuning_trial_that_fails_says_what_to_do(folder, recorder):
    recorder.failing = {LOW, HIGH}
    code, notes = sweep(folder, lr=(LOW, HIGH))
    assert code == 1 and "2 trials to be reported. The same command tries those that failed again." in notes
    assert workers(folder) == 1 and cluster(folder) == 1 and reported(folder) == set()
    assert standing(folder).undecided == 2 and not finished(folder)


# folders of older versions, in which a later command could add rates to those that are chosen among


def test_a_rate_that_is_added_and_chosen_is_reported_alone(older, folder, monkeypatch):
    shown = []
    assert sweep(folder, lr=(LOW, MIDDLE), seeds=(2, 3))[0] == 0
    assert (cell(folder).rate, cell(folder).left_out) == (MIDDLE, {})
    found = rehearse(asked(lr=(LOW, MIDDLE, HIGH)), folder)
    assert (found["trials"], found["done"]) == (8, 4), "both may need to train again"
    assert sweep(folder, lr=(LOW, MIDDLE, HIGH), seeds=(2, 3))[0] == 0
    assert reported(folder) == at(MIDDLE, 2, 3) | at(HIGH, 2, 3)
    one, said = cell(folder), "Reported seeds that are left out, since the tuning seeds chose another learning rate"
    assert (one.rate, one.n, one.left_out) == (HIGH, 2, {MIDDLE: 2})
    assert f"{said}: rope (2 trials at 0.003) on even_pairs." in table(load(folder))
    assert any(line.startswith(said) for line in caption((one,)))
    assert {row.lr for row in rates.at_chosen(load(folder)).rows()} == {HIGH}, "and so are models that are asked anew"
    monkeypatch.setattr(continuing.checkpoints, "kept", lambda folder: store.survey(folder).outcomes)
    monkeypatch.setattr(patterns, "of_trial", lambda run, folder, line, size: (line, shown.append(line.knobs) or []))
    assert patterns.trained(str(folder), "rope", 4) == [] and [(k.seed, k.lr) for k in shown] == [(2, HIGH)]
    assert finished(folder) and rehearse(asked(lr=(LOW, MIDDLE, HIGH)), folder)["done"] == 8


def test_reported_seeds_can_be_trained_at_a_rate_that_ties_too(older, folder, recorder):
    """They train at one of two rates that tie; a command without tuning adds the other, and both are reported."""
    recorder.right = {LOW: 0.2, MIDDLE: 0.8, HIGH: 0.8}
    assert sweep(folder, lr=(LOW, MIDDLE, HIGH))[0] == 0
    assert reported(folder) == at(MIDDLE, 2, 3) and cell(folder).ties == (MIDDLE, HIGH)
    assert sweep(folder, lr=(HIGH,), tuning=())[0] == 0
    assert reported(folder) == at(MIDDLE, 2, 3) | at(HIGH, 2, 3) and finished(folder)
    one = cell(folder)
    assert (one.rate, one.reported, one.n, one.left_out) == (MIDDLE, (MIDDLE, HIGH), 2, {})
    assert {row.lr for row in rates.at_chosen(load(folder)).rows()} == {MIDDLE, HIGH}


def test_an_added_rate_that_learns_replaces_those_that_diverged(older, folder, recorder):
    recorder.right = {LOW: None, MIDDLE: None, HIGH: 0.05}  # worse than the guess that a diverged run counts as
    assert sweep(folder, lr=(LOW, MIDDLE))[0] == 0
    assert (cell(folder).rate, cell(folder).unstable, cell(folder).settled) == (LOW, True, True)
    recorder.failing = {HIGH}
    assert sweep(folder, lr=(LOW, MIDDLE, HIGH))[0] == 1
    assert (cell(folder).rate, cell(folder).unstable, cell(folder).settled) == (LOW, True, False)
    recorder.failing = set()
    assert workers(folder) == 0 and reported(folder) == at(LOW, 2, 3) | at(HIGH, 2, 3)
    assert (cell(folder).rate, cell(folder).unstable, cell(folder).left_out) == (HIGH, False, {LOW: 2})


def added(folder, recorder):
    """All is done at two rates; a better one was added, and its tuning trials have no result yet."""
    assert sweep(folder, lr=(LOW, MIDDLE), seeds=(2, 3))[0] == 0
    recorder.failing = {HIGH}
    assert sweep(folder, lr=(LOW, MIDDLE, HIGH), seeds=(2, 3))[0] == 1
    recorder.failing = set()


def test_the_earlier_choice_is_reported_as_one_that_may_change(older, folder, recorder):
    added(folder, recorder)
    one = cell(folder)
    assert (one.rate, one.n, one.settled, one.left_out) == (MIDDLE, 2, False, {})
    said = "The learning rate may still change, since tuning trials have no result: rope on even_pairs."
    assert said in table(load(folder))
    path = store.bundle(folder, folder / "b.json", "a")
    assert table(load(path), "csv") == table(load(folder), "csv") and said in table(load(path))


def test_one_of_two_tuning_trials_at_an_added_rate_changes_nothing_yet(older, folder, recorder):
    """One of two tuning trials at an added rate has a result. Were it to choose, no reported seed would be left."""
    added(folder, recorder)
    line = next(line for line in store.read_plan(folder) if line.knobs.lr == HIGH)
    store.write_record(folder, recorder.record([line]))
    assert (cell(folder).rate, cell(folder).n, cell(folder).settled) == (MIDDLE, 2, False)
    assert tuning.rates(folder) == {}


def test_reported_trials_of_an_earlier_choice_do_not_end_a_sweep(older, folder, recorder):
    added(folder, recorder)
    assert standing(folder).undecided == 2 and not finished(folder)
    left = [line for line in store.read_plan(folder) if line.knobs.lr == HIGH]
    store.write_record(folder, recorder.record(left))  # a worker was killed before it planned the second stage
    assert store.status(folder).counts["pending"] == 0 and standing(folder).undecided == 2 and not finished(folder)
    assert workers(folder) == 0 and finished(folder) and standing(folder).undecided == 0
    assert reported(folder) == at(MIDDLE, 2, 3) | at(HIGH, 2, 3)


def test_a_worker_that_plans_while_another_looks_does_not_end_the_sweep(older, folder, recorder, monkeypatch):
    sweeping.plan_experiment(asked(), folder)
    store.write_record(folder, recorder.record(store.read_plan(folder)))
    real, planned = store.status, []

    def status(folder):
        found = real(folder)
        planned.append(tuning.extend(folder))
        return found

    monkeypatch.setattr(store, "status", status)
    assert not finished(folder) and planned == [True]
    assert not finished(folder) and planned == [True, False]


def test_an_added_rate_that_is_not_chosen_trains_no_reported_trial_again(older, folder, recorder):
    recorder.right[HIGH] = 0.1
    added(folder, recorder)
    assert standing(folder).undecided == 2, "at most"
    assert sweep(folder, lr=(LOW, MIDDLE, HIGH), seeds=(2, 3))[0] == 0
    assert reported(folder) == at(MIDDLE, 2, 3) and finished(folder)


@pytest.mark.parametrize(
    "engine", [workers, cluster, lambda folder: sweep(folder, lr=(LOW, MIDDLE, HIGH), seeds=(2, 3, 4))[0]]
)
def test_reported_trials_at_a_rate_that_is_no_longer_chosen_are_not_trained(older, folder, engine):
    """The second stage was stopped, and a rate was added that is chosen instead."""
    assert sweep(folder, lr=(LOW, MIDDLE), seeds=(2, 3))[0] == 0
    sweeping.plan_experiment(asked(lr=(LOW, MIDDLE), seeds=(2, 3, 4)), folder)
    tuning.extend(folder)
    assert len(standing(folder).replaced) == 0 and store.status(folder).counts["pending"] == 1
    sweeping.plan_experiment(asked(lr=(LOW, MIDDLE, HIGH), seeds=(2, 3, 4)), folder)
    assert len(standing(folder).waiting) == 3 and standing(folder).undecided == 3
    assert engine(folder) == 0
    assert reported(folder) == at(MIDDLE, 2, 3) | at(HIGH, 2, 3, 4), "a trial was trained that is left out"
    assert finished(folder) and store.status(folder).counts["pending"] == 1
    found = "1 trial without a result will not be trained, since the tuning seeds chose another learning rate."
    assert found in said("status", "a") and json.loads(said("status", "a", "--json"))["replaced"] == 1
    assert said("status", "a", "--watch"), "it ends"


@pytest.mark.parametrize("engine", [workers, cluster])
def test_reported_trials_that_waited_are_trained_where_the_choice_stays(older, folder, recorder, engine):
    recorder.right[HIGH] = 0.1
    sweeping.plan_experiment(asked(lr=(LOW, MIDDLE)), folder)
    store.write_record(folder, recorder.record(store.read_plan(folder)))
    assert tuning.extend(folder)
    sweeping.plan_experiment(asked(lr=(LOW, MIDDLE, HIGH)), folder)
    assert len(standing(folder).waiting) == 2 and not finished(folder)
    assert engine(folder) == 0 and reported(folder) == at(MIDDLE, 2, 3) and finished(folder)


def test_status_says_it_on_the_command_line(older, folder, recorder):
    added(folder, recorder)
    assert "At most 2 more trials will be planned once the learning rates are chosen." in said("status", "a")
    assert json.loads(said("status", "a", "--json"))["undecided"] == 2
