"""Timing side by side: candidates are compiled first, then run in turn (a, b, c, a, b, c), each in its own process.

On a shared machine one program varies by a third within a minute, so only ratios of medians from one run are compared.
A candidate is a function that returns what one round does; it lives in a child process with its own device settings,
answers "go" on a pipe, and reports how long it compiled and how much scratch memory its program takes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

WIDE = 1.5
"""A row whose slowest round took this many times its fastest is marked, and may not be quoted."""
NONE: Mapping[str, str] = MappingProxyType({})
DRIFT = 1.15
"""A row whose process multiplied matrices this much faster before its rounds than after, or slower, likewise."""
SIDE = 2048
"""Rows and columns of the matrices by which a process says how fast it could be."""


class Ready(NamedTuple):
    """A candidate after compilation: `go()` does one round and waits for it; `units` is what a round gets done.

    `peak()` is how many operations a second its process reaches in a plain product of matrices, and is asked before the
    rounds and after them. `probe` is some numbers of the result, by which candidates that should agree are held to it.
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
        return max(self.seconds) > WIDE * min(self.seconds)

    @property
    def drifted(self) -> bool:
        """Whether the machine itself was faster before the rounds than after them, or slower."""
        return bool(self.peaks) and max(self.peaks) > DRIFT * min(self.peaks)

    @property
    def marks(self) -> str:
        """Why this row may not be quoted, or nothing."""
        return " ".join(["noisy"] * self.noisy + ["drifted"] * self.drifted)

    @property
    def efficiency(self) -> float:
        """Units per second, over the peak of the same process; a share where units are floating-point operations."""
        return self.speed / statistics.mean(self.peaks)


def compare(module: str, names: list[str], rounds: int, pythons: Mapping[str, str] = NONE) -> dict[str, Row]:
    """Every candidate of a module, compiled one after another, then timed in turn.

    `pythons` are the interpreters of candidates that do not live in ours. Raises `RuntimeError` where one ends early.
    """
    children: dict[str, subprocess.Popen] = {}
    said: dict[str, dict] = {}
    try:
        for name in names:
            children[name] = _start(module, name, pythons.get(name, sys.executable))
            said[name] = _hear(children[name], name)
        peaks = {name: [_ask(children[name], name, "peak")] for name in names if said[name]["peaks"]}
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(rounds + 1):
            for name, child in children.items():
                took = _ask(child, name, "go")
                if turn:  # the first round warms up
                    seconds[name].append(took)
        for name, found in peaks.items():
            found.append(_ask(children[name], name, "peak"))
    finally:
        for child in children.values():
            child.communicate()  # no more lines: it ends
    rows = {}
    for n in names:
        about = said[n] | {"peaks": tuple(peaks.get(n, ())), "probe": said[n]["probe"] and tuple(said[n]["probe"])}
        rows[n] = Row(n, tuple(seconds[n]), **about)
    return rows


def _start(module: str, name: str, python: str) -> subprocess.Popen:
    command = [python, "-m", module, "--candidate", name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _ask(child: subprocess.Popen, name: str, what: str) -> Any:
    with contextlib.suppress(BrokenPipeError):  # it is gone, and hearing says so
        child.stdin.write(what + "\n")
        child.stdin.flush()
    return _hear(child, name)


def _hear(child: subprocess.Popen, name: str) -> Any:
    line = child.stdout.readline()
    if not line:
        raise RuntimeError(f"The candidate {name!r} ended before it answered; what it said stands above.")
    return json.loads(line)


def serve(ready: Ready) -> None:
    """The child's side: say that it is ready, then a round for every line, or its peak."""
    said = ready._asdict()
    del said["go"], said["peak"]
    print(json.dumps(said | {"peaks": ready.peak is not None}), flush=True)
    for line in sys.stdin:
        if line == "peak\n":
            print(json.dumps(ready.peak()), flush=True)
            continue
        began = time.perf_counter()
        ready.go()
        print(json.dumps(time.perf_counter() - began), flush=True)


def best(multiply: Callable[[], Any], tries: int = 7) -> float:
    """Operations a second of a product of two square matrices of `SIDE`, at the fastest try."""
    multiply()
    took = []
    for _ in range(tries):
        began = time.perf_counter()
        multiply()
        took.append(time.perf_counter() - began)
    return 2 * SIDE**3 / min(took)


def jax_peak() -> float:
    """Operations a second that jax reaches here in float32."""
    import jax
    import jax.numpy as jnp

    a = jnp.ones((SIDE, SIDE))
    multiply = jax.jit(jnp.matmul)
    return best(lambda: jax.block_until_ready(multiply(a, a)))


def arguments(doc: str, **flags: str) -> argparse.Namespace:
    """The options that all benchmarks share, and what further flags mean."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds of each candidate")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    for flag, told in flags.items():
        parser.add_argument(f"--{flag}", action="store_true", help=told)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--candidate", help=argparse.SUPPRESS)
    return parser.parse_args()


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    import jax
    import numpy

    from posenc.lab.device import commit, cores

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
    """Candidates, their speed relative to `base`, and what they cost to compile."""
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


def aligned(lines: list[list[str]]) -> str:
    """Cells in columns, the first of each line to the left, the others to the right; lines may end early."""
    width = [max((len(line[n]) for line in lines if n < len(line)), default=0) for n in range(max(map(len, lines)))]
    cells = [
        [a.rjust(w) if n else a.ljust(w) for n, (a, w) in enumerate(zip(line, width, strict=False))] for line in lines
    ]
    return "\n".join("  ".join(line).rstrip() for line in cells)


def caution(rows: Iterable[Row], quick: bool, load: float) -> str:
    """What forbids to quote the ratios, or nothing; `load` is what the machine did before."""
    said = ["What --quick says judges no bar."] * quick
    if any(row.marks for row in rows):
        said.append(f"Ratios of marked rows may not be quoted; the load before was {load:.1f}: run while all is idle.")
    return "\n".join(said)


def write(path: Path | None, figures: dict[str, Any]) -> None:
    """Keep the figures, with the machine they are from."""
    if path is not None:
        path.write_text(json.dumps({"machine": machine(), **figures}, indent=1) + "\n")
