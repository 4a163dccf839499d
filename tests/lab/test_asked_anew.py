"""Models asked anew: what was asked before is answered as before, groups add up, other tasks are counted."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.models.interface import inputs
from posenc.lab.results.results import load
from posenc.lab.reuse import evaluate, kept
from posenc.lab.reuse.evaluate import ask, groups
from posenc.lab.run import plan
from posenc.lab.run.sweep import sweep
from posenc.lab.spec.experiment import Experiment, grid
from posenc.lab.spec.run import Plan, Run
from posenc.lab.store import folder as store
from posenc.lab.tasks import parse
from posenc.lab.tasks.floors import floors
from posenc.lab.tasks.measure import evaluation_key, positions_key
from tests.lab.test_sweep import Watch

TASK = "addition_kazemnejad(shortest=1)"
DRAWN = "rope @ random_sorted(limit=32)"
OTHER = "addition_kazemnejad(law='as_released', shortest=1)"
BASE = Run(task=TASK, model="decoder", width=16, depth=1, heads=2, batch=16, length=3, shortest=1, longest=4, buckets=1)
PLAN = Plan(steps=40, seeds=(0, 1), lr=(1e-3, 1e-2), sizes=(2, 3, 4), rows=48)


def trained(folder, plan, *schemes):
    assert sweep(Experiment("kept", grid(BASE, scheme=schemes), plan), folder, keep=True, watch=Watch()) == 0
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two schemes, of which one draws its positions, at two rates, kept."""
    return trained(tmp_path_factory.mktemp("runs") / "kept", PLAN, "learned", DRAWN)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """One model, kept."""
    plan = dataclasses.replace(PLAN, seeds=(0,), lr=(1e-2,))
    return trained(tmp_path_factory.mktemp("runs") / "kept", plan, "learned")


def recorded(folder):
    return {t.id: t.evaluations for r in store.read_records(folder).records for t in r.trials}


@pytest.mark.nightly
def test_another_task_is_asked_of_models_as_they_are_by_hand(folder):
    other = parse(OTHER)
    results = load(folder).only(scheme="learned", lr=1e-2, seed=1)
    found = ask(results, task=other, sizes=(2, 4), rows=32)
    (record,) = found.records
    assert record.task.label == f"{OTHER}, trained on {TASK}"
    assert record.task.floors == floors(other, (2, 4))
    (line,) = [x for x in store.read_plan(folder) if x.id in results.trials()]
    model = kept.restored(plan.planned_run(line.run), folder, line.id)
    for n in (2, 4):
        batch = other.sample(evaluation_key(other, n), n, batch=32, n_max=4)
        said = jnp.argmax(model(inputs(batch), positions_key(1, "evaluation", n)), -1)
        right = np.asarray((said == batch.targets) & batch.score)
        assert record.trials[0].evaluations[n]["correct"] == right.sum() > 0


def with_perfect_validation(results, scheme, lr):
    """The results, with every validation example of one scheme right at one rate."""

    def validate(record, trial):
        if (results.label(record, trial), trial.knobs.lr) != (scheme, lr):
            return trial
        counts = {n: {**c, "exact": c["rows"], "correct": c["scored"]} for n, c in trial.validation.items()}
        return dataclasses.replace(trial, validation=counts)

    records = [dataclasses.replace(r, trials=tuple(validate(r, t) for t in r.trials)) for r in results.records]
    return dataclasses.replace(results, records=tuple(records))


@pytest.mark.nightly
def test_groups_by_size_are_the_whole(folder):
    before = recorded(folder)
    rows = [*groups(with_perfect_validation(load(folder), "learned", 1e-2), ["size"]).itertuples()]
    rates = {("learned", 1e-2), (DRAWN, 1e-3), (DRAWN, 1e-2)}
    assert {(row.scheme, row.lr) for row in rows} == rates, "rates that tie are all told, and no other"
    for row in rows:
        counts = before[row.trial][row.size]
        assert {name: getattr(row, name) for name in counts} == counts
        assert row.value == counts["exact"] / counts["rows"]
    assert len(rows) == len(rates) * 2 * 3, "of each, two seeds and three sizes"


@pytest.mark.nightly
def test_groups_are_those_that_the_examples_tell_of(one):
    results = load(one)
    found = groups(results, ["digits_a", "digits_b"], sizes=(2, 3), rows=64)
    task, count = parse(TASK), {}
    for n in (2, 3):
        batch = task.sample(evaluation_key(task, n), n, batch=64, n_max=3)
        for pair in zip(*(np.asarray(batch.strata[s]).tolist() for s in ("digits_a", "digits_b")), strict=True):
            count[pair] = count.get(pair, 0) + 1
    assert {(r.digits_a, r.digits_b): r.rows for r in found.itertuples()} == count
    whole = ask(results, sizes=(2, 3), rows=64).records[0].trials
    for name in ("correct", "scored", "exact", "rows"):
        assert found[name].sum() == sum(at[name] for t in whole for at in t.evaluations.values()), name
    assert found.correct.sum() > 0


@pytest.mark.nightly
def test_a_diverged_trial_is_told_and_not_asked(folder, monkeypatch):
    results = load(folder)
    first = results.records[0]
    lost = dataclasses.replace(first.trials[0], outcome="diverged", evaluations={}, validation={})
    changed = dataclasses.replace(results, records=(dataclasses.replace(first, trials=(lost, *first.trials[1:])),))
    found = ask(changed, sizes=(3,), rows=8)
    assert sum(t.outcome == "diverged" for r in found.records for t in r.trials) == 1
    floor = floors(parse(TASK), (3,))[3]["uniform"]
    assert [r.value for r in found.rows() if r.outcome == "diverged"] == [floor]
    assert lost.id not in set(groups(changed, ["size"]).trial)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"task": "even_pairs"}, "even_pairs.*2 classes"),
        ({"task": "copy(symbols=3)"}, r"copy\(symbols=3\)"),
        ({"sizes": (0,)}, r"sizes.*\(0,\)"),
        ({"sizes": (9,)}, "'learned'"),
        ({"rows": 0}, "rows.* 0"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_any_model_is(folder, how, says, monkeypatch):
    monkeypatch.setattr(evaluate, "restored_under", None)
    how = {**how, **({"task": parse(how["task"])} if "task" in how else {})}
    with pytest.raises(ValueError, match=says):
        ask(load(folder), **how)


@pytest.mark.nightly
def test_groups_that_examples_do_not_tell_of_and_models_that_were_not_kept_are_refused(folder, tmp_path):
    """Those of a run folder in cli/test_evaluate.py."""
    with pytest.raises(ValueError, match="'depth'.*digits_a"):
        groups(load(folder), ["depth"])
    with pytest.raises(ValueError, match="The bundle 'kept' holds no parameters"):
        ask(load(store.bundle(folder, tmp_path / "kept.json")))
