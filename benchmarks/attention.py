"""Our tiled kernel against our dense one, the whole square of scores: bars A1, A2, A3, A4 and A7.

    python -m benchmarks.attention [--quick] [--costs] [--rounds 3] [--json figures.json]

One sequence of 8 heads of 64 features, causal, float32. For each scheme, length and pass, the dense kernel and the
tiled one are compiled, then timed in turn in one process (`posenc.lab.train.bench`, as `posenc bench` does); the
scratch memory of their programs is exact and needs no run, so it is also printed at 32768 tokens, for the dense kernel
where this machine could hold it. The length at which the two cross is the one that `posenc.attention.kernels.dispatch`
should use. `of peak` is operations per second relative to a product of matrices in the same process. At 8192 tokens
only RoPE and T5 run, the schemes of the bars. `--quick` stops at 2048 tokens.

Then schemes beside others that do less, in turn: what gates or priors cost in tiles, what heads of two schemes cost
beside the mean of both, and slices for each axis beside RoPE, each with its goal. `--costs` runs this part alone.
"""

from __future__ import annotations

import os
import statistics
from typing import NamedTuple

from benchmarks import side
from posenc.lab.train import bench

SCHEMES = ("rope", "alibi", "t5", "kerple", "fire", "shaw", "transformer_xl", "fox", "inkling")
BARRED = ("rope", "t5")
"""The schemes of the bars: one that leaves scores alone, and one with a learned bias."""
SHORT, LONG, FAR = (512, 2048), 8192, 32768
CROSSING = (64, 128, 256, 384, 512, 768, 1024, 1536, 2048)
"""Lengths between which the two kernels cross."""
KERNELS = ("dense", "tiled")


class Cost(NamedTuple):
    """A scheme whose time is compared with the mean of others."""

    text: str
    others: tuple[str, ...]
    length: int
    kernel: str
    goal: float


COSTS = (
    Cost("wall", ("fox",), 4096, "tiled", 1.5),
    Cost("wall", ("alibi",), 4096, "tiled", 1.5),
    Cost("bam", ("fox",), 4096, "tiled", 1.5),
    Cost("bam", ("alibi",), 4096, "tiled", 1.5),
    Cost("{alibi, rope}", ("alibi", "rope"), 2048, "tiled", 1.1),
    Cost("{alibi, rope}", ("alibi", "rope"), 512, "auto", 1.1),
    Cost("{fox: 1, nope: 3}", ("fox", "nope", "nope", "nope"), 2048, "tiled", 1.1),
    Cost("rope_axes(widths=(32, 32))", ("rope",), 2048, "tiled", 1.05),
    Cost("rope_axes(widths=(32, 32))", ("rope",), 512, "auto", 1.05),
)


def line(dense: bench.Measured, tiled: bench.Measured) -> list[str]:
    """One row: both kernels for one scheme, length and pass."""
    about = [tiled.scheme, str(tiled.length), tiled.passes]
    less = [f"{dense.scratch / tiled.scratch:.0f}", f"{dense.scratch / 2**20:.0f} → {tiled.scratch / 2**20:.0f}"]
    if not dense.seconds:
        return [*about, "", *less, f"{tiled.of_peak:.2f}", "too large to run", span(tiled), ""]
    marks = dense.marks or tiled.marks
    peak = f"{dense.of_peak:.2f} → {tiled.of_peak:.2f}"
    return [*about, f"{dense.median / tiled.median:.2f}", *less, peak, span(dense), span(tiled), marks]


def span(row: bench.Measured) -> str:
    return f"{min(row.seconds):.3f} … {max(row.seconds):.3f}"


def far(scheme: str, kernel: str) -> str:
    """The scratch memory of both passes, in MiB; "refused" where `attend` rejects a square that memory cannot hold."""
    try:
        return f"{bench.scratch(scheme, FAR, kernel, 'both') / 2**20:.0f}"
    except ValueError:
        if kernel != "dense":
            raise
        return "refused"


HEADER = ["scheme", "tokens", "pass", "faster", "less memory", "MiB", "of peak", "dense s", "tiled s", ""]


