"""Rates that tie in validation are all reported: seeds stay the sample, and a difference beyond training is said."""

import json
import math
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.lab.figures import captions, curves, files, grouped
from posenc.lab.figures.tables import table
from posenc.lab.results import rates, statistics
from posenc.lab.results.rate_gaps import rate_gap
from posenc.lab.results.table import frame_of
from posenc.lab.results.words import Words
from tests.lab import made
from tests.test_experiments import FOLDER

LOW, MIDDLE, HIGH = 3e-4, 1e-3, 3e-3
BEYOND = {LOW: 0.95, MIDDLE: 0.6, HIGH: 0.3}
"""Accuracy beyond the sizes trained on at each rate, of the first seed; each further seed has a hundredth more."""


def runs(label="rope", beyond=BEYOND, validation=None, seeds=range(6), rows=1000, **more):
    """A scheme that is right at every size trained on, at every rate, and at some on fewer validation examples."""
    trials = [
        made.trial(
            label,
            "copy",
            seed,
            {8: 1.0, 16: 1.0, 24: share + seed / 100, 32: share},
            lr=lr,
            rows=rows,
            validation={8: 1.0, 16: (validation or {}).get(lr, 1.0)},
            **more,
        )
        for lr, share in beyond.items()
        for seed in seeds
    ]
    return made.record(label, label, "copy", trials)


def cell(*records, label="rope", read=lambda results: results):
    (found,) = (c for c in statistics.cells(read(made.results("a", records))) if c.scheme == label)
    return found


# which rates tie


def trials_of(means, examples):
    """One trial at each rate, by what its validation examples say."""
    sizes = frozenset(made.SIZES)
    return [rates.Trial(f"{rate}", rate, 0, False, share, examples, sizes) for rate, share in means.items()]


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from((1e-4, LOW, MIDDLE, HIGH, 1e-2)), st.floats(0, 1), min_size=1),
    st.integers(1, 5000),
)
def test_a_rate_ties_within_one_standard_error_of_the_best(means, examples):
    every = trials_of(means, examples)
    best = rates.choose_rate(rates.scores(every))
    top = max(means.values())
    share = (top * examples + 1) / (examples + 2)
    error = math.sqrt(share * (1 - share) / examples)
    ties = rates.tying_rates(every, best)
    assert best in ties and list(ties) == sorted(ties)
    assert {r for r, m in means.items() if m > top - error + 1e-9} <= {*ties}
    assert {*ties} <= {r for r, m in means.items() if m > top - error - 1e-9} | {best}
    assert {*rates.tying_rates(trials_of(means, 4 * examples + 10), best)} <= {*ties}, "more examples tell more apart"


def test_a_rate_that_is_worse_or_less_sure_does_not_tie():
    """Of 200 validation examples one token is no difference, and two in a hundred examples are one."""
    found = cell(runs(validation={MIDDLE: 0.999, HIGH: 0.96}, rows=100))
    assert (found.rate, found.ties, found.reported) == (LOW, (LOW, MIDDLE), (LOW, MIDDLE))
    assert found.rates == (LOW, MIDDLE, HIGH)
    guesses = runs()
    for trial in guesses["trials"]:
        trial["validation"] = made.sums({8: 0.1, 16: 0.1})
        if trial["knobs"]["lr"] == MIDDLE:
            trial |= {"outcome": "diverged", "evaluations": {}, "validation": {}}
    assert cell(guesses).ties == (LOW, HIGH), "what diverged counts as a guess, and ties with none that guesses"
    part = runs()
    del part["trials"][-1]
    assert cell(part).ties == (LOW, MIDDLE), "a seed has no run at it"


# what is reported


def test_a_seed_at_several_rates_is_one_run():
    """Six seeds at three rates are six, each at the median of its three runs."""
    found = cell(runs())
    assert (found.n, found.seeds[24], found.counts) == (6, tuple(range(6)), {"done": 18})
    assert found.values[24] == pytest.approx([0.6 + s / 100 for s in range(6)]) and found.values[8] == (1.0,) * 6
    assert found.means((24, 32)) == pytest.approx({s: 0.6 + s / 200 for s in range(6)})
    one = statistics.summary(found.values[24])
    assert (one.n, one.kind) == (6, statistics.INTERVAL) and (one.low, one.high) == pytest.approx((0.6, 0.65))


