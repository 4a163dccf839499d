"""The tables of the page on which scheme serves for what, from cells with known reach; and the cells that come with
posenc, from the records of the atlas.

POSENC_REGENERATE=1 pytest tests/test_atlas_page.py -n0 -k records       writes these cells again
"""

import os
import re
from pathlib import Path

from posenc.lab.results import atlas_cells
from posenc.lab.results.results import load
from posenc.lab.spec import atlas, committed
from tests.atlas_page import NEEDS, longer, needs
from tests.lab.test_atlas_cells import cell

CELLS = (
    cell("rope", reach=1.25),
    cell("fox", reach=2.0),
    cell("path", reach=8.0),
    cell("nope", reach=None),
    cell("fox", probe="count", reach=4.0),
    cell("rope", model="encoder", reach=3.0),
)


def test_every_probe_is_a_need():
    assert [*NEEDS] == [*atlas.PROBES]


def test_rows_stand_by_how_far_they_hold_and_where_none_does_it_says_none():
    _, offset, count = needs("decoder", CELLS)
    assert offset == (NEEDS["offset"], "`path`", "`fox`", "1", "1")
    assert count == (NEEDS["count"], "`fox`", "none", "0", "0")
    assert [*needs("encoder", CELLS)][1:] == [(NEEDS["offset"], "none", "`rope`", "0", "0")]


def test_rows_of_decoders_are_in_the_order_of_what_they_hold():
    _, *rows = longer(CELLS)
    assert rows == [
        ("`fox`", "2", "2", "2", "1", "count"),
        ("`path`", "1", "1", "1", "1", "offset"),
        ("`rope`", "1", "1", "0", "0", "none"),
        ("`nope`", "1", "0", "0", "0", "none"),
    ]


def test_the_cells_that_come_with_posenc_are_those_of_the_records():
    folder = committed.folders()[0]
    paths = [committed.record_of(folder / f"{name}.py") for name in atlas.EXPERIMENTS]
    cells = [cell for path in paths if path.is_file() for cell in atlas_cells.atlas_cells(load(path))]
    if os.environ.get("POSENC_REGENERATE"):
        (folder / "records" / atlas_cells.TABLE).write_text(atlas_cells.write(cells), encoding="utf-8")
    assert list(atlas_cells.recorded_cells()) == cells


def test_what_the_front_page_says_of_the_atlas():
    readme = " ".join((Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8").split())
    assert "(experiments/figures/atlas_both.svg)" in readme
    rows = {model: {} for model in atlas.MODELS}
    for recorded in atlas_cells.recorded_cells():
        if ", trained with" not in recorded.row:
            rows[recorded.model].setdefault(recorded.probe, {})[recorded.row] = recorded.reach or 0
    encoders, rows = rows["encoder"], rows["decoder"]
    assert {len(of) for of in rows.values()} == {46} and (len(rows), len(encoders)) == (11, 8)
    assert "eleven in decoders and eight in encoders" in readme
    held = {(probe, n): {row for row, reach in of.items() if reach >= n} for probe, of in rows.items() for n in (2, 4)}
    counts = re.search(
        r"46 rows .*? (\d+) hold the token three places back to 4 L and (\d+) say which of the .* (\w+) hold both",
        readme,
    )
    both = held["offset", 4] & held["index", 4]
    assert counts.groups() == (str(len(held["offset", 4])), str(len(held["index", 4])), "three") and len(both) == 3
    assert len(held["recall", 4]) == 30 and "Values found by their keys are held to 4 L by 30" in readme
    falling = {"convit(axes=1)", "grape_a", "kerple", "kerple + dape", "kerple + dape_v2", "sandwich"}
    assert held["copy", 2] == falling and "Copies are held to 2 L by six" in readme
    assert held["parity", 2] == {"path", "lstm", "gru"} and "and parity by PaTH, LSTM and GRU" in readme
    alike = {"alibi", "alibi(factor=64.0)", "kerple", "kerple + dape", "sandwich", "fire"}
    assert not any(encoders["offset"][row] for row in alike)
    assert "penalties that are alike on both sides (ALiBi, KERPLE, Sandwich, FIRE) do not learn the token" in readme
    assert min(encoders["pointer"][row] for row in ("alibi(factor=64.0)", "kerple", "sandwich")) >= 4
    assert "as a pointer's, steep ALiBi, KERPLE and Sandwich hold it to 4 L" in readme
