"""Dense attention with all of its scores at once, and in blocks that stay in the cache: where the second begins to pay.

    python -m benchmarks.squares [--quick] [--rounds 9] [--json figures.json]

One attention of a batch, causal, float32, on the CPU: the whole square (`kernel="dense"`), and blocks of sequences and
heads (`posenc.attention.kernels.blocks`), which `kernel="auto"` takes from `blocks.LONG` on; here they are taken at
every length. All programs of a row are compiled first, then timed in turn in one process. `auto` names the kernel that
is taken where none is requested. Last comes the scratch memory of a training step of `benchmarks.step`, compiled and
not run. `--quick` leaves out 1,024 tokens and the step.
"""

from __future__ import annotations

import contextlib
import functools
import os
import statistics
from collections.abc import Iterator
from typing import NamedTuple
from unittest import mock

import jax

import posenc
from benchmarks import side, step
from posenc.attention.kernels import blocks, choose
from posenc.lab.train import bench
from posenc.lab.train.bench import noisy

BAR = 400
"""MiB that a training step may take."""


class Size(NamedTuple):
    """A batch of one attention."""

    batch: int
    length: int
    heads: int
    head: int


SIZES = (
    Size(16, 256, 8, 32), Size(4, 1024, 4, 32), Size(16, 512, 8, 32), Size(16, 128, 4, 16), Size(16, 64, 4, 16),
    Size(16, 32, 4, 16),
)  # fmt: skip


class Timing(NamedTuple):
    """One program of one row."""

    size: Size
    passes: str
    kernel: str
    seconds: tuple[float, ...]
    scratch: int

    @property
    def marks(self) -> str:
        """Why this row may not be quoted, or nothing."""
        return "noisy" if noisy(self.seconds) else ""


@contextlib.contextmanager
def blocks_from(scores: int) -> Iterator[None]:
    """Blocks for every head with so many scores."""
    with mock.patch.object(blocks, "LONG", scores), mock.patch.dict(choose.__globals__["CROSSING"], cpu=2**62):
        yield


def compiled(size: Size, passes: str, kernel: str):
    """The program of one attention, and its arguments."""
    dims = posenc.Dims(size.heads * size.head, size.heads, size.head, trained=size.length)
    rope = posenc.bind(posenc.parse("rope"), dims)
    arrays = [jax.random.normal(key, size[:2] + size[2:]) for key in jax.random.split(jax.random.key(0), 3)]
    out = lambda q, k, v: posenc.attend(rope, None, q, k, v, kernel=kernel)  # noqa: E731
    f = out if passes == "forward" else jax.grad(lambda *a: (out(*a) ** 2).sum(), (0, 1, 2))
    return jax.jit(f).lower(*arrays).compile(), arrays


def measure(size: Size, passes: str, rounds: int) -> list[Timing]:
    """The whole square, blocks, and what is taken where no kernel is requested."""
    whole, usual = compiled(size, passes, "dense"), compiled(size, passes, "auto")
    with blocks_from(1):
        apart = compiled(size, passes, "auto")
    programs = {"dense": whole, "blocks": apart, "auto": usual}
    seconds = bench.in_turn([functools.partial(program, *arrays) for program, arrays in programs.values()], rounds)
    need = [program.memory_analysis().temp_size_in_bytes for program, _ in programs.values()]
    return [Timing(size, passes, *row) for row in zip(programs, map(tuple, seconds), need, strict=True)]


def line(rows: list[Timing]) -> list[str]:
    """One row: each program's speed over that of the whole square, and its memory."""
    size, passes = rows[0].size, rows[0].passes
    base, *others = (statistics.median(row.seconds) for row in rows)
    label = f"{size.batch} × {size.length}, {size.heads} × {size.head}"
    memory = " → ".join(f"{row.scratch / 2**20:.0f}" for row in rows)
    return [label, passes, *(f"{base / other:.2f}" for other in others), f"{base * 1e3:.1f}", memory,
            " ".join({row.marks for row in rows} - {""})]  # fmt: skip


HEADER = ["batch × tokens, heads", "pass", "blocks faster", "auto faster", "dense ms", "MiB dense → blocks → auto", ""]


def main() -> None:
    options = side.arguments(__doc__, rounds=9)
    jax.config.update("jax_platforms", "cpu")
    load, lines, every = os.getloadavg()[0], [HEADER], []
    for size in SIZES:
        if options.quick and size.length > 512:
            continue
        for passes in bench.PASSES:
            every += (rows := measure(size, passes, options.rounds))
            lines.append(line(rows))
    print(side.aligned(lines))
    if not options.quick:
        scratch = step.ours(step.Size()).scratch / 2**20
        print(f"\nMemory of the training step of benchmarks.step: {scratch:.0f} MiB (bar ≤ {BAR})")
    print(side.caution(every, options.quick, load))
    side.write(options.json, {"rows": [row._asdict() for row in every]})


if __name__ == "__main__":
    main()
