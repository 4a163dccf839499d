"""Pictures of panels stand where their numbers are, by a scale worked out here, on linear and on log axes."""

import re
from html.parser import HTMLParser

import numpy as np

from posenc.lab.figures.panels import Panel
from posenc.lab.figures.style import Look
from posenc.lab.figures.svg import BOTTOM, LEFT, RIGHT, TALL, TOP, WIDE, picture

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
    """The points of paths by class, and of runs by their seed."""

    def __init__(self, page):
        super().__init__()
        self.lines, self.runs, self.title = {}, {}, ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag == "path" and found.get("class") in ("median", "floor"):
            self.lines[found["class"]] = points(found["d"])
        elif tag == "path" and "class" not in found:
            self.runs[self.title] = points(found["d"])

    def handle_data(self, data):
        self.title = data


def check(panel, middles, singles, log_x, log_y, ends):
    drawn = Drawn(picture(panel, LOOKS, {"rope": "rope"}))
    places = sorted(panel.points["rope"])
    x = np.log(places) if log_x else np.array(places, float)
    across = np.interp(x, (x[0], x[-1]), (LEFT + 8, WIDE - RIGHT - 8))
    turn = np.log if log_y else np.asarray

    def heights(values):
        return np.interp(turn(values), turn(ends), (TALL - BOTTOM - 3, TOP + 3))

    np.testing.assert_allclose(drawn.lines["median"], np.c_[across, heights(middles)], atol=0.06)
    assert len(drawn.runs) == len(singles)
    for title, values in singles.items():
        (run,) = (run for said, run in drawn.runs.items() if said.startswith(title))
        np.testing.assert_allclose(run, np.c_[across, heights(values)], atol=0.06)


def test_shares_stand_at_their_heights_and_doubling_sizes_at_equal_steps():
    runs = {f"rope, seed {s}: ": [SHARES.points["rope"][n][k] for n in (8, 16, 32)] for k, s in enumerate((3, 5, 7))}
    check(SHARES, [0.5, 0.5, 0.2], runs, True, False, (0.0, 1.0))


def test_losses_stand_on_a_log_axis():
    check(LOSSES, [2.0, 0.2, 0.002], {"rope, run 1: ": [2.0, 0.2, 0.002]}, False, True, (0.002, 2.0))


def test_floors_are_dotted_lines_with_their_names():
    floors = {n: {"uniform": 0.25, "position": 0.5} for n in (8, 16, 32)}
    page = picture(Panel(SHARES.points, "size", "accuracy", floors=floors, trained=(4, 16)), LOOKS, {"rope": "rope"})
    assert page.count('class="floor"') == 2 and "guess at 32: 0.25" in page and "position at 32: 0.50" in page
    assert "trained on 4–16" in page and page.count('class="strip"') == 1


def test_one_place_and_equal_losses_are_drawn():
    for panel in (
        Panel({"rope": {8: [0.5]}}, "size", "accuracy"),
        Panel({"rope": {8: [1.0]}}, "x", "loss", falling=True),
    ):
        page = picture(panel, LOOKS, {"rope": "rope"})
        assert "nan" not in page and 'class="median"' in page
