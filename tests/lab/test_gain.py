"""Sources whose least loss is exact: what a model gains of it, from the examples to the table."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab import metrics
from posenc.lab.figures.curves import place_panels
from posenc.lab.figures.tables import table
from posenc.lab.metrics import PARTS
from posenc.lab.results.floors import best_floor, exact_losses, floors, floors_by
from posenc.lab.results.learned import GAINED, hindrance, solves
from posenc.lab.results.results import load
from posenc.lab.results.statistics import cells
from posenc.lab.reuse.evaluate import ask, groups
from posenc.lab.run.sweep import sweep
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.run import Plan
from posenc.lab.store.schema import GroupRecord, check_record, read, written
from posenc.lab.tasks import parse
from posenc.lab.tasks.examples import texts_of
from posenc.lab.train.evaluation import examples_at
from posenc.lab.train.exact import FAR, WINDOWS, SizeLosses, clip_gain, row_gains, size_losses, with_gain
from tests.lab.test_sweep import BASE, Watch

RUN = dataclasses.replace(
    BASE, task="hidden_markov", scheme="rope", model="decoder", width=32, hidden=64, batch=16, length=16, heads=2
)
PLAN = Plan(steps=300, seeds=(0,), sizes=(8, 16, 40), rows=64, lr=(1e-2,))


SWEPT = pytest.mark.ci  # reads a sweep of 300 steps
"""The sums and cuts that make its numbers are compared by day, with examples of their own."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    sweep(Experiment("gain", (RUN,), PLAN), folder := tmp_path_factory.mktemp("run"), watch=Watch(), keep=True)
    return load(folder)


def test_the_exact_losses_are_those_of_the_test_examples():
    task = parse("hidden_markov")
    losses = size_losses(task, 64, (8, 16, 40), 40, 16, False)
    texts = texts_of(examples_at(task, 64, (8, 16, 40), 40), 40)
    expected = task.losses(texts)
    assert losses.bayes == round(PARTS * expected[:, 16:].sum()), "at places beyond training"
    assert losses.unigram == round(PARTS * -np.log(task.unigram[texts[:, 17:]]).sum())
    assert sum(losses.bins["bayes"]) == pytest.approx(PARTS * expected.sum(), abs=20)
    assert [int(w) for w in losses.bins["windows"]] == [w for w in WINDOWS if w < 40]
    assert len(losses.bins["windows"]["4"]) == 20
    window = np.array(losses.bins["windows"]["4"]) - losses.bins["bayes"]
    assert window[:2].sum() == 0 < window[4:].sum(), "the first four tokens are all there is"
    inside = size_losses(task, 64, (8, 16, 40), 16, 16, False)
    assert inside.bayes == pytest.approx(sum(inside.bins["bayes"]), abs=20)
    assert size_losses(parse("copy"), 64, (8,), 8, 8, False) is None
    validation = size_losses(task, 64, (8, 16, 40), 16, 16, True)
    assert validation.bayes != inside.bayes and "windows" not in validation.bins


def test_a_gain_is_cut_to_what_there_is():
    losses = SizeLosses({}, unigram=1000, bayes=600)
    for loss, gained in ((600, 400), (1000, 0), (700, 300), (1200, 0), (590, 400)):
        counts = with_gain({"nats": 7, FAR: loss}, losses)
        assert counts == {"nats": 7, "gained": gained, "gainable": 400}
        assert metrics.share(counts, "gain") == pytest.approx(gained / 400)
    assert with_gain({"nats": 7, FAR: 5}, None) == {"nats": 7}, "other records are as they were"
    assert SizeLosses({}, 5, 9).gainable == 1
    clip_gain(sums := {"gained": -3, "gainable": 10})
    assert sums == {"gained": 0, "gainable": 10}


