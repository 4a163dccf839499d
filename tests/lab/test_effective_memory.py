"""The window that loses what a model loses, and the figure of excess losses, on readers whose windows are known."""

from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.figures.curves import LEAST, excess_curve, excess_panels
from posenc.lab.figures.figures import drawing
from posenc.lab.figures.tables import memories, notes
from posenc.lab.metrics import PARTS
from posenc.lab.results.excess import effective_memories, effective_memory, excess, octaves, window_excess
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import cells
from posenc.lab.spec.experiment_file import from_file
from posenc.lab.tasks import parse
from posenc.lab.tasks.examples import examples, texts_of
from posenc.lab.tasks.measure import evaluation_key, width
from posenc.lab.train import exact
from posenc.lab.train.exact import size_losses
from tests.lab import made

LENGTH, SIZES, ROWS = 16, (16, 32, 64, 128), 32
FILE = Path(__file__).resolve().parents[2] / "experiments" / "language.py"


def binned(losses):
    wide = width(losses.shape[1])
    return [round(PARTS * float(losses[:, k : k + wide].sum())) for k in range(0, losses.shape[1], wide)]


def reader(label, window, task="copies"):
    """The record of a model that is a reader of the last `window` tokens, or of all."""
    source, places, evaluations, bins = parse(task), {}, {}, {}
    for n in SIZES:
        texts = texts_of(examples(source, ROWS, n, evaluation_key(source, n), jnp.int32(n)), n)
        losses = source.losses(texts, None if window is None or window >= n else window)
        least = size_losses(source, ROWS, SIZES, n, LENGTH, False)
        bins[str(n)] = {"width": width(n), "scored": [ROWS * width(n)] * len(binned(losses)), **least.bins}
        places[str(n)] = {"right": [0] * len(binned(losses)), "nats": binned(losses)}
        counts = {"correct": 0, "scored": ROWS * n, "rows": ROWS, "nats": sum(binned(losses))}
        first = LENGTH if n > LENGTH else 0
        loss = round(PARTS * float(losses[:, first:].sum()))
        evaluations[str(n)] = least.gained(counts | {"beyond_nats": loss})
    trials = [made.trial(label, task, seed, {}, evaluations=evaluations, places=places) for seed in (0, 1)]
    for trial in trials:
        trial["validation"] = {str(LENGTH): evaluations[str(LENGTH)]}
    record = made.record(label, "none", task, trials, SIZES, (LENGTH, LENGTH))
    floors = {str(n): {"unigram": 0.0} for n in SIZES}
    record["task"] |= {"metric": "gain", "floors": floors, "places": bins, "first_beyond": LENGTH}
    return record


@pytest.fixture(scope="module")
def readers():
    return made.results("language", [reader("rope", 24), reader("alibi", 7), reader("nope", None)])


def test_a_memory_lies_on_a_straight_line_over_the_logarithm_of_windows():
    lost = {1: 0.9, 2: 0.5, 4: 0.3, 16: 0.1, 64: 0.0}
    assert [effective_memory(lost[w], lost) for w in lost] == pytest.approx([*lost])
    assert effective_memory(0.4, lost) == pytest.approx(2**1.5) and effective_memory(0.05, lost) == pytest.approx(32)
    assert effective_memory(0.91, lost) == 0 and effective_memory(-0.1, lost) == 64
    assert effective_memory(0.4, {1: 0.9, 2: 0.3, 4: 0.35, 8: 0.0}) < 2, "a longer window that loses more by chance"


@pytest.mark.parametrize("size", [64, 128])
def test_a_reader_of_a_window_gets_its_window_back(readers, size):
    memory = effective_memories(readers, size)
    assert memory["copies", "rope"] == pytest.approx(24, abs=0.6)
    assert memory["copies", "alibi"] == pytest.approx(7, abs=0.4)
    assert memory["copies", "nope"] > 0.6 * size, "all that there is, but for chance"
    assert effective_memories(readers, 48) == {}, "it was not evaluated there"


def test_a_table_tells_how_far_back_each_scheme_sees(readers):
    at_four, at_all = (line for line in notes(cells(readers), readers) if line.startswith("Effective context length"))
    assert "on copies at 64," in at_four and ": nope " in at_four and at_four.endswith("alibi 7.")
    assert "on copies at 128," in at_all and ": nope " in at_all


