"""The cost of starting: help without jax, the second start of a sweep, and compiling init.

    python -m benchmarks.compile [--quick] [--rounds 7] [--json figures.json]

E1: `posenc --help` over the interpreter alone. E2: the first and second start of a sweep of the five-layer model, with
the compilation cache of the command line: to the first step, from its record, and from the prompt to the record.
E3: compiling `init` over compiling `segment`. What a whole sweep compiles is in `benchmarks.programs`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import side

WHOLE = "steps=1 width=64 depth=5 heads=8 hidden=256 norm=post batch=8 length=40 sizes=40 rows=8".split()


def seconds(command: list[str], rounds: int, **more) -> float:
    """The median wall time of a command, in seconds."""
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, **more)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def compiling() -> tuple[float, float]:
    """Seconds to compile `init` and `segment` of the five-layer model."""
    import jax

    jax.config.update("jax_num_cpu_devices", 2)
    from benchmarks.sweep import STEPS, cell, compiled_segment
    from posenc.lab.spec.run import Knobs
    from posenc.lab.train.lanes import Arrangement, stack
    from posenc.lab.train.training import as_arrays, program

    how = Arrangement("map", 2)
    run = program(cell(128, 4), STEPS, 1, how)
    lane = stack([as_arrays(Knobs(seed=n)) for n in range(2)], how)
    began = time.perf_counter()
    state = run.init(lane)
    first = time.perf_counter() - began
    began = time.perf_counter()
    compiled_segment(cell(128, 4), STEPS, how, state, lane)
    return first, time.perf_counter() - began


def started(folder: Path) -> tuple[float, float]:
    """Seconds to the first step, and of the whole process, of a sweep of one step in a new run folder."""
    name = f"n{len(list(folder.iterdir()))}"
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "POSENC_RUNS": str(folder / "runs")}
    options = ["--grid", "scheme=rope", "task=even_pairs", "--set", *WHOLE, "--seeds", "2", "--name", name]
    command = [sys.executable, "-m", "posenc", "sweep", *options]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=env)
    whole = time.perf_counter() - began
    (log,) = (folder / "runs" / name / "records").iterdir()
    return json.loads(log.read_text())["provenance"]["seconds"]["compile"], whole


def main() -> None:
    options = side.arguments(__doc__, rounds=7)
    rounds = options.rounds
    interpreter = seconds([sys.executable, "-c", "pass"], rounds)
    helped = seconds([sys.executable, "-m", "posenc", "--help"], rounds)
    jaxed = seconds([sys.executable, "-c", "import jax"], rounds)
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        (folder / "cache").mkdir()
        first, second = started(folder), started(folder)
    init, segment = compiling()
    figures = {
        "interpreter alone, s": interpreter,
        "posenc --help, s": helped,
        "import jax, s": jaxed,
        "E1 help over the interpreter alone, s (bar 0.1)": helped - interpreter,
        "E2 to the first step, first start, s": first[0],
        "E2 to the first step, second start, s": second[0],
        "E2 first / second (bar 3)": first[0] / second[0],
        "E2 prompt to record, first / second": first[1] / second[1],
        "E3 compile init, s": init,
        "E3 compile segment, s": segment,
        "E3 init / segment (bar at most 0.3)": init / segment,
    }
    side.show(figures, 48)
    side.write(options.json, figures)


if __name__ == "__main__":
    main()