@SWEPT
def test_a_sweep_records_what_was_gained_and_from_where(found):
    (record,) = found.records
    (trial,) = record.trials
    assert record.task.metric == "gain" and floors(record.task) == {n: {"unigram": 0.0} for n in (8, 16, 40)}
    for n in (8, 16, 40):
        exact, counts = exact_losses(record.task, n), trial.evaluations[n]
        loss = metrics.share(counts, "nats")
        assert exact["bayes"] - 0.02 < loss and FAR not in counts
        if n <= 16:
            gain = (exact["unigram"] - loss) / (exact["unigram"] - exact["bayes"])
            assert metrics.share(counts, "gain") == pytest.approx(max(gain, 0), abs=0.01)
    assert 0.2 < metrics.share(trial.evaluations[16], "gain") < 1
    assert metrics.share(trial.validation[16], "gain") == pytest.approx(
        metrics.share(trial.evaluations[16], "gain"), abs=0.1
    )
    assert best_floor(record.task, [16]) == ("unigram", 0.0)
    nats = floors_by(record.task, "nats")[40]
    assert nats["uniform"] == pytest.approx(np.log(16)) and nats["bayes"] < nats["unigram"] < nats["uniform"]


@SWEPT
def test_a_table_of_losses_names_the_exact_least_one_and_the_excess(found):
    text = table(found.shown("nats"))
    (cell,) = cells(found.shown("nats"))
    least, loss = cell.exact[40][1], cell.values[40][0]
    assert f"{loss:.2f} {loss - least:+.2f}" in text and f"40: {least:.2f} of" in text and "exact (Bayes)" in text
    header, row = table(found.shown("nats"), "csv").splitlines()
    values = dict(zip(header.split(","), row.split(","), strict=True))
    assert float(values["40 excess"]) == pytest.approx(loss - least)
    assert float(values["40 Bayes"]) == pytest.approx(least)
    assert "Bayes" not in table(found.shown()) and "share gained" in table(found.shown())
    (panel,) = place_panels(found.shown("nats"))
    assert {"unigram", "bayes", "window 4", "window 16"} <= panel.floors[min(panel.floors)].keys()


@SWEPT
def test_a_source_is_learned_where_three_quarters_are_gained(found):
    (by_gain,), (by_loss,) = cells(found), cells(found.shown("nats"))
    for gain in (GAINED - 0.01, GAINED + 0.01):
        unigram, bayes = by_loss.exact[16]
        losses = dataclasses.replace(by_loss, values={16: (unigram - gain * (unigram - bayes),)})
        gains = dataclasses.replace(by_gain, values={16: (gain,)})
        assert solves(gains) == solves(losses) == (gain > GAINED)
        assert hindrance([gains], ()) == ("" if gain > GAINED else "unsolved")


@SWEPT
def test_kept_models_gain_the_same_when_they_are_evaluated_again(found):
    (again,) = ask(found).records
    assert again.trials[0].evaluations == found.records[0].trials[0].evaluations
    assert again.task.places == found.records[0].task.places
    for row in groups(found, ["size"]).itertuples():
        expected = metrics.share(found.records[0].trials[0].evaluations[row.size], "gain")
        assert row.value == pytest.approx(expected, abs=0.002)


def test_gains_of_rows_sum_to_those_of_all():
    task, rng = parse("hidden_markov"), np.random.default_rng(0)
    batch = jax.device_get(examples_at(task, 32, (16,), 16))
    losses = rng.integers(0, 40000, 32)
    each = row_gains(task, batch, 16, 8, {FAR: losses, "rows": np.ones(32, int)})
    whole = size_losses(task, 32, (16,), 16, 8, False)
    assert each["gainable"].sum() == pytest.approx(whole.gainable, abs=40) and FAR not in each
    assert each["gained"].sum() == pytest.approx(whole.unigram - losses.sum(), abs=40)
    other = {FAR: jnp.int32(3), "correct": 2}
    assert row_gains(parse("copy"), batch, 16, 8, other) == {"correct": 2}


@SWEPT
@pytest.mark.parametrize("losses", [[1.5] * 20, [-1] * 20, [3], "many"])
def test_exact_losses_that_cannot_be_are_refused(found, losses):
    (record,) = found.records
    check_record(record)
    for change in ({"bayes": losses}, {"windows": {"4": losses}}, {"windows": losses}):
        places = {**record.task.places, 40: {**record.task.places[40], **change}}
        content = written(dataclasses.replace(record, task=dataclasses.replace(record.task, places=places)))
        with pytest.raises(ValueError, match="bayes|windows|its exact losses .* are not a count for each place"):
            check_record(read(GroupRecord, content))
