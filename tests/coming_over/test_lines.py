"""Each line of docs/coming-over.md is what the other package computes: on its stored numbers, and where it is
installed on those of today."""

import re
from pathlib import Path

import numpy as np
import pytest

import posenc
from tests.coming_over.lines import HEAD, HEADS, LENGTH, LINES, keys, queries
from tests.coming_over.record import STORED, key
from tests.golden.through import bias

PAGE = (Path(__file__).parents[2] / "docs" / "coming-over.md").read_text(encoding="utf-8")
ROWS = {(row[0], row[1]): row for row in (
    [cell.strip().replace("\\|", "|") for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines()
) if len(row) == 5}  # fmt: skip
NUMBERS = dict(np.load(STORED))
DIMS = posenc.Dims(width=16, heads=HEADS, head=HEAD, trained=LENGTH, longest=32)


def ours(line):
    """What posenc makes of the same numbers."""
    scheme, params, places = posenc.bind(line.text, DIMS), line.params(), line.positions
    places = np.arange(LENGTH) if places is None else places
    if line.kind in ("queries", "scores"):
        q, k = posenc.rotate(scheme, params, queries(), keys(), places.astype(np.int32))
        return q if line.kind == "queries" else np.einsum("ihd,jhd->hij", q, k)
    if line.kind == "added":
        places = places.astype(np.int32 if line.text == "learned" else np.float32)
        return posenc.embed(scheme, params, np.zeros((len(places), 16), np.float32), positions=places)
    params = {"layer": {}, "heads": {}} if params is None else params
    added = bias(scheme, params, HEADS, LENGTH, LENGTH, np.float32, positions=places, key_positions=places)
    return np.tril(added) if line.causal else added


def stated(line):
    """The difference that the page states."""
    return float(re.fullmatch(r"(\de-\d+)", ROWS[line.package, f"`{line.name}`"][4])[1])


@pytest.mark.parametrize("line", LINES, ids=key)
def test_a_line_is_what_the_package_gave(line):
    assert ROWS[line.package, f"`{line.name}`"][2] == f"`{line.text}`"
    np.testing.assert_allclose(ours(line), NUMBERS[key(line)], rtol=0, atol=stated(line))


@pytest.mark.parametrize("line", LINES, ids=key)
def test_a_line_is_what_the_installed_package_gives(line):
    """An environment of its own has the packages; those that this one lacks are skipped by name."""
    try:
        theirs = line.theirs()
    except ModuleNotFoundError as error:
        pytest.skip(f"{line.package} is not installed: {error}")
    np.testing.assert_allclose(theirs, NUMBERS[key(line)], rtol=0, atol=2e-6)
    np.testing.assert_allclose(ours(line), theirs, rtol=0, atol=stated(line))


def test_the_page_has_no_row_without_a_line():
    assert {row for row in ROWS if not set(row[0]) <= set("-: ") and row[0] != "package"} == {
        (line.package, f"`{line.name}`") for line in LINES
    }
