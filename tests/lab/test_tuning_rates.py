"""A folder tunes once. Where tuning trials run again and choose another rate, seeds of two rates are never mixed."""

import json

import pytest

from posenc.lab.explain import patterns
from posenc.lab.figures.captions import rates as caption
from posenc.lab.figures.tables import table
from posenc.lab.results import rates
from posenc.lab.results.results import load
from posenc.lab.results.standing import finished, standing
from posenc.lab.reuse import kept
from posenc.lab.run import sweep as sweeping
from posenc.lab.run import tuning
from posenc.lab.run.sweep import rehearse
from posenc.lab.store import folder as store
from tests.lab.retuned import HIGH, LOW, MIDDLE, asked, at, cell, cluster, reported, said, sweep, workers
from tests.lab.retuned import folder as folder  # fixtures
from tests.lab.retuned import recorder as recorder

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


def test_a_folder_with_trials_at_another_rate_does_not_tune(folder):
    """Of such a trial the seed could be one that chooses, and be reported."""
    assert sweep(folder, tuning=(), lr=(MIDDLE,), seeds=(0,))[0] == 0
    with pytest.raises(ValueError, match="among 0.001, 0.01 .* 0.003; use a new --name"):
        sweep(folder)


def test_the_same_choice_with_other_seeds_and_the_same_rates_untuned_go_on(folder):
    for change in ({}, {"seeds": (4,)}, {"scheme": "nope"}, {"tuning": (), "lr": (LOW,), "seeds": (7,)}, {}):
        assert sweep(folder, lr=change.pop("lr", (LOW, HIGH)), **change)[0] == 0
    assert reported(folder) == at(HIGH, 2, 3, 4) | {(7, LOW)} and finished(folder)


def test_a_tuning_trial_that_fails_says_what_to_do(folder, recorder):
    recorder.failing = {LOW, HIGH}
    code, notes = sweep(folder, lr=(LOW, HIGH))
    assert code == 1 and "2 trials to be reported. The same command tries those that failed again." in notes
    assert workers(folder) == 1 and cluster(folder) == 1 and reported(folder) == set()
    assert standing(folder).undecided == 2 and not finished(folder)


# tuning trials that run again, as where a damaged record was of them, may choose another rate


def retrained(folder, recorder, rate=LOW, right=0.2):
    """The tuning trials have run again, with this accuracy at one rate."""
    recorder.right[rate] = right
    store.write_record(folder, recorder.record([line for line in store.read_plan(folder) if line.tuning]))


def lost(folder, recorder):
    """All is done at the higher rate, and the record of the tuning trials is lost."""
    assert sweep(folder)[0] == 0
    for path in (folder / "records").iterdir():
        path.unlink()
    store.write_record(folder, recorder.record([line for line in store.read_plan(folder) if not line.tuning]))


def test_seeds_of_an_earlier_choice_are_left_out_and_said_wherever_they_would_show(folder, recorder, monkeypatch):
    shown = []
    assert sweep(folder)[0] == 0 and (cell(folder).rate, cell(folder).left_out) == (HIGH, {})
    retrained(folder, recorder, LOW, 0.9)
    assert standing(folder).undecided == 2 and not finished(folder)
    assert rehearse(asked(), folder)["done"] == 4
    assert sweep(folder)[0] == 0 and reported(folder) == at(HIGH, 2, 3) | at(LOW, 2, 3)
    one, said = cell(folder), "Reported seeds that are left out, since the tuning seeds chose another learning rate"
    assert (one.rate, one.n, one.left_out) == (LOW, 2, {HIGH: 2})
    assert f"{said}: rope (2 trials at 0.01) on even_pairs." in table(load(folder))
    assert any(line.startswith(said) for line in caption((one,)))
    assert {row.lr for row in rates.at_chosen(load(folder)).rows()} == {LOW}, "and so are models that are asked anew"
    monkeypatch.setattr(kept.checkpoints, "kept", lambda folder: store.survey(folder).outcomes)
    monkeypatch.setattr(patterns, "of_trial", lambda run, folder, line, size: (line, shown.append(line.knobs) or []))
    assert patterns.trained(str(folder), "rope", 4) == [] and [(k.seed, k.lr) for k in shown] == [(2, LOW)]
    assert finished(folder) and rehearse(asked(), folder)["done"] == 6


