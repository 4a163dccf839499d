"""Tables of images: one half of the features for each axis, in the layouts of three packages."""

from collections.abc import Iterator

import jax
import numpy as np

import posenc
from tests.golden.case import Case, Check

schemes = ("sinusoidal_2d",)
LAYOUTS = {
    "halves of the width for each axis, in each first all sines, then all cosines": "halves",
    "nested from the outside in: axis, sine/cosine, band": "halves",
    "nested from the outside in: sine/cosine, axis, band": "sines_first",
    "nested from the outside in: axis, band, sine/cosine": "interleaved",
}


def compare(case: Case) -> Iterator[Check]:
    args, table, places = case.args, case.arrays["table"], case.arrays["positions"]
    layout, order = LAYOUTS[args["layout"]], {"row, column": "straight", "column, row": "swapped"}[args["order"]]
    scheme = posenc.parse(f"sinusoidal_2d('axes', layout={layout!r}, order={order!r}, base={args['base']!r})")
    with jax.enable_x64(args["dtype"] != "f32"):
        x = np.zeros((len(places), table.shape[1]), places.dtype if places.dtype == np.float64 else np.float32)
        ours = posenc.embed(scheme, {"layer": {}, "heads": {}}, x, positions=places)
    before = args.get("zero_rows", 0)  # of tokens that have no place
    yield Check("rows before the grid", table[:before], np.zeros((before, table.shape[1])), 0)
    yield Check("table", ours, table[before:], 1e-6)