def test_a_row_without_the_longest_size_leaves_its_line_to_the_others(readers):
    first, *others = readers.records
    near = lambda sizes: {n: of for n, of in sizes.items() if n < 128}  # noqa: E731
    trials = [replace(t, places=near(t.places), evaluations=near(t.evaluations)) for t in first.trials]
    task = replace(first.task, places=near(first.task.places), floors=near(first.task.floors))
    at_four, at_all = memories(Results("language", (replace(first, task=task, trials=trials), *others)))
    assert "rope 2" in at_four and "on copies at 128," in at_all and "rope" not in at_all and "alibi 7." in at_all


def test_older_records_hold_too_few_windows_to_tell(readers):
    few = [
        replace(record, task=replace(record.task, places={n: _few(bins) for n, bins in record.task.places.items()}))
        for record in readers.records
    ]
    assert effective_memories(Results("older", tuple(few)), 64) == {}


def _few(bins):
    return {**bins, "windows": {w: of for w, of in bins["windows"].items() if w in ("4", "16", "64")}}


def test_windows_of_long_texts_are_read_at_some_places(monkeypatch):
    source, given = parse("copies"), (ROWS, SIZES, 128, LENGTH, False)
    shown = size_losses.__wrapped__(source, *given).bins["windows"]
    monkeypatch.setattr(exact, "PLACES", 32)
    some = size_losses.__wrapped__(source, *given).bins["windows"]
    assert [*shown] == [*some] == [str(w) for w in exact.WINDOWS if w < 128]
    assert all(some[w] != shown[w] and sum(some[w]) == pytest.approx(sum(shown[w]), rel=0.03) for w in shown)


def test_a_task_without_exact_losses_has_no_effective_memory():
    assert effective_memories(made.results("other", [made.rope()]), 32) == {}
    with pytest.raises(ValueError, match="hold no exact losses, which only tasks such as 'copies' have"):
        excess_panels(made.results("other", [made.rope()]))


def test_an_octave_is_read_in_the_shortest_texts_that_reach_its_end(readers):
    task = readers.records[0].task
    ends = octaves(task)
    assert list(ends) == [2, 4, 8, 16, 32, 64, 128]
    assert {end: octave.size for end, octave in ends.items()} == {2: 16, 4: 16, 8: 16, 16: 16, 32: 32, 64: 64, 128: 128}
    assert [ends[end].bins for end in (4, 32, 64, 128)] == [slice(2, 4), slice(16, 32), slice(16, 32), slice(16, 32)]
    texts = texts_of(examples(parse("copies"), ROWS, 64, evaluation_key(parse("copies"), 64), jnp.int32(64)), 64)
    far = [parse("copies").losses(texts, window)[:, 32:].mean() for window in (24, None)]
    trial = readers.records[0].trials[0]
    assert excess(task, ends[64], trial.places[64]) == pytest.approx(far[0] - far[1], abs=2e-3)
    lost = window_excess(task, ends[64])
    assert list(lost) == [w for w in exact.WINDOWS if w < 64] and lost[4] > lost[16] > far[0] - far[1]


def test_the_figure_has_the_excess_by_octave_a_bracket_and_the_lines_of_windows(readers):
    (panel,) = excess_panels(readers)
    assert panel.log and panel.falling and panel.trained == (2, LENGTH) and panel.places == [2, 4, 8, 16, 32, 64, 128]
    medians = {label: {x: np.median(values) for x, values in of.items()} for label, of in panel.points.items()}
    assert set(medians["nope"].values()) == {LEAST}, "the best reader loses nothing, which a log axis cannot show"
    assert medians["alibi"][128] > medians["rope"][128] > 0.02 and medians["rope"][16] == LEAST
    assert panel.floors[128].keys() == {"window 16", "window 64"} and panel.floors[8] == {}
    assert medians["alibi"][128] > panel.floors[128]["window 16"] > panel.floors[128]["window 64"]
    made_up = excess_curve(readers)
    (axes,) = made_up.figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "excess (nats) (up) against position in the text, up to (along, on a log axis)" in made_up.caption
    assert "sees 16 (one who sees the last 16 tokens)" in made_up.caption
    assert {text.get_text() for text in axes.texts} >= {"sees 16", "sees 64", "trained on 2–16"}


@pytest.mark.parametrize("labels", [("rope", "alibi", "nope"), ("cope", "xpos", "learned")], ids=["shown", "others"])
def test_the_experiment_draws_its_figure_from_such_records(readers, labels):
    decoders = [
        replace(record, run={**record.run, "model": "decoder", "scheme": label}, label=label)
        for record, label in zip(readers.records, labels, strict=True)
    ]
    figure, shown = drawing(from_file(FILE, yes=True), Results("language", tuple(decoders)))
    assert "A text that copies itself" in figure.caption and len(shown.records) == 3