def test_reported_seeds_can_be_trained_at_a_rate_that_ties_too(folder, recorder):
    """They train at one of two rates that tie; a command without tuning adds the other, and both are reported."""
    recorder.right = {LOW: 0.2, MIDDLE: 0.8, HIGH: 0.8}
    assert sweep(folder, lr=(LOW, MIDDLE, HIGH))[0] == 0
    assert reported(folder) == at(MIDDLE, 2, 3) and cell(folder).ties == (MIDDLE, HIGH)
    assert sweep(folder, lr=(HIGH,), tuning=())[0] == 0
    assert reported(folder) == at(MIDDLE, 2, 3) | at(HIGH, 2, 3) and finished(folder)
    one = cell(folder)
    assert (one.rate, one.reported, one.n, one.left_out) == (MIDDLE, (MIDDLE, HIGH), 2, {})
    assert {row.lr for row in rates.at_chosen(load(folder)).rows()} == {MIDDLE, HIGH}


def test_a_rate_that_learns_replaces_one_at_which_all_diverged(folder, recorder):
    recorder.right = {LOW: None, HIGH: None}
    assert sweep(folder)[0] == 0
    assert (cell(folder).rate, cell(folder).unstable, cell(folder).settled) == (LOW, True, True)
    retrained(folder, recorder, HIGH, 0.05)  # worse than the guess that a diverged run counts as
    assert workers(folder) == 0 and reported(folder) == at(LOW, 2, 3) | at(HIGH, 2, 3)
    assert (cell(folder).rate, cell(folder).unstable, cell(folder).left_out) == (HIGH, False, {LOW: 2})


def test_while_tuning_trials_have_no_result_the_earlier_choice_is_said_to_be_one_that_may_change(folder, recorder):
    lost(folder, recorder)
    low, high = ([line for line in store.read_plan(folder) if line.tuning and line.knobs.lr == r] for r in (LOW, HIGH))
    store.write_record(folder, recorder.record(high))
    one, said_of = cell(folder), "The learning rate may still change, since tuning trials have no result"
    assert (one.rate, one.n, one.settled, one.left_out) == (HIGH, 2, False, {})
    assert f"{said_of}: rope on even_pairs." in table(load(folder))
    path = store.bundle(folder, folder / "b.json", "a")
    assert table(load(path), "csv") == table(load(folder), "csv") and said_of in table(load(path))
    assert "At most 2 more trials will be planned once the learning rates are chosen." in said("status", "a")
    assert json.loads(said("status", "a", "--json"))["undecided"] == 2
    store.write_record(folder, recorder.record(low[:1]))  # were it to choose, no reported seed would be left
    assert (cell(folder).rate, cell(folder).n, cell(folder).settled) == (HIGH, 2, False)
    assert tuning.rates(folder) == {} and not finished(folder)


@pytest.mark.parametrize("engine", [workers, cluster, lambda folder: sweep(folder, seeds=(2, 3, 4))[0]])
@pytest.mark.parametrize("stays", [True, False])
def test_reported_trials_that_wait_are_trained_where_the_choice_stays_alone(folder, recorder, engine, stays):
    """The second stage was stopped, and then the record of the tuning trials was lost."""
    lost(folder, recorder)
    sweeping.plan_experiment(asked(seeds=(2, 3, 4)), folder)
    retrained(folder, recorder)
    assert tuning.extend(folder)
    (newest,) = (line for line in store.read_plan(folder) if line.knobs.seed == 4)
    for path in (folder / "records").iterdir():
        path.unlink()
    store.write_record(folder, recorder.record([line for line in store.read_plan(folder) if line.knobs.seed in (2, 3)]))
    assert newest.id in standing(folder).waiting and standing(folder).undecided == 3
    recorder.right[LOW] = 0.2 if stays else 0.9
    assert engine(folder) == 0 and finished(folder)
    assert reported(folder) == (at(HIGH, 2, 3, 4) if stays else at(HIGH, 2, 3) | at(LOW, 2, 3, 4))
    assert store.status(folder).counts["pending"] == (not stays), "a trial is not trained that would be left out"
    if not stays:
        told = "1 trial without a result will not be trained, since the tuning seeds chose another learning rate."
        assert told in said("status", "a") and json.loads(said("status", "a", "--json"))["replaced"] == 1
    assert said("status", "a", "--watch"), "it ends"


def test_a_worker_that_plans_while_another_looks_does_not_end_the_sweep(folder, recorder, monkeypatch):
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