def test_means_over_sizes_are_of_runs_and_not_of_medians():
    """At 24 the first rate is the middle one, and at 32 the second: no run has both medians."""
    trials = [
        made.trial("rope", "copy", 0, {16: 1.0, 24: a, 32: b}, lr=lr)
        for lr, a, b in ((LOW, 0.5, 0.1), (MIDDLE, 0.9, 0.4), (HIGH, 0.2, 0.9))
    ]
    found = cell(made.record("rope", "f", "copy", trials, sizes=(16, 24, 32)))
    assert (found.values[24], found.values[32]) == ((0.5,), (0.4,))
    assert found.means((24, 32)) == {0: pytest.approx(median([0.3, 0.65, 0.55]))}


def test_every_output_says_where_rates_that_tie_differ():
    """The table, its JSON, captions and the comparison say which rates tie, and how they differ."""
    results = made.results("a", [runs(), runs("alibi", {LOW: 0.5, MIDDLE: 0.51, HIGH: 0.5})])
    text, (rope, alibi) = table(results), statistics.cells(results)[::-1]
    assert "  6    18         0       0  0.0003, 0.001, 0.003  " in text
    both = "alibi (0.0003, 0.001, 0.003) and rope (0.0003, 0.001, 0.003) on copy."
    gap = (
        "Rates that tie in validation differ beyond training, the best from the worst in each of 6 seeds: rope at 24"
        " (0.0003: 0.97 [0.95–1.00], 0.001: 0.62 [0.60–0.65], 0.003: 0.33 [0.30–0.35]) on copy."
    )
    assert f"a seed's number is the median of its runs at them: {both}\n{gap}\n" in text
    assert captions.rates((rope, alibi))[1:] == [captions.ties((rope, alibi))[0], gap] and gap not in table(
        results.only(scheme="alibi")
    )
    row = next(row for row in json.loads(table(results, "json"))["rows"] if row["scheme"] == "rope")
    assert (row["lr"], row["ties"], row["reported"]) == (LOW, [LOW, MIDDLE, HIGH], [LOW, MIDDLE, HIGH])
    assert {rate: at["32"]["median"] for rate, at in row["by_rate"].items()} == {str(k): v for k, v in BEYOND.items()}
    (line,) = captions.rate_gaps((rope, alibi), Words(names={"rope": "turns"}, titles={"copy": "Copy"}))
    assert line.endswith("in each of 6 seeds: turns at 24 (0.0003: 0.97, 0.001: 0.62, 0.003: 0.33) on Copy.")
    assert files.data(results).count(",True\n") == len(results.rows())
    assert rate_gap(rope).size == 24 and rate_gap(alibi) is None


def test_figures_along_training_have_a_line_for_each_seed():
    results = made.results("a", [runs(seeds=range(3))])
    for record in results.records:
        for trial in record.trials:
            trial.curve["loss"][:] = [1.0, trial.knobs.lr]
    (axes,) = curves.curves(results).figure.axes
    every = [line for line in axes.get_lines() if line.get_label() == "_run"]
    assert [list(line.get_ydata()) for line in every] == [[1.0, MIDDLE]] * 3


def test_pairs_are_seeds_and_the_difference_at_each_rate_stands_beside():
    """At two of three rates the first is ahead, and at the third far behind; the table's numbers are compared."""
    other = {LOW: 0.5, MIDDLE: 0.55, HIGH: 0.9}
    results = made.results("a", [runs(), runs("alibi", other)])
    (found,) = statistics.compare(results, "rope", "alibi")
    assert found.n == 6 and [round(a - b, 9) for _, a, b in found.pairs] == [0.05] * 6 and found.better == 1
    assert found.by_rate == pytest.approx({LOW: 0.45, MIDDLE: 0.05, HIGH: -0.6})


def test_groups_of_examples_count_seeds():
    """Two seeds at two rates."""
    at = {(LOW, 0): 0.9, (LOW, 1): 0.7, (HIGH, 0): 0.5, (HIGH, 1): 0.5}
    head = {"task": "copy", "scheme": "rope", "metric": "token", "depth": 0}
    rows = [head | {"seed": seed, "lr": lr, "value": share} for (lr, seed), share in at.items()]
    text = grouped.as_text(frame_of(rows), ["depth"], 0)
    assert "depth 0: 0.65 [0.60–0.70], n = 2" in text and "2 of each scheme), at the learning rates that tie" in text


