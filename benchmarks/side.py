"""Timing side by side: candidates are compiled first, then run in turn (a, b, c, a, b, c), each in its own process.

A candidate is a function that does one round; it runs in a child process with its own device settings, answers "go" on
a pipe, and reports its compile time and the scratch memory of its program.

The peers' Python also imports this file, so posenc is imported only inside functions that our Python calls.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

NONE: Mapping[str, str] = MappingProxyType({})
DRIFT = 1.15
"""A row is marked if its process multiplied matrices this much faster, or slower, before its rounds than after."""
QUICK = 3
"""Rounds with `--quick`."""
SIDE = 2048
"""Rows and columns of the matrices whose product measures the peak speed of a process."""


class Ready(NamedTuple):
    """A candidate after compilation: `go()` does one round and waits for it; `units` is the work done in a round.

    `peak()` measures the operations per second of its process in a plain product of matrices, before the rounds and
    after them. `probe` holds some numbers of the result, which must agree between candidates of the same function.
    """

    go: Callable[[], None]
    units: float
    compile_s: float
    scratch: int | None = None
    peak: Callable[[], float] | None = None
    probe: tuple[float, ...] | None = None


class Row(NamedTuple):
    """One candidate's rounds."""

    name: str
    seconds: tuple[float, ...]
    units: float
    compile_s: float
    scratch: int | None
    peaks: tuple[float, ...] = ()
    probe: tuple[float, ...] | None = None

    @property
    def speed(self) -> float:
        """Units per second, at the median round."""
        return self.units / statistics.median(self.seconds)

    @property
    def noisy(self) -> bool:
        """Whether its rounds differ too much to be quoted."""
        from posenc.lab.train.bench import noisy

        return noisy(self.seconds)

    @property
    def drifted(self) -> bool:
        """Whether the machine itself was faster before the rounds than after them, or slower."""
        return bool(self.peaks) and max(self.peaks) > DRIFT * min(self.peaks)

    @property
    def marks(self) -> str:
        """Why this row may not be quoted, or an empty text."""
        return " ".join(["noisy"] * self.noisy + ["drifted"] * self.drifted)

    @property
    def efficiency(self) -> float:
        """Units per second over the peak of the same process; a share if units are floating-point operations."""
        return self.speed / statistics.mean(self.peaks)


def compare(module: str, names: list[str], rounds: int, pythons: Mapping[str, str] = NONE) -> dict[str, Row]:
    """Every candidate of a module, compiled one after another, then timed in turn.

    `pythons` names the interpreters of candidates that do not run in ours. Raises `RuntimeError` if one ends early.
    """
    from posenc.lab.train.bench import alternated

    children: dict[str, subprocess.Popen] = {}
    reports: dict[str, dict] = {}
    try:
        for name in names:
            children[name] = _start(module, name, pythons.get(name, sys.executable))
            reports[name] = _read(children[name], name)
        peaks = {name: [_request(children[name], name, "peak")] for name in names if reports[name]["peaks"]}
        goes = [functools.partial(_request, child, name, "go") for name, child in children.items()]
        seconds = dict(zip(names, alternated(goes, rounds), strict=True))
        for name, found in peaks.items():
            found.append(_request(children[name], name, "peak"))
    finally:
        for child in children.values():
            child.communicate()  # closes its input, which ends it
    rows = {}
    for n in names:
        about = reports[n] | {
            "peaks": tuple(peaks.get(n, ())),
            "probe": reports[n]["probe"] and tuple(reports[n]["probe"]),
        }
        rows[n] = Row(n, tuple(seconds[n]), **about)
    return rows


