"""The numbers that the result of `invariance` quotes are those of its measurements and its record."""

import re
from statistics import median

import pytest

from posenc.lab.results.losses import LEARNED
from posenc.lab.results.results import load
from posenc.lab.results.statistics import cells
from posenc.lab.spec.experiment_file import executed, from_file
from tests.hits import FOLDER, Recorded, header, quoted


def named(text, pattern):
    """The schemes that a sentence lists, under their own names; a sentence that is not there is an error."""
    listed = re.split(r",\s+|\s+(?:or|and)\s+", re.search(pattern, text, re.DOTALL)[1])
    return {{"sinusoids": "sinusoidal"}.get(name, name.lower()) for name in listed}


@pytest.fixture(scope="module")
def measured():
    """What was measured of whole models, by the reader of the experiment itself."""
    module = executed(FOLDER / "invariance.py")
    return {(what, state): module._read(what, state) for what in ("moved", "influence") for state in STATES}


STATES = ("untrained", "trained")


def test_the_measurements_are_of_every_scheme_and_of_as_many_models_as_is_said(measured):
    made = from_file(FOLDER / "invariance.py")
    schemes, seeds = {run.scheme for run in made.runs}, 4
    assert "four models of each scheme" in " ".join(made.header.result.split())
    for (what, _), found in measured.items():
        assert set(found) == schemes
        for places in found.values():
            assert sorted(places) == [1, 2, 4, 8, 16, 32, 64, 128] if what == "moved" else list(range(16))
            assert {len(values) for values in places.values()} == {seeds}


def test_what_is_said_not_to_move_stays_below_the_bound_that_is_said_and_what_is_said_to_move_does_not(measured):
    """Between them the sentences name every scheme; the bound holds at every distance, seed and state."""
    result = header("invariance").result
    bound = float(re.search(r"changes by (0\.\d+),\s+before training or after", result)[1])
    still = named(result, r"no output of (.*?)\s+changes by")
    moves = re.findall(r"(learned|fire|sinusoids)\s+(?:change\s+)?by\s+(0\.\d+)", result)
    assert len(moves) == 3 and len(still) == 9
    for state in STATES:
        moved = measured["moved", state]
        assert set(moved) - still == {"learned", "fire", "sinusoidal"}
        for scheme, places in moved.items():
            each = [value for values in places.values() for value in values]
            assert max(each) < bound if scheme in still else min(places[128]) > bound, (scheme, state)
    for scheme, value in moves:
        name = {"sinusoids": "sinusoidal"}.get(scheme, scheme)
        assert f"{median(measured['moved', 'trained'][name][128]):.2f}" == value, scheme


def test_the_token_that_decides_is_the_one_that_is_said(measured):
    """All: at least 0.99 at three places back, in every seed; most: more there than anywhere else, and above 0.8."""
    result = header("invariance").result
    every, most = (named(result, p) for p in (r"decides all under (.*?),\s+and\s+most", r"most under (.*?), where"))
    assert len(every) == 6 and len(most) == 3
    for scheme in every | most:
        influence = measured["influence", "trained"][scheme]
        assert min(influence[3]) > (0.99 if scheme in every else 0.8), scheme
        assert max(influence, key=lambda back: median(influence[back])) == 3
        assert scheme in every or median(influence[3]) < 0.99, "most, and not all"
    for scheme, influence in measured["influence", "untrained"].items():
        assert max(influence, key=lambda back: median(influence[back])) == 0, f"{scheme} looks at itself"


def test_what_is_learned_in_part_loses_less_behind_fillers_than_what_is_learned_whole():
    result = header("invariance").result
    quotes = re.search(r"(ALiBi and KERPLE).*?(0\.\d+)\s+and\s+(0\.\d+)\s+where\s+trained", result, re.DOTALL)
    found = {cell.scheme: cell for cell in cells(load(FOLDER / "records" / "invariance.json"))}
    inside = {s: median(c.means(c.inside).values()) for s, c in found.items()}
    beyond = {s: median(c.means(c.beyond).values()) for s, c in found.items()}
    assert [f"{inside[s]:.2f}" for s in ("alibi", "kerple")] == [*quotes.groups()[1:]]
    for part in ("alibi", "kerple"):
        for whole in ("sinusoidal", "learned"):
            assert inside[whole] > 0.99 and inside[part] - beyond[part] < inside[whole] - beyond[whole]


def test_the_last_token_shows_where_the_index_stops():
    """Behind as many fillers as were trained and behind four more; then the mean over all tokens."""
    at, result = Recorded("invariance"), header("invariance").result
    (task,) = at.results.tasks()
    both = ("learned", "sinusoidal")
    values = [at(task, scheme, size) for size in (8, 12) for scheme in both]
    means = {f"{at(task, scheme, 12, metric='token'):.2f}" for scheme in both}
    assert quoted(result)[6:9] == [f"{value:.2f}" for value in values[2:]] + [*means]
    far = [f"{at(task, scheme, 128):.2f}" for scheme in ("xpos", "cope")]
    pairs = [tuple(f"{value:.2f}" for value in values[:2]), tuple(far)]
    assert re.findall(r"have (1\.00) and (1\.00)", result) == pairs
    spread = [at(task, "rope", 128, of) for of in (median, min, max)] + [at(task, "t5", 128)]
    assert re.findall(r"\d\.\d+", result)[-4:] == [f"{value:.2f}" for value in spread]


def test_the_losses_that_still_fell_are_those_that_are_said_and_all_others_ended_near_zero():
    at, result = Recorded("invariance"), header("invariance").result
    (task,) = at.results.tasks()
    slow = ("alibi", "kerple", "fire", "sandwich", "fox", "nope")
    assert re.findall(r"(\d+)\s+%", result) == [at.half(task, scheme) for scheme in slow]
    assert {scheme for _, scheme in at.halves} == set(slow)
    others = at.schemes(task).difference(slow)
    assert len(others) == 6 and max(at.ending(task, scheme).loss for scheme in others) < LEARNED


def test_every_number_of_the_results_of_invariance_is_looked_at():
    """The bound, three that move, two learned in part, three of the index and three far behind it: tests above read
    each."""
    assert len(quoted(header("invariance").result)) == 12
