"""The numbers that experiments quote of themselves are those that their committed files and plans yield."""

import re
from statistics import median

import pytest

from posenc.lab.results.published import findings
from posenc.lab.results.results import load
from posenc.lab.results.statistics import cells
from posenc.lab.spec.experiment_file import executed, from_file
from posenc.lab.spec.presets import PRESETS
from posenc.lab.sweep.estimate import operations
from posenc.lab.train.training import resolve
from tests.test_experiments import FOLDER

H100 = 67e12
"""Its floating-point operations per second in float32, as NVIDIA says of the SXM form."""


def header(name):
    return from_file(FOLDER / f"{name}.py", yes=True).header


def quoted(text):
    """The shares that a text gives, as it writes them."""
    return re.findall(r"\b0\.\d+", text)


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


def test_the_measurements_are_of_every_scheme_and_seed(measured):
    made = from_file(FOLDER / "invariance.py")
    schemes, seeds = {run.scheme for run in made.runs}, len(made.plan.seeds)
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
    told = re.search(r"(ALiBi and KERPLE).*?(0\.\d+)\s+and\s+(0\.\d+)\s+where\s+trained", result, re.DOTALL)
    found = {cell.scheme: cell for cell in cells(load(FOLDER / "records" / "invariance.json"))}
    inside = {s: median(c.means(c.inside).values()) for s, c in found.items()}
    beyond = {s: median(c.means(c.beyond).values()) for s, c in found.items()}
    assert [f"{inside[s]:.2f}" for s in ("alibi", "kerple")] == [*told.groups()[1:]]
    for part in ("alibi", "kerple"):
        for whole in ("sinusoidal", "learned"):
            assert inside[whole] > 0.99 and inside[part] - beyond[part] < inside[whole] - beyond[whole]


def test_every_number_of_the_results_of_invariance_is_looked_at():
    """The bound, three that move and two that are learned in part, each of which a test above reads."""
    assert len(quoted(header("invariance").result)) == 6


def test_the_numbers_of_length_are_those_that_its_claims_are_held_against():
    """The medians of `posenc reproduce length`, of its rows in the order of the text, and the floors in them."""
    made = from_file(FOLDER / "length.py")
    found = findings(made.published, load(FOLDER / "records" / "length.json"))
    row = {(f.said.task, f.said.scheme): f for f in found if hasattr(f.said, "scheme")}
    waves, turns = (f"{scheme} @ random_sorted(limit=128)" for scheme in ("sinusoidal", "rope"))
    sort, turn = "bucket_sort", "reverse_string"
    values = [row[sort, s].ours.median for s in (turns, waves, "rope", "sinusoidal")] + [row[sort, waves].floor]
    values += [row[turn, waves].ours.median, row[turn, turns].ours.median, row[turn, waves].floor]
    assert quoted(made.header.result) == [f"{value:.2f}" for value in values]
    beat = {s for (task, s), f in row.items() if task == sort and f.ours.low > f.floor}
    assert beat == {waves, turns}, "only those two beat it"


@pytest.mark.parametrize("name", ["length", "ruoss"])
def test_what_was_published_as_a_mean_over_every_size_is_held_against_such_a_mean(name):
    made = from_file(FOLDER / f"{name}.py", yes=True)
    assert {one.weights for one in made.published} == {"trapezoid"} and "trapezoid" in made.header.setting


def test_the_cost_of_the_whole_table_is_what_a_dry_run_counts():
    """And the hours are those operations at the shares of a GPU that are assumed."""
    made = from_file(FOLDER / "ruoss.py", yes=True)
    count = operations([(resolve(run), len(made.plan.knobs())) for run in made.runs], made.plan)
    assert re.search(r"^(\S+) floating-point operations", made.header.cost)[1] == f"{count:.1e}"
    assert "67 TFLOP/s" in made.header.cost
    for share, word in ((0.01, "hundredth"), (0.1, "tenth")):
        hours = re.search(rf"(\d+)\s+hours (?:on one H100 )?at a {word}", made.header.cost)[1]
        assert hours == f"{count / (share * H100) / 3600:.0f}"


def test_what_a_preset_leaves_out_is_said_where_the_whole_table_is():
    """A word for each thing left out, that stands in the preset and in the experiment."""
    words = ("nine", "median", "embedding", "if the memory", "dropout", "42")
    said = header("ruoss").setting.lower()
    for left in PRESETS["ruoss"].left_out:
        assert any(word in left and word in said for word in words), left
    sizes = from_file(FOLDER / "ruoss.py", yes=True).plan.sizes
    assert (len(sizes), sizes[0], sizes[-1]) == (9, 41, 500) and "nine of the 460 sizes from 41 to 500" in said
