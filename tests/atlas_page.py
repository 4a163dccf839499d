"""The tables of docs/which-scheme.md, from the table of the atlas; tests/test_docs.py writes and checks them."""

from functools import partial

from posenc.lab.results.atlas_cells import recorded_cells
from posenc.lab.spec import atlas

NEEDS = {
    "offset": "find what stands a fixed number of tokens back",
    "pointer": "follow a pointer of up to four places",
    "distance": "tell how far apart two tokens are",
    "index": "tell which of the first eight places has a token",
    "look-up": "find what stands at an index",
    "order": "tell which of two comes first",
    "count": "count",
    "memory": "keep a bit until it is asked for",
    "recall": "find a value by its key",
    "copy": "copy",
    "reverse": "copy backwards",
    "parity": "compute parity",
}
"""Probe to what a reader must do."""
FAR, TWICE = 4.0, 2.0
"""Multiples of the longest size trained on."""


def needs(model="decoder", cells=None):
    """For each probe of a model the rows that hold to 4 L and to 2 L, and how many hold less or did not learn it."""
    yield "I must", "holds to 4 L or further", "to 2 L", "less far", "not learned"
    cells = recorded_cells() if cells is None else cells
    for probe, need in NEEDS.items():
        of_probe = [cell for cell in cells if (cell.model, cell.probe) == (model, probe)]
        if of_probe:
            reach = {cell.row: 0.0 if cell.reach is None else cell.reach for cell in of_probe}
            far = _rows(row for row, times in reach.items() if times >= FAR)
            twice = _rows(row for row, times in reach.items() if TWICE <= times < FAR)
            unlearned = sum(not times for times in reach.values())
            yield need, far, twice, str(sum(0 < times < TWICE for times in reach.values())), str(unlearned)


def longer(cells=None):
    """For each row of decoders how many probes it learned, and how many it holds at 2 L and 4 L; the furthest first."""
    yield "scheme", "probes", "learned", "holds at 2 L", "at 4 L", "which at 4 L"
    cells = [cell for cell in (recorded_cells() if cells is None else cells) if cell.model == "decoder"]
    rows = {row: [cell for cell in cells if cell.row == row] for row in dict.fromkeys(cell.row for cell in cells)}
    held = {
        row: [[c.probe for c in of_row if (c.reach or 0) >= times] for times in (1.0, TWICE, FAR)]
        for row, of_row in rows.items()
    }
    for row in sorted(rows, key=lambda row: ([-len(probes) for probes in held[row][::-1]], row)):
        at_far = ", ".join(sorted(held[row][-1], key=[*atlas.PROBES].index)) or "none"
        yield f"`{row}`", str(len(rows[row])), *(str(len(probes)) for probes in held[row]), at_far


def _rows(rows):
    return ", ".join(f"`{row}`" for row in sorted(rows)) or "none"


TABLES = {"needs": needs, "needs_of_encoders": partial(needs, "encoder"), "longer": longer}
"""The name of a table in the page to its rows."""
