"""Timing side by side: candidates are compiled first, then run in turn (a, b, c, a, b, c), each in its own process.

On a shared machine one program varies by a third within a minute, so only ratios of medians from one run are compared.
A candidate is a function that returns what one round does; it lives in a child process with its own device settings,
answers "go" on a pipe, and reports how long it compiled and how much scratch memory its program takes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

WIDE = 1.5
"""A row whose slowest round took this many times its fastest is marked, and may not be quoted."""


class Ready(NamedTuple):
    """A candidate after compilation: `go()` does one round and waits for it; `units` is what a round gets done."""

    go: Callable[[], None]
    units: float
    compile_s: float
    scratch: int | None = None


class Row(NamedTuple):
    """One candidate's rounds."""

    name: str
    seconds: tuple[float, ...]
    units: float
    compile_s: float
    scratch: int | None

    @property
    def speed(self) -> float:
        """Units per second, at the median round."""
        return self.units / statistics.median(self.seconds)

    @property
    def noisy(self) -> bool:
        """Whether its rounds differ too much to be quoted."""
        return max(self.seconds) > WIDE * min(self.seconds)


def compare(module: str, names: list[str], rounds: int) -> dict[str, Row]:
    """Every candidate of a module, compiled one after another, then timed in turn."""
    children: dict[str, subprocess.Popen] = {}
    said: dict[str, dict] = {}
    for name in names:
        children[name] = _start(module, name)
        said[name] = json.loads(children[name].stdout.readline())
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds + 1):
        for name, child in children.items():
            child.stdin.write("go\n")
            child.stdin.flush()
            took = json.loads(child.stdout.readline())
            if turn:  # the first round warms up
                seconds[name].append(took)
    for child in children.values():
        child.stdin.close()
        child.wait()
    return {n: Row(n, tuple(seconds[n]), said[n]["units"], said[n]["compile_s"], said[n]["scratch"]) for n in names}


def _start(module: str, name: str) -> subprocess.Popen:
    command = [sys.executable, "-m", module, "--candidate", name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def serve(ready: Ready) -> None:
    """The child's side: say that it is ready, then a round for every line."""
    print(json.dumps({"units": ready.units, "compile_s": ready.compile_s, "scratch": ready.scratch}), flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        ready.go()
        print(json.dumps(time.perf_counter() - began), flush=True)


def arguments(doc: str) -> argparse.Namespace:
    """The options that all benchmarks share."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds of each candidate")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
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
        ratio = row.speed / rows[base].speed
        mark = " noisy" if row.noisy else ""
        lines.append(
            f"{row.name:42s} {ratio:6.2f} {row.speed:14.1f} {span:>16s} {row.compile_s:10.1f} {scratch:>12s}{mark}"
        )
    return "\n".join(lines)


def write(path: Path | None, figures: dict[str, Any]) -> None:
    """Keep the figures, with the machine they are from."""
    if path is not None:
        path.write_text(json.dumps({"machine": machine(), **figures}, indent=1) + "\n")
