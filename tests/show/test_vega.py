"""Charts of panels stand where their numbers are, by a scale worked out here, on linear and on log axes."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from posenc.lab.figures.panels import Panel
from posenc.lab.figures.style import Look
from posenc.lab.report.vega import TALL, WIDE, need_altair, picture

LOOKS = {"rope": Look("#000000", "o", "-")}
SHARES = Panel(
    {"rope": {8: [0.5, 1.0, 0.0], 16: [0.25, 0.75, 0.5], 32: [0.1, 0.2, 0.9]}},
    "size",
    "accuracy",
    "copy",
    seeds={"rope": {8: [3, 5, 7], 16: [3, 5, 7], 32: [3, 5, 7]}},
)
LOSSES = Panel({"rope": {0: [2.0], 50: [0.2], 100: [0.002]}}, "steps", "loss", "copy", log=False, falling=True)


def points(path):
    numbers = np.array(re.findall(r"-?[\d.]+", path), float)
    return numbers.reshape(-1, 2)


class Drawn(HTMLParser):
    """The points of medians, of floors, and of runs by their text."""

    def __init__(self, page):
        super().__init__()
        self.median, self.floors, self.runs = None, [], {}
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag != "path" or "stroke" not in found:
            return
        if found.get("opacity") == "0":
            self.runs[found["aria-label"]] = points(found["d"])
        elif found.get("stroke-dasharray") == "0.1,3.2":
            self.floors.append(points(found["d"]))
        elif "opacity" not in found:
            self.median = points(found["d"])


def check(panel, middles, singles, log_x, log_y, ends):
    drawn = Drawn(picture(panel, LOOKS, {"rope": "rope"}))
    places = sorted(panel.points["rope"])
    x = np.log(places) if log_x else np.array(places, float)
    across = np.interp(x, (x[0], x[-1]), (0, WIDE))
    turn = np.log if log_y else np.asarray

    def heights(values):
        return np.interp(turn(values), turn(ends), (TALL, 0))

    np.testing.assert_allclose(drawn.median, np.c_[across, heights(middles)], atol=0.11)
    assert len(drawn.runs) == len(singles)
    for title, values in singles.items():
        (run,) = (run for said, run in drawn.runs.items() if said.startswith(title))
        np.testing.assert_allclose(run, np.c_[across, heights(values)], atol=0.11)


def test_shares_stand_at_their_heights_and_doubling_sizes_at_equal_steps():
    runs = {f"rope, seed {s}: ": [SHARES.points["rope"][n][k] for n in (8, 16, 32)] for k, s in enumerate((3, 5, 7))}
    check(SHARES, [0.5, 0.5, 0.2], runs, True, False, (0.0, 1.0))


def test_losses_stand_on_a_log_axis():
    check(LOSSES, [2.0, 0.2, 0.002], {"rope, run 1: ": [2.0, 0.2, 0.002]}, False, True, (0.002, 2.0))


def test_floors_are_dotted_lines_with_their_names():
    floors = {n: {"uniform": 0.25, "position": 0.5} for n in (8, 16, 32)}
    page = picture(Panel(SHARES.points, "size", "accuracy", floors=floors, trained=(4, 16)), LOOKS, {"rope": "rope"})
    assert sorted({*line[:, 1]} for line in Drawn(page).floors) == [{0.75 * TALL}, {0.5 * TALL}]
    assert "guess at 32: 0.25" in page and "position at 32: 0.50" in page
    assert "trained on 4–16" in page and page.count('fill="#f1f1ee"') == 1


def test_one_place_and_equal_losses_are_drawn():
    for panel in (
        Panel({"rope": {8: [0.5]}}, "size", "accuracy"),
        Panel({"rope": {8: [1.0]}}, "x", "loss", falling=True),
        Panel({"rope": {1: [0.5]}}, "size", "accuracy", log=True),
        Panel({"rope": {0: [0.5]}}, "size", "accuracy", log=False),
    ):
        page = picture(panel, LOOKS, {"rope": "rope"})
        assert "NaN" not in page and len(Drawn(page).median) == 1


def test_a_height_beyond_the_ends_stays_at_them():
    page = picture(Panel({"rope": {8: [-0.9], 16: [0.5]}}, "size", "gain", ends=(0.0, 1.0)), LOOKS, {"rope": "rope"})
    assert Drawn(page).median[:, 1].tolist() == [TALL, TALL / 2]


def test_a_hostile_name_is_a_text():
    evil = "<script>'\"&"
    page = picture(Panel({evil: {8: [0.5], 16: [0.5]}}, evil, evil, evil), {evil: LOOKS["rope"]}, {evil: evil})
    assert "<script>" not in page and "&lt;script" in page


def test_without_altair_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"posenc\[plot\]"):
        need_altair()
