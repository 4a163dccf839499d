"""What a run of many records costs to look at: `posenc status`, the start of a worker, and a claim.

    python -m benchmarks.scale [--records 10000] [--rounds 3] [--json figures.json]

Makes a run folder of simulated results: one trial for each record, valid and sealed as the real writer's, in the logs
of four workers, and eight planned trials without a result. Then it measures the seconds of `posenc status` and of a
worker until it asks for its first claim, each in a fresh process, imports included; and the milliseconds of a claim: to
take a group, to look for its own record, and to give it back. Figures are medians of the rounds. Bars: at 10,000
records 1 s, 1.5 s and 50 ms; at 100,000 5 s for the status.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import side

WORKERS, LEFT = 4, 8
"""Planned trials without a result."""
SIZES, TRAINED, POINTS = (8, 12, 16, 24, 32, 48, 64), (2, 4, 8), 20
SCHEMES = ("rope", "nope", "alibi", "t5", "sinusoidal")
WIDTHS = (8, 16, 24, 32)
FIRST_CLAIM = """
import os, sys
from posenc.lab.cli import main
from posenc.lab.store import folder

def first(*_):
    print("claim", flush=True)
    os._exit(0)

folder.claim = first
sys.exit(main(["work", sys.argv[1]]))
"""


def simulated(folder: Path, records: int) -> None:
    """Plan a run of so many recorded trials and some that are left, each a group of its own, and write the records."""
    from posenc.lab.run.plan import lines, resolved_runs
    from posenc.lab.spec.experiment import Experiment, grid
    from posenc.lab.spec.run import Plan, Run
    from posenc.lab.store import disk
    from posenc.lab.store import folder as store
    from posenc.lab.store.logs import sealed
    from posenc.lab.train import device

    device.prepare()
    seeds = -(-(records + LEFT) // (len(SCHEMES) * len(WIDTHS)))
    base = Run(task="even_pairs", depth=1, heads=2, batch=8, length=8)
    plan = Plan(steps=20 * POINTS, seeds=tuple(range(seeds)), sizes=SIZES, rows=64, segment=20)
    asked = Experiment("scale", grid(base, scheme=list(SCHEMES), width=list(WIDTHS)), plan)
    planned = lines(asked, resolved_runs(asked), set())[: records + LEFT]
    planned = [line for _, line in zip(range(records + LEFT), _alone(planned), strict=True)]
    store.ready(folder)
    store.write_plan(folder, planned)
    about = device.describe() | {"lanes": "map", "host": "simulated", "ended": "2026-01-01T00:00:00+00:00"}
    place = disk.inside(folder, "records")
    for worker in range(WORKERS):
        with open(place / f"simulated-{worker}.jsonl", "wb") as log:  # not synced, as it can be made again
            log.writelines(sealed(_record(line, about)) + b"\n" for line in planned[worker:records:WORKERS])


def _alone(lines: list) -> Iterator:
    """Each trial as a group of its own."""
    import dataclasses

    from posenc.lab.store.folder import digest

    return (dataclasses.replace(line, group=digest([line.id])) for line in lines)


def _record(line, about: dict):
    """What a worker would record of a trial."""
    from posenc.lab.store.schema import GroupRecord, TaskRecord, TrialRecord

    seed = line.knobs.seed

    def counts(n: int) -> dict[str, int]:
        return {"correct": 64 - (7 * n + seed) % 31, "scored": 64, "exact": 32 - (n + seed) % 17, "rows": 64}

    curve = {"step": [20 * (n + 1) for n in range(POINTS)], "loss": [(0.7 + seed % 7) / (n + 1) for n in range(POINTS)]}
    floors = {n: {"uniform": 0.5, "prior": 0.5 + 1 / (n + 3), "position": 0.5 + 1 / (n + 2)} for n in SIZES}
    task = TaskRecord("even_pairs", "token", (1, 8), floors)
    found, checked = {n: counts(n) for n in SIZES}, {n: counts(n) for n in TRAINED}
    trial = TrialRecord(line.id, line.knobs, line.steps, "done", None, found, checked, curve)
    clock = {"compile": 2.5, "train": 3.25, "evaluate": 0.5}
    compiled = {"programs": 3, "seconds": 0.125}
    about = about | {"seconds": clock, "compiled": compiled}
    return GroupRecord(line.run, line.label, line.family, task, (trial,), about)


def status_s(folder: Path) -> float:
    """Seconds of `posenc status` in a fresh process."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "posenc", "status", str(folder)], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def start_s(folder: Path) -> float:
    """Seconds from the start of a worker's process until it asks for its first claim."""
    began = time.perf_counter()
    command = [sys.executable, "-c", FIRST_CLAIM, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as worker:
        assert worker.stdout is not None
        said = worker.stdout.readline()
    if said != b"claim\n":
        raise RuntimeError("The worker ended before it asked for a claim; run `posenc work` on the folder to see why.")
    return time.perf_counter() - began


def claim_ms(folder: Path) -> float:
    """Milliseconds of one claim: the median over the groups that are left, several times."""
    from posenc.lab.store import folder as store

    left = store.read_plan(folder)[-LEFT:]
    took, recorded = [], store.Recorded(folder)
    for line in itertools.islice(itertools.cycle(left), 5 * LEFT):
        began = time.perf_counter()
        with store.claim(folder, line.group) as claim:
            assert claim is not None and line.id not in recorded.ids()
        took.append(1e3 * (time.perf_counter() - began))
    return statistics.median(took)


MEASURED: dict[str, Callable[[Path], float]] = {"status_s": status_s, "start_s": start_s, "claim_ms": claim_ms}
BARS = {10_000: {"status_s": 1.0, "start_s": 1.5, "claim_ms": 50.0}, 100_000: {"status_s": 5.0}}
"""By the number of records."""


def main() -> None:
    options = side.arguments(__doc__, 3, records=("how many records", None))
    records = side.count(options.records or "10000")
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "scale"
        simulated(folder, records)
        figures = {}
        for name, measure in MEASURED.items():
            figures[name] = statistics.median(measure(folder) for _ in range(options.rounds))
    bars = BARS.get(records, {})
    print(f"{records:,} records")
    for name, value in figures.items():
        print(f"{name:10s} {value:8.2f}{f'  (bar {bars[name]:g})' if name in bars else ''}")
    side.write(options.json, {"load before": load, "records": records, **figures})


if __name__ == "__main__":
    main()