def costs(rounds: int) -> None:
    """Print what each scheme of `COSTS` takes relative to the others, and how the memory of wall and bam grows."""
    print("\nBeside others, median over the mean of theirs: scheme, others, tokens, kernel, pass, ratio, goal")
    for text, others, length, kernel, goal in COSTS:
        for passes in bench.PASSES:
            took = bench.beside(list(dict.fromkeys((text, *others))), length, kernel, passes, rounds=rounds)
            median = {name: statistics.median(seconds) for name, seconds in took.items()}
            ratio = median[text] / statistics.mean(median[name] for name in others)
            marks = "noisy" if any(map(bench.noisy, took.values())) else ""
            row = [text, " ".join(others), str(length), kernel, passes, f"{ratio:.2f}", f"≤ {goal}", marks]
            print("\t".join(row), flush=True)
    print("\nScratch memory in tiles, both passes, MiB at 4096 and 8192 tokens (linear: twice)")
    for text in ("wall", "bam", "fox", "alibi"):
        few, many = (bench.scratch(text, length, "tiled", "both") / 2**20 for length in (4096, 8192))
        print(f"{text}\t{few:.0f}\t{many:.0f}\t{many / few:.2f}", flush=True)


def main() -> None:
    options = side.arguments(__doc__, rounds=3, costs="schemes beside others, and nothing else")
    if options.costs:
        return costs(options.rounds)
    load = os.getloadavg()[0]
    shapes = [(s, n) for n in SHORT for s in SCHEMES] + ([] if options.quick else [(s, LONG) for s in BARRED])
    found, every = {}, []
    print("\t".join(HEADER))
    for scheme, length in shapes:
        rows = bench.measure(scheme, length, rounds=options.rounds, kernels=KERNELS)
        every += rows
        for dense, tiled in zip(rows[::2], rows[1::2], strict=True):
            found[scheme, length, tiled.passes] = dense, tiled
            print("\t".join(line(dense, tiled)), flush=True)

    print("\nWhere they cross, RoPE: tokens, then tiled over dense, forward and both, then the choice of auto over the")
    print("better of the two (A4, ≥ 0.95)")
    for length in CROSSING:
        rows = bench.measure("rope", length, rounds=3 * options.rounds, kernels=KERNELS)
        every += rows
        ratios = [dense.median / tiled.median for dense, tiled in zip(rows[::2], rows[1::2], strict=True)]
        chosen = [r if rows[1].auto else 1.0 for r in ratios]
        share = [c / max(r, 1.0) for c, r in zip(chosen, ratios, strict=True)]
        print("\t".join([str(length), *(f"{r:.2f}" for r in (*ratios, *share))]), flush=True)

    if not options.quick:
        print(f"\nScratch memory at {FAR} tokens, both passes, compiled and not run, MiB: scheme, dense, tiled")
        for scheme in SCHEMES:
            print("\t".join([scheme, *(far(scheme, kernel) for kernel in KERNELS)]), flush=True)
        judge(found)
        costs(options.rounds)
    print(side.caution(every, options.quick, load))
    side.write(options.json, {"rows": [row._asdict() for row in every]})


def judge(found: dict) -> None:
    """Print the ratios of the bars, from this run alone."""
    speed = lambda s, kind: found[s, LONG, kind][0].median / found[s, LONG, kind][1].median  # noqa: E731
    less = lambda s: found[s, LONG, "both"][0].scratch / found[s, LONG, "both"][1].scratch  # noqa: E731
    print(f"\nAt {LONG} tokens")
    print(f"A1  RoPE, forward {speed('rope', 'forward'):.2f} (≥ 3.5), both {speed('rope', 'both'):.2f} (≥ 3)")
    print(f"A2  T5, forward {speed('t5', 'forward'):.2f} (≥ 3), both {speed('t5', 'both'):.2f} (≥ 2)")
    print(f"A3  less memory, both: RoPE {less('rope'):.0f}, T5 {less('t5'):.0f} (≥ 100)")
    print(f"A7  RoPE, both, of peak {found['rope', LONG, 'both'][1].of_peak:.2f} (≥ 0.5)")


if __name__ == "__main__":
    main()
