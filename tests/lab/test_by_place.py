"""Hits by place: what a sweep counts in each bin of places, and beyond the places that were trained."""

import dataclasses
import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from posenc.lab import metrics
from posenc.lab.figures import style
from posenc.lab.figures.across import draw
from posenc.lab.figures.curves import place_panels
from posenc.lab.figures.panels import Panel
from posenc.lab.results.floors import floors
from posenc.lab.results.results import load
from posenc.lab.run.sweep import sweep
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.run import Plan
from posenc.lab.store import records
from posenc.lab.tasks import parse
from posenc.lab.tasks.floors import floors_by_metric
from posenc.lab.tasks.measure import first_beyond
from tests.lab.test_sweep import BASE, Watch

pytestmark = pytest.mark.ci  # every test reads a sweep of 300 steps

WIDER = {"width": 16, "hidden": 16, "batch": 8, "length": 8, "longest": 80}
RUN = dataclasses.replace(BASE, task="token_k_back", scheme="learned", model="decoder", **WIDER)
SIZES = (4, 8, 16, 80)
PLAN = Plan(steps=300, seeds=(0,), sizes=SIZES, rows=64, lr=(1e-2,))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    runs = (RUN, dataclasses.replace(RUN, task="even_pairs", model="encoder"))
    sweep(Experiment("places", runs, PLAN), folder := tmp_path_factory.mktemp("run"), watch=Watch())
    return load(folder)


def of(found, task):
    (record,) = (r for r in found.records if r.task.label == task)
    return record, record.trials[0]


