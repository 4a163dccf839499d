"""The head of the widest margin, its aliases, and the steps that they cut into the record of `first_look`.

Oracles: a direct search over amplitudes and phases, whole turns by arithmetic, and ten trained seeds.
"""

import math
import random
from statistics import median

import numpy as np
import pytest
from scipy.optimize import minimize

from posenc.lab.explain import alias_figure, aliases
from posenc.lab.results.results import load
from posenc.lab.spec.experiment_file import executed
from tests.test_experiments import FOLDER

BACK = "token_k_back(k=3)"


def found(text, back=3, length=16, width=16, causal=False):
    return aliases.widest(aliases.frequencies(text, width, length), back, length, causal)


def distances(head, size, **how):
    return [alias.distance for alias in aliases.aliases(head, size, **how)]


def margin(periods, back, length, amplitudes, phases, causal=False):
    """Of a score written as a sum of cosines, over every query and key of every row."""
    score = lambda d: sum(a * math.cos(2 * math.pi * d / p + f) for a, p, f in zip(amplitudes, periods, phases))  # noqa: E731, B905
    pairs = {k - q for q in range(back, length) for k in range(q + 1 if causal else length)} - {-back}
    return min(score(-back) - score(d) for d in pairs)


@pytest.mark.parametrize(
    ("base", "back", "length", "width", "causal"),
    [(300.0, 2, 12, 8, False), (50.0, 6, 16, 8, False), (10000.0, 4, 10, 6, True), (10.0, 1, 20, 8, True)],
)
def test_no_amplitudes_and_phases_have_a_wider_margin(base, back, length, width, causal):
    head = found(f"rope(base={base})", back, length, width, causal)
    periods = [2 * math.pi * base ** (2 * i / width) for i in range(width // 2)]
    cosines, sines = np.split(head.weights, 2)
    own = margin(periods, back, length, head.amplitudes, np.arctan2(-sines, cosines), causal)
    assert own == pytest.approx(head.margin, abs=1e-9) and np.hypot.reduce(head.amplitudes) == pytest.approx(1)
    draw, n = random.Random(0), width // 2
    least = lambda x: margin(periods, back, length, x[:n] / np.linalg.norm(x[:n]), x[n:], causal)  # noqa: E731
    for _ in range(4):
        start = np.array([draw.uniform(0.1, 1) for _ in range(n)] + [draw.uniform(-3, 3) for _ in range(n)])
        assert least(start) < head.margin
        best = minimize(lambda x: -least(x), start, method="Powell", options={"maxiter": 40})
        assert least(best.x) <= head.margin + 1e-6
    nudged = [margin(periods, back, length, *_nudged(head, draw), causal) for _ in range(50)]
    assert max(nudged) < head.margin


def _nudged(head, draw):
    weights = head.weights + np.array([draw.gauss(0, 0.02) for _ in head.weights])
    cosines, sines = np.split(weights / np.linalg.norm(weights), 2)
    return np.hypot(cosines, sines), np.arctan2(-sines, cosines)


def test_periods_that_divide_a_row_come_back_whole():
    """Turns of 5 and of 7 places meet after 35: there a key has the target's own score."""
    head = aliases.widest(2 * np.pi / np.array([5.0, 7.0]), 3, 16)
    assert head.turns(32) == pytest.approx([7, 5]) and head.gap([-38, 32]) == pytest.approx([0, 0])
    assert {-38, 32} <= set(distances(head, 64, within=1e-6))


def test_a_row_is_cut_where_an_alias_comes_into_view_or_leaves_it():
    near = [aliases.Alias(-6, 0.1), aliases.Alias(4, 0.2)]
    parts = [(part.first, part.last, [a.distance for a in part.aliases]) for part in aliases.stretches(near, 2, 9)]
    assert parts == [(2, 4, [4]), (5, 5, []), (6, 8, [-6])]
    assert [list(part.aliases) for part in aliases.stretches(near, 2, 12)] == [near[1:], near, near[:1]]


def test_a_causal_head_sees_nothing_ahead_and_another_does_though_no_trained_query_did():
    seen, unseen = found("rope", back=15), found("rope", back=15, causal=True)
    assert seen.trained == unseen.trained == (-15, 0) and seen.weights == pytest.approx(unseen.weights)
    behind = distances(unseen, 64)
    assert max(behind) < 0 and distances(seen, 64)[: len(behind)] == behind and max(distances(seen, 64)) > 0


@pytest.mark.parametrize("back", [1, 3, 5, 8])
def test_aliases_go_with_the_target_and_are_at_least_a_margin_away_within_training(back):
    """At base 10,000 three turns of the fastest pair and one of the next take 19 places, wherever the target stands."""
    head = found("rope", back)
    assert distances(head, 36) == [-back - 19, -back + 19]
    assert (
        head.gap(range(-15, 16 - back)).min() == pytest.approx(0) and sorted(head.gap(range(-15, 16 - back)))[1] > 0.999
    )
    assert distances(found("rope", back, causal=True), 36) == [-back - 19]


@pytest.mark.parametrize(
    ("text", "near", "wider"),
    [
        ("rope(base=10.0)", [], []),
        ("rope(base=16.0)", [], []),
        ("rope(base=100.0)", [], [-47, 41]),
        ("rope(base=1000.0)", [], [-34, -47, 28]),
        ("rope(base=100000.0)", [-28, 22], [-28, -53, 22, 47]),
        ("rope(p=0.5)", [-22, 16], [-22, -41, -60, 16, 35, 54, 60]),
    ],
)
def test_a_larger_base_has_nearer_aliases(text, near, wider):
    assert distances(found(text), 64) == near and distances(found(text), 64, within=0.5) == wider


def shares(size):
    """Place, or the first of a bin of two, to the share right of each seed."""
    results = load(FOLDER / "records" / "first_look.json")
    (record,) = (r for r in results.records if (r.task.label, r.label) == (BACK, "rope"))
    width, scored = record.task.places[size]["width"], record.task.places[size]["scored"]
    each = [
        [right / of for right, of in zip(t.places[size]["right"], scored, strict=True) if of] for t in record.trials
    ]
    first = [n * width for n, of in enumerate(scored) if of]
    return width, {place: values for place, *values in zip(first, *each, strict=True)}


@pytest.mark.parametrize("size", [20, 24, 32, 48, 64])
def test_the_record_steps_where_arithmetic_says_in_every_seed(size):
    """Right in all where no alias is in view, in none where one is, and the less the more are."""
    width, at = shares(size)
    parts = aliases.stretches(aliases.aliases(found("rope"), size), 3, size)
    medians = [(place, median(values)) for place, values in at.items()]
    steps = [place for (_, before), (place, after) in zip(medians, medians[1:]) if abs(after - before) > 0.1]  # noqa: B905
    assert all(part.first % width == 0 for part in parts[1:]) and steps == [part.first for part in parts[1:]]
    levels = {}
    for part in parts:
        inside = [values for place, values in at.items() if part.first - width < place <= part.last]
        assert len(inside[0]) == 10
        levels.setdefault(len(part.aliases), []).extend(map(np.mean, zip(*inside, strict=True)))
    assert min(levels.get(0, [1])) > 0.995 and max(levels[1]) < 0.91
    assert 2 not in levels or median(levels[2]) < median(levels[1]) - 0.1


def test_weaker_aliases_hardly_show_beside_nearer_ones():
    """Within half the margin there are five more in a row of 64; the record has no step at their boundaries."""
    _, at = shares(64)
    further = {part.first for part in aliases.stretches(aliases.aliases(found("rope"), 64, 0.5), 3, 64)} - {3, 22, 48}
    assert further == {4, 10, 29, 41, 60}
    medians = {place: median(values) for place, values in at.items()}
    assert all(abs(medians[p // 2 * 2 - 2] - medians[p // 2 * 2 + 2]) < 0.06 for p in further)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (("alibi", 3, 16), "'alibi' has no aliases to compute"),
        (("rope + alibi", 3, 16), "one scheme that only turns queries and keys, by fixed frequencies"),
        (("rope(frequencies='learned')", 3, 16), "by fixed frequencies"),
        (("rope", 16, 16), "is 16 places back, and the longest row trained on has 16 tokens; take from 1 to 15."),
        (("rope", 1, 1), "The longest row trained on has 1 tokens; take from 2 to 512."),
        (("pi(factor=1000000000.0)", 3, 16), "No head tells the token 3 places back from all others"),
    ],
)
def test_what_has_no_aliases_is_refused_in_a_sentence(how, said):
    with pytest.raises(ValueError, match="^[^\n]*$") as error:
        found(*how)
    assert said in str(error.value)


def test_a_picture_marks_the_target_and_the_aliases_and_says_periods():
    figure = alias_figure.draw({"rope": found("rope"), "rope(base=10.0)": found("rope(base=10.0)")}, 64)
    assert figure.get_figwidth() * 2.54 == pytest.approx(17.5)
    phases, score, *_ = figure.axes
    assert [label.get_text() for label in phases.get_yticklabels()][:3] == ["6.28", "19.9", "62.8"]
    assert [text.get_text() for text in score.texts if text.get_text()[0] in "+-"] == ["-22", "+16"]
    assert not [text for text in figure.axes[3].texts if text.get_text()[0] in "+-"]


@pytest.mark.parametrize("name", ["by_place", "aliases"])
def test_the_committed_figures_are_drawn_again(name, tmp_path):
    executed(FOLDER / "figures" / f"{name}.py").main(tmp_path)
    for ending in ("svg", "caption.txt"):
        assert (tmp_path / f"{name}.{ending}").read_bytes() == (FOLDER / "figures" / f"{name}.{ending}").read_bytes()
