"""The head of the widest margin, and its aliases.

Oracles: a direct search over amplitudes and phases, and whole turns by arithmetic.
"""

import math
import random

import numpy as np
import pytest
from scipy.optimize import minimize

from posenc.lab.explain import aliases


def head(text, back=3, length=16, width=16, causal=False):
    return aliases.widest_head(aliases.frequencies(text, width, length), back, length, causal)


def distances(head, size, **how):
    return [alias.distance for alias in aliases.find_aliases(head, size, **how)]


def margin(periods, back, length, amplitudes, phases, causal):
    """Of a score written as a sum of cosines, over every query and key of the longest row."""

    def score(distance):
        terms = zip(amplitudes, periods, phases, strict=True)
        return sum(a * math.cos(2 * math.pi * distance / period + phase) for a, period, phase in terms)

    others = {k - q for q in range(back, length) for k in range(q + 1 if causal else length)} - {-back}
    return score(-back) - max(map(score, others))


def waves(weights):
    """Amplitudes, whose squares sum to 1, and phases."""
    cosines, sines = np.split(np.asarray(weights) / np.linalg.norm(weights), 2)
    return np.hypot(cosines, sines), np.arctan2(-sines, cosines)


@pytest.mark.parametrize(
    ("base", "back", "length", "width", "causal"),
    [(300.0, 2, 12, 8, False), (50.0, 6, 16, 8, False), (10000.0, 4, 10, 6, True), (10.0, 1, 14, 8, True)],
)
def test_no_amplitudes_and_phases_have_a_wider_margin(base, back, length, width, causal):
    widest = head(f"rope(base={base})", back, length, width, causal)
    periods = [2 * math.pi * base ** (2 * i / width) for i in range(width // 2)]
    of = lambda weights: margin(periods, back, length, *waves(weights), causal)  # noqa: E731
    assert of(widest.weights) == pytest.approx(widest.margin, abs=1e-9)
    assert np.linalg.norm(widest.amplitudes) == pytest.approx(1)
    draw = random.Random(0)
    for _ in range(2):
        start = [draw.gauss(0, 1) for _ in range(width)]
        climbed = minimize(lambda weights: -of(weights), start, method="Powell", options={"maxiter": 20})
        assert of(start) < of(climbed.x) <= widest.margin + 1e-6
    nudges = ([weight + draw.gauss(0, 0.02) for weight in widest.weights] for _ in range(40))
    assert max(map(of, nudges)) < widest.margin


def test_periods_that_divide_a_row_come_back_whole():
    """Turns of 5 and of 7 places meet after 35: there a key has the target's own score."""
    widest = aliases.widest_head(2 * np.pi / np.array([5.0, 7.0]), 3, 16)
    assert widest.turns(32) == pytest.approx([7, 5]) and widest.gap([-38, 32]) == pytest.approx([0, 0])
    assert {-38, 32} <= set(distances(widest, 64, within=1e-6))


def test_a_row_is_cut_where_an_alias_comes_into_view_or_leaves_it():
    pair = [aliases.Alias(-6, 0.1), aliases.Alias(4, 0.2)]
    parts = [(part.first, part.last, [a.distance for a in part.aliases]) for part in aliases.stretches(pair, 2, 9)]
    assert parts == [(2, 4, [4]), (5, 5, []), (6, 8, [-6])]
    assert [list(part.aliases) for part in aliases.stretches(pair, 2, 12)] == [pair[1:], pair, pair[:1]]


def test_a_causal_head_sees_nothing_ahead_and_another_does_though_no_trained_query_did():
    both, causal = head("rope", back=15), head("rope", back=15, causal=True)
    assert both.span == causal.span == (-15, 0) and both.weights == pytest.approx(causal.weights)
    behind = distances(causal, 64)
    assert max(behind) < 0 and distances(both, 64)[: len(behind)] == behind and max(distances(both, 64)) > 0


@pytest.mark.parametrize("back", [1, 3, 5, 8])
def test_aliases_go_with_the_target_and_are_at_least_a_margin_away_within_training(back):
    """At base 10,000 three turns of the fastest pair and one of the next take 19 places, wherever the target stands."""
    rope = head("rope", back)
    assert distances(rope, 36) == [-back - 19, -back + 19]
    nearest = sorted(rope.gap(range(-15, 16 - back)))[:2]
    assert nearest[0] == pytest.approx(0) and nearest[1] == pytest.approx(1)
    assert distances(head("rope", back, causal=True), 36) == [-back - 19]


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
    assert distances(head(text), 64) == near and distances(head(text), 64, within=0.5) == wider


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (("alibi", 3, 16), "'alibi' has no aliases to compute"),
        (("rope + alibi", 3, 16), "one scheme that only turns queries and keys, by fixed frequencies"),
        (("rope(frequencies='learned')", 3, 16), "by fixed frequencies"),
        (("rope", 16, 16), "is 16 positions back, and the longest row trained on has 16 tokens; take from 1 to 15."),
        (("rope", 1, 1), "The longest row trained on has 1 tokens; take from 2 to 512."),
        (("pi(factor=1000000000.0)", 3, 16), "No head tells the token 3 positions back from all others"),
    ],
)
def test_what_has_no_aliases_is_refused_in_a_sentence(how, message):
    with pytest.raises(ValueError, match="^[^\n]*$") as error:
        head(*how)
    assert message in str(error.value)
