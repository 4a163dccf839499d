"""Tiles against the whole square of scores, ours against ours: bars A1, A2, A3, A4 and A7.

    python -m benchmarks.attention [--quick] [--rounds 5] [--json figures.json]

One sequence of 8 heads of 64 features, causal, float32. For each scheme, length and pass, the dense kernel and the
tiled one are timed in turn; the scratch memory of their compiled programs is exact and needs no run, so that it is said
at 32768 tokens too. Where the two cross is what `posenc.kernels.dispatch` should say. Speed is operations a second, and
`of peak` is over what the same process reaches in a product of matrices. At 8192 tokens only RoPE and T5 are run,
which is where the bars are. `--quick` stops at 2048 and takes 3 rounds.
"""

from __future__ import annotations

import functools
import os
import time

from benchmarks import side

HEADS, HEAD = 8, 64
SCHEMES = ("rope", "alibi", "t5", "kerple", "fire", "shaw", "transformer_xl", "fox")
BARRED = ("rope", "t5")
"""The schemes of the bars: one that reads nothing, and one with a learned band."""
SHORT, LONG, FAR = (512, 2048), 8192, 32768
CROSSING = (64, 128, 256, 512, 768, 1024, 1536, 2048, 4096)
"""Lengths between which the two kernels cross."""
PASSES = ("forward", "both")
MODULE = "benchmarks.attention"


def name(scheme: str, length: int, kind: str, kernel: str) -> str:
    return f"{scheme}/{length}/{kind}/{kernel}"


def operations(length: int, kind: str) -> float:
    """Products alone: two of L² d for each head, halved by the mask; with the gradient three and a half times that."""
    return 2 * length**2 * HEAD * HEADS * (1 if kind == "forward" else 3.5)


def compiled(candidate: str):
    """The program of a candidate, its inputs, and how long compiling took."""
    import jax
    import jax.numpy as jnp

    import posenc

    text, length, kind, kernel = candidate.split("/")
    dims = posenc.Dims(width=HEADS * HEAD, heads=HEADS, head=HEAD, trained=int(length))
    scheme = posenc.bind(posenc.parse(text), dims)
    params = posenc.init(scheme, jax.random.key(1), dims)
    shape = (1, int(length), HEADS, HEAD)
    given = [jax.ShapeDtypeStruct(shape, jnp.float32)] * 3

    def loss(params, q, k, v):
        x = q.reshape(*shape[:2], -1)  # for schemes that read it
        out = posenc.attend(scheme, params, q, k, v, x=x, kernel=kernel)
        return out if kind == "forward" else (out**2).sum()

    began = time.perf_counter()
    f = jax.jit(loss if kind == "forward" else jax.grad(loss, argnums=(0, 1, 2, 3)))
    return f.lower(params, *given).compile(), (params, shape), time.perf_counter() - began


def ready(candidate: str) -> side.Ready:
    """A candidate with numbers to run on."""
    import jax

    program, (params, shape), took = compiled(candidate)
    inputs = [jax.random.normal(key, shape) for key in jax.random.split(jax.random.key(0), 3)]
    go = lambda: jax.block_until_ready(program(params, *inputs))  # noqa: E731
    _, length, kind, _ = candidate.split("/")
    scratch = program.memory_analysis().temp_size_in_bytes
    return side.Ready(go, operations(int(length), kind), took, scratch, side.jax_peak)


def scratch(scheme: str, length: int, kind: str, kernel: str) -> int:
    """Bytes that a program takes beside what goes in and out."""
    return compiled(name(scheme, length, kind, kernel))[0].memory_analysis().temp_size_in_bytes


@functools.cache
def pair(scheme: str, length: int, kind: str, rounds: int) -> dict[str, side.Row]:
    """Both kernels, in turn; only the tiled one where the square is more than half of the memory."""
    names = {kernel: name(scheme, length, kind, kernel) for kernel in ("dense", "tiled")}
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if (need := scratch(scheme, length, kind, "dense")) > have / 2:
        print(f"{names['dense']} takes {need / 2**30:.0f} GiB of {have / 2**30:.0f} and is not run.")
        del names["dense"]
    rows = side.compare(MODULE, list(names.values()), rounds).values()
    return dict(zip(names, rows, strict=True))


