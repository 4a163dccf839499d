"""Cells of the atlas: by the rules that its figure and its page state, and the same when read back."""

import dataclasses

import pytest

from posenc.lab.results import atlas_cells
from posenc.lab.results.atlas_cells import AtlasCell, measured
from posenc.lab.results.results import Results
from posenc.lab.spec import atlas
from tests.lab import made

OFFSET, SIZES = "token_k_back(k=3)", (8, 16, 24, 32, 64)


def cell(row, **other):
    about = {"model": "decoder", "probe": "offset", "family": "rotary", "trained": 1.0, "reach": 1.25, "once": 1.0}
    about |= {"twice": 0.6, "four": 0.3, "floor": 0.2, "rates_apart": 0.0, "seeds": 2, "rates": 2, "diverged": 0}
    return AtlasCell(row, **about | {"failed": 0} | other)


def results(curves, label="rope", model="decoder", task=OFFSET, **more):
    """One trial for each curve, at two rates by turns."""
    trials = [
        made.trial(label, task, n // 2, dict(zip(SIZES, c, strict=True)), lr=(1e-3, 3e-3)[n % 2], **more)
        for n, c in enumerate(curves)
    ]
    record = made.typed(made.record(label, "rotary", task, trials, SIZES, model=model))
    return Results("atlas", (record,))


def only(results):
    (found,) = atlas_cells.atlas_cells(results)
    return found


def test_a_cell_is_the_median_of_seeds_at_the_rates_that_tie():
    one, other = (1.0, 1.0, 0.95, 0.6, 0.2), (1.0, 1.0, 0.9, 0.8, 0.4)
    found = only(results([one, other, one, other]))
    assert (found.row, found.model, found.probe, found.seeds, found.rates) == ("rope", "decoder", "offset", 2, 2)
    assert (found.trained, found.once, found.twice, found.four) == (1.0, 1.0, 0.7, 0.3)
    assert found.reach == 1.5 and found.rates_apart == pytest.approx(0.2)
    assert found.floor == 0.1 and found.above == pytest.approx((0.7 - 0.1) / 0.9), "a guess, of the last token"


def test_a_rate_that_validation_does_not_choose_is_left_out():
    found = only(results([(1.0, 1.0, 1.0, 1.0, 1.0), (0.5, 0.3, 0.1, 0.1, 0.1)]))
    assert (found.trained, found.four, found.reach, found.rates_apart, found.rates) == (1.0, 1.0, 4.0, 0.0, 2)


def test_what_was_not_learned_where_trained_reaches_nowhere():
    found = only(results([(1.0, 0.89, 1.0, 1.0, 1.0)]))
    assert found.reach is None and not found.learned and found.trained == 0.89


def test_a_gap_ends_the_reach_and_sizes_below_training_do_not_count():
    assert only(results([(1.0, 1.0, 0.8, 1.0, 1.0)])).reach == 1.0
    below = results([(0.1, 1.0, 1.0, 1.0, 1.0)])
    (record,) = below.records
    record = dataclasses.replace(record, task=dataclasses.replace(record.task, trained=(9, 16)))
    assert only(dataclasses.replace(below, records=(record,))).reach == 4.0


def test_a_model_without_attention_is_a_row_of_decoders():
    found = only(results([(1.0,) * 5], label="nope", model="lstm"))
    assert (found.row, found.model) == ("lstm", "decoder")


def test_of_text_the_last_token_counts_and_in_encoders_all_beyond_training():
    """The last token of an encoder has nothing behind it, and so needs no sense of direction."""
    trial = made.trial("rope", OFFSET, 0, dict.fromkeys(SIZES, 1.0))
    for counts in (*trial["evaluations"].values(), *trial["validation"].values()):
        counts |= {"beyond": 400, "beyond_scored": 1000}
    one_of_each = (made.record("rope", "rotary", OFFSET, [trial], SIZES, model=model) for model in atlas.MODELS)
    cells = atlas_cells.atlas_cells(made.results("atlas", one_of_each))
    assert {cell.model: (cell.once, cell.twice) for cell in cells} == {"decoder": (1.0, 1.0), "encoder": (0.4, 0.4)}


def test_diverged_and_failed_trials_are_counted():
    found = only(results([(1.0,) * 5, (0.1,) * 5], outcome="diverged"))
    assert found.diverged == 2 and not found.learned


def test_tasks_that_are_no_probe_are_left_out():
    assert atlas_cells.atlas_cells(results([(1.0,) * 5], task="copy")) == []


def test_a_table_is_read_as_it_was_written():
    cells = [cell("rope"), cell("t5(buckets=16, reach=16)", reach=None, four=0.1234)]
    assert list(atlas_cells.read(atlas_cells.write(cells))) == cells


def test_the_sentence_of_a_scheme_names_models_reach_and_what_was_not_learned():
    cells = [
        cell("rope"),
        cell("rope", probe="index", reach=4.0),
        cell("rope", probe="count", reach=None),
        cell("rope", probe="recall", reach=1.0),
        cell("rope", model="encoder", probe="count", reach=None, seeds=1),
        cell("fox"),
    ]
    files = "experiments/atlas.py, experiments/atlas_recall.py"
    decoder = f"decoder: index to 4 L, offset to 1.25 L, recall to 1 L; not learned: count (2 seeds × 2 rates; {files})"
    encoder = "encoder: not learned: count (1 seed × 2 rates; experiments/atlas_encoders.py)"
    assert measured("rope", cells) == f"{decoder}; {encoder}"
    assert measured("mrope", cells) == f"as rope; {decoder}; {encoder}" and measured("alibi", cells) == ""


def test_a_text_that_is_a_row_stands_for_itself():
    assert "alibi" in atlas.rows("decoder") and atlas.row_of("t5") == "t5(buckets=16, reach=16)"
    assert all(atlas.row_of(row) == row for model in atlas.MODELS for row in atlas.rows(model))