def test_bins_sum_to_what_is_counted(found):
    record, trial = of(found, "token_k_back")
    for n in SIZES:
        width, scored, right = record.task.places[n]["width"], record.task.places[n]["scored"], trial.places[n]["right"]
        counts = trial.evaluations[n]
        assert (sum(right), sum(scored)) == (counts["correct"], counts["scored"])
        assert sum(trial.places[n]["nats"]) == pytest.approx(counts["nats"], abs=64)  # each sum is rounded by itself
        assert len(right) == len(scored) == -(-n // width) <= 32
        if width == 1 and n > 8:
            assert (sum(right[8:]), sum(scored[8:])) == (counts["beyond"], counts["beyond_scored"])


def test_learned_positions_stop_at_the_length_trained_on(found):
    """What the mean over places hides: within, they are right; beyond, they guess."""
    record, trial = of(found, "token_k_back")
    share = np.divide(trial.places[16]["right"], np.maximum(record.task.places[16]["scored"], 1))
    assert share[1:8].min() > 0.9 and share[8:].max() < 0.5
    rows = {row.size: row for row in found.shown().rows() if row.task == "token_k_back"}
    assert rows[16].metric == "beyond" and rows[8].value == metrics.share(trial.evaluations[8], "token") > 0.9
    assert rows[16].value == pytest.approx(np.mean(share[8:]), abs=1e-6)
    mean = {row.size: row.value for row in found.shown("accuracy").rows() if row.task == "token_k_back"}
    assert mean[8] == rows[8].value and mean[16] > rows[16].value + 0.2


def test_a_loss_in_evaluation_is_small_where_answers_are_right_and_above_a_guess_beyond(found):
    """A model that is sure of wrong answers has a larger loss than a guess."""
    rows = {row.size: row for row in found.shown("nats").rows() if row.task == "token_k_back"}
    assert rows[8].value < 0.2 and rows[16].value > 1 and rows[8].floor == pytest.approx(np.log(16))
    record, trial = of(found, "token_k_back")
    share = np.divide(trial.places[16]["nats"], np.maximum(record.task.places[16]["scored"], 1)) / 1024
    assert share[1:8].max() < 0.3 and share[8:].min() > np.log(16)
    (answer,) = (row for row in found.shown("nats").rows() if row.task == "even_pairs" and row.size == 8)
    assert answer.value < 1 and answer.floor == pytest.approx(np.log(2))


def test_a_loss_curve_has_fifty_points_or_more(found):
    _, trial = of(found, "token_k_back")
    assert trial.curve["step"] == list(range(5, 301, 5)) and len(trial.curve["loss"]) == 60  # segments have 100 steps


def test_floors_of_what_is_read_are_those_of_its_places(found):
    record, _ = of(found, "token_k_back")
    task = parse("token_k_back")
    assert record.task.first_beyond == first_beyond(task, 16, 8) == 8
    counted = floors_by_metric(task, SIZES, 8)
    for metric, table in (("beyond", counted["beyond"]), ("last", counted["last"]), ("accuracy", counted["token"])):
        (by,) = (r.task for r in found.shown(metric).records if r.task.label == "token_k_back")
        assert floors(by) == table


def test_a_task_of_one_answer_has_hits_at_the_place_of_its_slot_and_is_read_by_its_metric(found):
    record, trial = of(found, "even_pairs")
    for n in SIZES:
        width, counts = record.task.places[n]["width"], trial.evaluations[n]
        scored, right = (np.flatnonzero(c) for c in (record.task.places[n]["scored"], trial.places[n]["right"]))
        assert scored.tolist() == right.tolist() == [n // width], "the slot stands behind the input"
        assert trial.places[n]["right"][n // width] == counts["correct"]
    assert record.task.read_by is None
    assert {row.metric for row in found.shown().rows() if row.task == "even_pairs"} == {"accuracy"}
    beyond = {row.size: row.value for row in found.shown("beyond").rows() if row.task == "even_pairs"}
    assert beyond == {row.size: row.value for row in found.rows() if row.task == "even_pairs"}
    assert {panel.title for panel in place_panels(found)} == {"token_k_back, size 80"}, "one place is no figure"


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda r: r["trials"][0]["places"]["16"]["right"].__setitem__(9, 10**6), "counts at size 16 1000000 right of"),
        (lambda r: r["trials"][0]["places"]["16"]["right"].pop(), "has places at size 16 that its task has not"),
        (lambda r: r["trials"][0]["places"]["16"]["nats"].pop(), "has losses at size 16 that are not a count for each"),
        (lambda r: r["task"]["places"]["16"].update(width=0), "places at size 16 are"),
        (lambda r: r["task"].update(read_by="first"), "it is read by 'first'"),
        (lambda r: r["task"].update(first_beyond=-1), "has -1 as task.first_beyond; int >= 0"),
        (lambda r: r["task"]["floors_beyond"]["16"].update(bag=1.5), "has 1.5 as task.floors_beyond"),
        (lambda r: r["trials"][0]["evaluations"]["16"].update(beyond=10**6), "1000000 beyond of"),
    ],
)
def test_places_that_cannot_be_are_refused(found, change, said):
    record, _ = of(found, "token_k_back")
    content = records.parsed(json.dumps(records.content_of(record)).encode())
    change(content)
    with pytest.raises(ValueError, match=said):
        records.record_of(content)


def test_an_axis_of_losses_reaches_its_yardsticks_and_has_labels():
    floors = dict.fromkeys((1.0, 2.0), {"uniform": 8.0, "order 5": 2.0})
    points = {"rope": {1.0: [3.0, 3.1], 2.0: [3.2, 3.3]}}
    panel = Panel(points, "place", "loss (bits)", "text", "", floors, None, log=False, falling=True)
    axes = Figure().subplots()
    draw(axes, panel, {"rope": style.Look(style.FAINT, "", "-", 0.8)})
    low, high = axes.get_ylim()
    assert low < 2 and high > 8
    assert [text.get_text() for text in axes.texts] == ["guess", "order 5"], "none below the axis"
    minor = axes.yaxis.get_minor_formatter()
    assert minor(3.0, 0) == "3"
    axes.set_ylim(0.5, 8)
    assert minor(3.0, 0) == "", "1 has a label"