def line(scheme: str, length: int, kind: str, rows: dict[str, side.Row]) -> list[str]:
    if "dense" not in rows:
        return [scheme, str(length), kind]
    dense, tiled = rows["dense"], rows["tiled"]
    faster, less = tiled.speed / dense.speed, dense.scratch / tiled.scratch
    mib = f"{dense.scratch / 2**20:.0f} → {tiled.scratch / 2**20:.0f}"
    peak = f"{dense.efficiency:.2f} → {tiled.efficiency:.2f}"
    spans = [f"{min(r.seconds):.3f} … {max(r.seconds):.3f}" for r in (dense, tiled)]
    marks = " ".join(sorted({dense.marks, tiled.marks} - {""}))
    return [scheme, str(length), kind, f"{faster:.2f}", f"{less:.0f}", mib, peak, *spans, marks]


HEADER = ["scheme", "tokens", "pass", "faster", "less memory", "MiB", "of peak", "dense s", "tiled s"]


def main() -> None:
    args = side.arguments(__doc__)
    if args.candidate:
        side.serve(ready(args.candidate))
        return
    load, rounds = os.getloadavg()[0], 3 if args.quick else args.rounds
    asked = [(s, n, kind) for n in SHORT for s in SCHEMES for kind in PASSES]
    asked += [] if args.quick else [(s, LONG, kind) for s in BARRED for kind in PASSES]
    found = {key: pair(*key, rounds) for key in asked}
    print(side.aligned([HEADER, *(line(*key, rows) for key, rows in found.items())]))

    crossing = {n: pair("rope", n, "both", rounds) for n in CROSSING if n <= (2048 if args.quick else 4096)}
    print("\nWhere they cross, RoPE, both passes: tiled over dense")
    print(
        side.aligned(
            [[str(n) for n in crossing], [f"{r['tiled'].speed / r['dense'].speed:.2f}" for r in crossing.values()]]
        )
    )

    if not args.quick:
        print(f"\nScratch memory at {FAR} tokens, both passes, compiled and not run: MiB")
        far = {(s, kernel): scratch(s, FAR, "both", kernel) / 2**20 for s in SCHEMES for kernel in ("dense", "tiled")}
        print(
            side.aligned(
                [["", "dense", "tiled"], *([s, f"{far[s, 'dense']:.0f}", f"{far[s, 'tiled']:.0f}"] for s in SCHEMES)]
            )
        )
        judge(found)
    every = [row for rows in (*found.values(), *crossing.values()) for row in rows.values()]
    print(side.caution(every, args.quick, load))
    figures = {row.name: row._asdict() | {"efficiency": row.efficiency, "marks": row.marks} for row in every}
    side.write(args.json, {"rows": figures})


def judge(found: dict) -> None:
    """The bars, as far as one run says."""
    speed = lambda s, kind: found[s, LONG, kind]["tiled"].speed / found[s, LONG, kind]["dense"].speed  # noqa: E731
    less = lambda s: found[s, LONG, "both"]["dense"].scratch / found[s, LONG, "both"]["tiled"].scratch  # noqa: E731
    print(f"\nAt {LONG} tokens")
    print(f"A1  RoPE, forward {speed('rope', 'forward'):.2f} (≥ 3.5), both {speed('rope', 'both'):.2f} (≥ 3)")
    print(f"A2  T5, forward {speed('t5', 'forward'):.2f} (≥ 3), both {speed('t5', 'both'):.2f} (≥ 2)")
    print(f"A3  less memory, both: RoPE {less('rope'):.0f}, T5 {less('t5'):.0f} (≥ 100)")
    print(f"A7  RoPE, both, of peak {found['rope', LONG, 'both']['tiled'].efficiency:.2f} (≥ 0.5)")


if __name__ == "__main__":
    main()