def _start(module: str, name: str, python: str) -> subprocess.Popen:
    command = [python, "-m", module, "--candidate", name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _request(child: subprocess.Popen, name: str, what: str) -> Any:
    with contextlib.suppress(BrokenPipeError):  # the process has ended, which reading reports
        child.stdin.write(what + "\n")
        child.stdin.flush()
    return _read(child, name)


def _read(child: subprocess.Popen, name: str) -> Any:
    line = child.stdout.readline()
    if not line:
        raise RuntimeError(f"The candidate {name!r} ended before it answered; see its own output above.")
    return json.loads(line)


def serve(ready: Ready) -> None:
    """The child's side: report that it is ready, then run a round for every line, or measure its peak."""
    reports = ready._asdict()
    del reports["go"], reports["peak"]
    print(json.dumps(reports | {"peaks": ready.peak is not None}), flush=True)
    for line in sys.stdin:
        if line == "peak\n":
            print(json.dumps(ready.peak()), flush=True)
            continue
        print(json.dumps(_seconds(ready.go)), flush=True)


def best(multiply: Callable[[], Any], tries: int = 7) -> float:
    """Operations per second of a product of two square matrices of size `SIDE`, at the fastest try."""
    multiply()
    return 2 * SIDE**3 / min(_seconds(multiply) for _ in range(tries))


def _seconds(once: Callable[[], Any]) -> float:
    """The seconds that a call takes."""
    began = time.perf_counter()
    once()
    return time.perf_counter() - began


def jax_peak() -> float:
    """Operations per second that jax reaches here in float32."""
    import jax

    from posenc.lab.train.bench import product

    multiply = product(SIDE)
    return best(lambda: jax.block_until_ready(multiply()))


def arguments(
    doc: str,
    rounds: int = 5,
    candidate: Callable[[str], Ready] | None = None,
    **further: str | tuple[str, Sequence[str]],
) -> argparse.Namespace:
    """The options that all benchmarks share, and `further` ones: a help text for a flag, or help and choices.

    `rounds` is the default number of rounds. A child that `compare` started, with `--candidate NAME`, serves the
    `candidate` of that name instead, and ends.
    """
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    help_text = f"timed rounds of each candidate; default {rounds}, or {QUICK} with --quick"
    parser.add_argument("--rounds", type=count, help=help_text)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds; does not judge the bars")
    for name, about in further.items():
        if isinstance(about, str):
            parser.add_argument(f"--{name}", action="store_true", help=about)
        else:
            parser.add_argument(f"--{name}", help=about[0], choices=about[1])
    parser.add_argument("--json", type=Path, help="where to write the figures")
    if candidate is not None:
        parser.add_argument("--candidate", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if candidate is not None and options.candidate:
        serve(candidate(options.candidate))
        sys.exit()
    options.rounds = options.rounds or (QUICK if options.quick else rounds)
    return options


def count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"The number of rounds must be a whole number from 1 up, not {text!r}.")
    return int(text)


def machine() -> dict[str, Any]:
    """The machine and versions that the figures depend on."""
    import jax
    import numpy

    from posenc.lab.train.device import commit, cores

    flags = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
    return {
        "device": jax.devices()[0].device_kind,
        "platform": jax.devices()[0].platform,
        "cores": cores(),
        "cpu": [f for f in ("avx2", "avx512f", "amx_tile") if f in flags],
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": numpy.__version__,
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "x64": bool(jax.config.jax_enable_x64),
        "commit": commit(),
    }


def table(rows: dict[str, Row], base: str, unit: str) -> str:
    """Candidates, their speed relative to `base`, compile times and scratch memory."""
    lines = [
        f"{'candidate':42s} {'ratio':>6s} {unit:>14s} {'min … max s':>16s} {'compile s':>10s} {'scratch MiB':>12s}"
    ]
    for row in rows.values():
        span = f"{min(row.seconds):.3f} … {max(row.seconds):.3f}"
        scratch = "" if row.scratch is None else f"{row.scratch / 2**20:.0f}"
        ratio, mark = row.speed / rows[base].speed, row.marks and f" {row.marks}"
        lines.append(
            f"{row.name:42s} {ratio:6.2f} {row.speed:14.1f} {span:>16s} {row.compile_s:10.1f} {scratch:>12s}{mark}"
        )
    return "\n".join(lines)


def show(figures: Mapping[str, float], wide: int, digits: int = 8) -> None:
    """Print figures under one another, behind names of so many letters."""
    for name, value in figures.items():
        print(f"{name:{wide}s} {value:{digits}.2f}")


def aligned(lines: list[list[str]]) -> str:
    """Cells in columns, the first of each line to the left, the others to the right; lines may end early."""
    width = [max((len(line[n]) for line in lines if n < len(line)), default=0) for n in range(max(map(len, lines)))]
    cells = [
        [a.rjust(w) if n else a.ljust(w) for n, (a, w) in enumerate(zip(line, width, strict=False))] for line in lines
    ]
    return "\n".join("  ".join(line).rstrip() for line in cells)


def caution(rows: Iterable[Any], quick: bool, load: float) -> str:
    """Warnings against quoting the ratios, or an empty text; `load` is the load of the machine before the run."""
    warnings = ["Figures of --quick do not judge the bars."] * quick
    if any(row.marks for row in rows):
        warnings.append(
            f"Ratios of marked rows may not be quoted; the load before was {load:.1f}, so run on an idle machine."
        )
    return "\n".join(warnings)


def write(path: Path | None, figures: dict[str, Any]) -> None:
    """Write the figures as JSON, with the machine that produced them."""
    if path is not None:
        path.write_text(json.dumps({"machine": machine(), **figures}, indent=1) + "\n")