# seeds that tune


def tuned(rates_of_seeds):
    """Two tuning seeds at three rates, of which two tie, and reported seeds at those given."""
    tuning = runs(validation={HIGH: 0.9}, seeds=(0, 1), role="tuning")["trials"]
    reported = runs(beyond={lr: BEYOND[lr] for lr in rates_of_seeds}, seeds=(2, 3, 4))["trials"]
    return made.record("rope", "rotary", "copy", [*tuning, *reported])


def test_rates_that_tie_for_the_tuning_seeds_are_reported_where_seeds_ran_at_them():
    """The reported seeds ran at one of two rates, so that the tuning seeds tell how these differ."""
    found = cell(tuned([LOW]))
    assert (found.rate, found.ties, found.reported, found.n) == (LOW, (LOW, MIDDLE), (LOW,), 3)
    assert found.values[32] == (0.95,) * 3 and rate_gap(found).tuning
    (_, said) = captions.rates((found,))
    assert said.endswith(
        "each of 2 tuning seeds: rope at 24 (0.0003: 0.95 [0.95–0.96], 0.001: 0.60 [0.60–0.61]) on copy."
    )
    both = cell(tuned([LOW, MIDDLE]))
    assert (both.reported, both.left_out, both.n) == ((LOW, MIDDLE), {}, 3) and not rate_gap(both).tuning
    assert both.values[32] == pytest.approx([0.775] * 3)
    assert cell(tuned([LOW, HIGH])).left_out == {HIGH: 3}, "another was chosen"


# what chooses


def test_the_metric_that_is_shown_changes_no_choice():
    """By whole answers or the last token the other rate would be the best; the metric of the task chooses."""
    record = runs(beyond={LOW: 0.5, HIGH: 0.5}, validation={HIGH: 0.5})
    for trial in record["trials"]:
        for counts in trial["validation"].values():
            counts["exact"] = counts["last"] = 1000 if trial["knobs"]["lr"] == HIGH else 0
    for metric in (None, "exact", "last"):
        assert cell(record, read=lambda results: results.shown(metric)).ties == (LOW,)  # noqa: B023
    lost = runs(beyond={LOW: 0.5, HIGH: 0.5}, seeds=range(2))
    for trial in lost["trials"]:
        trial["validation"] = made.sums({8: 0.05, 16: 0.05})
        if trial["knobs"]["lr"] == HIGH:
            trial |= {"outcome": "diverged", "evaluations": {}, "validation": {}}
    for metric in (None, "exact"):
        found = cell(lost, read=lambda results: results.shown(metric))  # noqa: B023
        assert found.rate == HIGH, (
            "it counts as a guess by the metric of the task, which is better than what was learned"
        )


# of a committed record


def test_norms_differ_beyond_training_as_their_record_says():
    """Eight layers with norms after each sum, from the file itself: the last token of rows of 24."""
    whole = json.loads((FOLDER / "records" / "norms.json").read_text(encoding="utf-8"))
    at = {}
    for record in whole["records"]:
        if (record["run"]["depth"], record["run"]["norm"]) == (8, "post"):
            for trial in record["trials"]:
                counts = trial["evaluations"]["24"]
                at.setdefault(trial["knobs"]["lr"], {})[trial["knobs"]["seed"]] = counts["last"] / counts["rows"]
    from posenc.lab.results.results import load

    results = load(FOLDER / "records" / "norms.json").shown()
    (found,) = (c for c in statistics.cells(results) if c.scheme == "rope (depth=8, norm=post)")
    assert found.reported == (LOW, MIDDLE, HIGH) and found.n == 6
    assert found.rates == (LOW, MIDDLE, HIGH, 1e-2, 3e-2, 1e-1)
    assert found.values[24] == pytest.approx([median(at[lr][s] for lr in found.reported) for s in range(6)])
    gap = rate_gap(found)
    assert gap.size == 24 and {lr: s.median for lr, s in gap.by_rate.items()} == pytest.approx(
        {lr: median(at[lr].values()) for lr in found.reported}
    )
    (pre,) = (c for c in statistics.cells(results) if c.scheme == "rope (depth=8, norm=pre)")
    assert pre.ties == (LOW, MIDDLE, HIGH, 1e-2, 3e-2), "validation cannot tell rates apart by a factor of a hundred"
