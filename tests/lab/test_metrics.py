"""Results by another metric than their task's: what the records counted, and nothing that they did not."""

import math
from dataclasses import replace

import pytest

from posenc.lab.figures.tables import table
from posenc.lab.results.floors import best_floor, floors
from posenc.lab.results.statistics import cells, compare
from tests.lab import made

CURVE = {8: 1.0, 16: 0.9, 24: 0.6, 32: 0.5}


def results(metric="token", change=dict, outcome="done"):
    trials = [made.trial("rope", "copy", seed, CURVE, outcome=outcome) for seed in range(3)]
    for trial in trials:
        for size, counts in trial["evaluations"].items():
            trial["evaluations"][size] = change(counts | {"exact": 30, "last": int(size)})
    record = made.record("rope", "rotary", "copy", trials)
    record["task"]["metric"] = metric
    return made.results("one", [record])


def values(found):
    return {row.size: row.value for row in found.rows() if row.seed == 0}


def test_each_metric_is_the_ratio_of_its_counts():
    assert values(results().shown("accuracy")) == CURVE
    assert values(results().shown("exact")) == dict.fromkeys(CURVE, 0.3)
    assert values(results().shown("last")) == {n: n / 100 for n in CURVE}
    assert values(results("exact").shown("accuracy")) == CURVE


@pytest.mark.parametrize("own, metric", [("token", "accuracy"), ("error", "accuracy"), ("exact", "exact")])
def test_the_metric_of_the_task_changes_nothing(own, metric):
    assert results(own).shown(metric).records == results(own).records


def test_floors_of_another_metric_are_not_made_up():
    (whole,) = results().shown("exact").records
    assert floors(whole.task) == {n: {} for n in made.SIZES} and best_floor(whole.task, [24]) is None
    (last,) = results().shown("last").records
    assert floors(last.task) == {n: {"uniform": 0.1} for n in made.SIZES}
    (error,) = results("error").shown("last").records
    assert floors(error.task) == {n: {"uniform": 0.9} for n in made.SIZES}, "a share right, and no error"


@pytest.mark.parametrize("metric, value", [("last", 0.1), ("exact", 0.0)])
def test_a_diverged_run_is_a_guess(metric, value):
    assert set(values(results(outcome="diverged").shown(metric)).values()) == {value}


def test_a_table_says_which_metric_it_shows():
    assert "accuracy at the last token" in table(results().shown("last"))
    assert "whole answers right" in table(results().shown("exact"))


def test_what_was_not_counted_is_refused():
    older = results(change=lambda counts: {k: v for k, v in counts.items() if k != "last"})
    with pytest.raises(ValueError, match="on 'copy' did not count 'last' at size 8; read them by 'token'"):
        older.shown("last")
    with pytest.raises(ValueError, match="No metric is called .first.; take one of accuracy, exact, .*beyond, nats"):
        results().shown("first")
    with pytest.raises(ValueError, match="on 'copy' did not count 'nats' at size 8; read them by 'token'"):
        results().shown("nats")  # no older record did


def lossy(metric="token", outcome="done", floors_last=None):
    """Runs whose loss is a tenth of a nat for each token at size 8, and that for each size more."""
    record = results(metric, lambda counts: counts | {"nats": 102400 * counts["last"] // 8}, outcome).records[0]
    return replace(results(), records=(replace(record, task=replace(record.task, floors_last=floors_last)),))


def test_a_loss_is_read_in_nats_and_less_of_it_is_better():
    found = lossy().shown("nats")
    assert values(found) == pytest.approx({8: 0.1, 16: 0.2, 24: 0.3, 32: 0.4})
    assert floors(found.records[0].task)[8] == {"uniform": pytest.approx(-math.log(0.1))}
    assert "mean loss of answer tokens in nats" in table(found) and "90% to: " not in table(found)
    better = lossy()
    halved = [
        replace(t, evaluations={n: c | {"nats": c["nats"] // 2} for n, c in t.evaluations.items()}, id=t.id[::-1])
        for t in better.records[0].trials
    ]
    other = replace(better.records[0], label="alibi", trials=tuple(halved))
    (compared,) = compare(replace(better, records=(*better.records, other)).shown("nats"), "alibi", "rope")
    assert compared.better == 1 and compared.difference.median < 0


def test_a_bit_is_the_part_of_a_nat_that_halves():
    bits = lossy().shown("bits")
    assert values(bits) == pytest.approx({n: nats / math.log(2) for n, nats in values(lossy().shown("nats")).items()})
    assert values(lossy().shown("nats").shown("bits")) == values(bits), "whatever it was read by before"
    assert floors(bits.records[0].task)[8] == {"uniform": pytest.approx(math.log2(10))}
    assert "mean loss of answer tokens in bits" in table(bits) and "90% to: " not in table(bits)


def test_a_table_of_losses_has_the_rates_of_every_other_table():
    """The rate with the better validation stays chosen, though its losses are larger."""
    found = lossy()
    trials = [replace(t, id=t.id[::-1], knobs=replace(t.knobs, lr=3e-3)) for t in found.records[0].trials]
    worse = [replace(t, validation={8: t.validation[8] | {"correct": 1}}) for t in found.records[0].trials]
    larger = [
        replace(t, evaluations={n: counts | {"nats": 9 * counts["nats"]} for n, counts in t.evaluations.items()})
        for t in trials
    ]
    record = replace(found.records[0], trials=(*worse, *larger))
    assert [cell.rate for m in ("accuracy", "nats") for cell in cells(replace(found, records=(record,)).shown(m))] == [
        3e-3,
        3e-3,
    ]


def test_the_loss_of_a_diverged_run_is_that_of_a_guess_or_refused():
    assert list(values(lossy(outcome="diverged").shown("nats")).values()) == pytest.approx([-math.log(0.1)] * 4)
    record = lossy("exact", "diverged").records[0]
    with pytest.raises(ValueError, match="diverged run of 'rope' on 'copy' counts as a guess, whose loss its records"):
        replace(results(), records=(record,)).shown("nats")
