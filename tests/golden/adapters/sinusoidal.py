"""Tables of sines and cosines: the paper's, Marian's, tensor2tensor's and fairseq's."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Case, Check, NotCovered

schemes = ("sinusoidal",)
FORMS = {
    "interleaved: dim 2i sin, dim 2i+1 cos, exponents 2i/d": ("interleaved", "paper"),
    "sin half | cos half, exponents 2i/d (the paper's frequencies)": ("halves", "paper"),
    "sin half | cos half, exponents i/(n-1) with n=channels//2": ("halves", "t2t"),
}


def compare(case: Case) -> Iterator[Check]:
    args, table = case.args, case.arrays["table"]
    if args.get("min_timescale", 1.0) != 1.0:
        raise NotCovered("the shortest wavelength is not 2π")
    layout, spacing = ("halves", "t2t") if args["layout"].startswith("as tensor2tensor") else FORMS[args["layout"]]
    base = args.get("max_timescale", 10000.0)
    positions = np.arange(len(table)) + args.get("start_index", 0)
    text, width = f"sinusoidal(base={base!r}, layout={layout!r}, spacing={spacing!r})", table.shape[1]
    ours = encoding(text, positions, width)
    kept = np.arange(len(table)) != args.get("padding_idx", -1)
    yield Check("table", ours[kept], table[kept], 1e-6 if positions.max() < 100 else 5e-3)
    if "table_f64" in case.arrays:
        yield Check("table_f64", ours, case.arrays["table_f64"], 1e-6)
        with jax.enable_x64(True):
            yield Check("table_f64 in float64", encoding(text, positions, width), case.arrays["table_f64"], 1e-10)


def encoding(text: str, positions: np.ndarray, width: int) -> np.ndarray:
    """What a scheme adds to an input of zeros."""
    x = jnp.zeros((len(positions), width))
    f = lambda x, positions: posenc.embed(scheme, {"layer": {}, "heads": {}}, x, positions=positions)  # noqa: E731
    scheme = posenc.parse(text)
    return np.asarray(jax.jit(f)(x, positions.astype(np.int32)))
