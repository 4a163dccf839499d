"""`posenc bench`: times the kernels that can run a scheme, on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from posenc.lab.cli.options import Flag
from posenc.lab.cli.output import say, say_json, say_rows
from posenc.lab.spec.modules import load_named


@dataclass(frozen=True)
class Bench:
    """The speed of each kernel for a scheme on this machine, relative to the dense one: `posenc bench t5 --length 512`.

    One causal sequence. Kernels run in turns; ratios compare medians. A marked row varied too much to be quoted.
    The full set of comparisons, with other libraries, is `python -m benchmarks.attention` in the repository.
    """

    schemes: Annotated[Positional[tuple[str, ...]], arg(metavar="SCHEME ...")] = ("rope", "t5")
    """Schemes: rope, "rope + alibi"."""
    length: tuple[int, ...] = (512, 2048)
    """Tokens."""
    heads: int = 8
    """Query heads."""
    head: int = 64
    """Features of one head."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """The type of queries, keys and values."""
    rounds: int = 5
    """Timed rounds of each kernel."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        for name in ("length", "heads", "head", "rounds"):
            value = getattr(self, name)
            if any(n < 1 for n in (value if name == "length" else (value,))):
                raise ValueError(f"--{name} is {value}; it must be a whole number of at least 1.")
        load_named(self.schemes)
        from posenc.lab.train import bench, device

        refused = {
            text: bench.refused(text) for text in self.schemes
        }  # an unknown scheme fails before anything is timed
        timings = [
            row
            for text in self.schemes
            for n in self.length
            for row in bench.measure(text, n, self.heads, self.head, dtype=self.dtype, rounds=self.rounds)
        ]
        if self.json:
            rows = [{**row._asdict(), "median": row.median if row.seconds else None} for row in timings]
            say_json({"machine": device.describe(), "rows": rows, "refused": refused})
            return 0
        say_rows(HEADER, table(timings))
        for text, why in refused.items():
            for kernel, reason in why.items():
                say(f"\n{text}: {kernel} does not serve it, since it {reason}.")
        return 0


HEADER = ["scheme", "tokens", "pass", "kernel", "faster", "min … max s", "scratch MiB", "of peak", ""]


def table(timings: Sequence[Any]) -> list[list[str]]:
    """A line for each kernel, against the dense one of the same scheme, length and pass."""
    base = {(r.scheme, r.length, r.passes): r for r in timings if r.kernel == "dense"}
    rows = []
    for r in timings:
        dense, cells = base.get((r.scheme, r.length, r.passes)), ["", "", "needs too much memory"]
        if r.seconds:
            ratio = f"{dense.median / r.median:.2f}" if dense and dense.seconds else ""
            cells = [ratio, f"{min(r.seconds):.4f} … {max(r.seconds):.4f}", f"{r.of_peak:.2f}"]
        marks = ["auto"] * r.auto + [r.marks] * bool(r.marks)
        labels = [r.scheme, str(r.length), r.passes, r.kernel]
        rows.append([*labels, *cells[:2], f"{r.scratch / 2**20:.0f}", cells[2], ", ".join(marks)])
    return rows
