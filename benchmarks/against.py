"""Our attention against those of other libraries: bars A5 and A6, and a table of all.

    python -m benchmarks.against [--quick] [--bars] [--rounds 5] [--json figures.json]

One sequence, 8 heads of 64, causal, float32, on the CPU, at 2048 and 8192 tokens; `--quick` omits 8192, and
`--bars` all candidates without a bar. Peers in PyTorch need a separate Python, which the environment variable `PEERS`
names; without it their rows say "not installed".

All candidates get the same numbers, and those that compute the same function must agree before a ratio is printed. Ours
is `posenc.attend` with its defaults, that is `kernel="auto"`; T5's includes the gradient of its table. ALiBi's slopes
are constants. x-transformers runs plain and under `torch.compile`, with its fused option. Candidates without positions
are compared with our RoPE. Memory is the scratch memory of the compiled program in jax; in PyTorch it is the growth of
the resident peak beyond the returned arrays, plus what is kept from call to call.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import Any, NamedTuple

from benchmarks import peers, side

HEADS, HEAD = 8, 64
LENGTHS = (2048, 8192)
FORWARD, BOTH = "forward", "forward + backward"
BUCKETS = 32
ALIBI, T5, PLAIN, COMPILED, FLEX = (
    "posenc alibi",
    "posenc t5",
    "x-transformers t5",
    "x-transformers compiled t5",
    "FlexAttention compiled alibi",
)
BARS = {FORWARD: (ALIBI, FLEX), BOTH: (T5, PLAIN, COMPILED)}


class Who(NamedTuple):
    """What a candidate computes, which of ours it is compared with, and whether it runs in PyTorch."""

    computes: str
    beside: str
    torch: bool = False
    backward: bool = True


WHO = {
    "posenc rope": Who("rope", "posenc rope"),
    ALIBI: Who("alibi", ALIBI),
    T5: Who("t5", T5),
    "three lines of einsum, alibi": Who("alibi", ALIBI),
    "jax.nn, no positions": Who("nothing", "posenc rope"),
    "SDPA, no positions": Who("nothing", "posenc rope", True),
    "SDPA, alibi as a dense bias": Who("alibi", ALIBI, True),
    FLEX: Who("alibi", ALIBI, True, backward=False),
    "x-transformers alibi": Who("alibi", ALIBI, True),
    "x-transformers compiled alibi": Who("alibi", ALIBI, True),
    PLAIN: Who("t5", T5, True),
    COMPILED: Who("t5", T5, True),
}


def inputs(length: int) -> dict[str, Any]:
    """The numbers for all candidates: `[L, H, d]` for q, k, v and the output's gradient, T5's table, ALiBi's slopes."""
    import numpy as np

    rng = np.random.default_rng(0)
    arrays = {n: rng.standard_normal((length, HEADS, HEAD), np.float32) for n in ("q", "k", "v", "do")}
    arrays["q"] *= np.float32(HEAD**-0.5)  # T5 does not divide by √d: this keeps its scores at the same scale
    arrays["table"] = rng.standard_normal((BUCKETS, HEADS), np.float32)
    arrays["slopes"] = np.float32(2.0) ** -np.arange(1, HEADS + 1, dtype=np.float32)
    return arrays


def in_jax(who: str, backward: bool, arrays: dict[str, Any]) -> side.Ready:
    """One attention in jax: ours, `jax.nn`'s or the naive one."""
    import jax
    import jax.numpy as jnp

    learned = jnp.asarray(arrays["table"].T)
    f = {"posenc": ours, "jax.nn": stock}.get(who.split()[0].rstrip(","), naive)(WHO[who].computes)
    q, k, v, do = (jnp.asarray(arrays[n])[None] for n in ("q", "k", "v", "do"))

    def forward_backward(q, k, v, table, do):
        out, back = jax.vjp(f, q, k, v, table)
        grads = back(do)
        return out, *grads[: 4 if WHO[who].computes == "t5" else 3]

    run = forward_backward if backward else lambda q, k, v, table, do: (f(q, k, v, table),)
    began = time.perf_counter()
    go = jax.jit(run).lower(q, k, v, learned, do).compile()
    took = time.perf_counter() - began
    a = jax.block_until_ready(go(q, k, v, learned, do))
    probe = [*a[0][0, -1, :, 0]]
    if backward:
        probe += [*a[1][0, -1, :, 0], *a[2][0, 3, :, 0], *a[3][0, 3, :, 0]]
    probe += [*a[4][:, 2]] if len(a) > 4 else []
    del a

    def once():
        jax.block_until_ready(go(q, k, v, learned, do))

    scratch = go.memory_analysis().temp_size_in_bytes
    return side.Ready(once, 1.0, took, scratch, side.jax_peak, tuple(map(float, probe)))


def ours(scheme: str):
    """`posenc.attend` with its defaults."""
    import jax

    import posenc

    dims = posenc.Dims(width=HEADS * HEAD, heads=HEADS, head=HEAD, trained=LENGTHS[0])
    bound = posenc.bind(posenc.parse(scheme), dims)
    params = posenc.init(bound, jax.random.key(0), dims)

    def attend(q, k, v, table):
        arrays = params | {"heads": {"table": table}} if scheme == "t5" else params
        return posenc.attend(bound, arrays, q, k, v)

    return attend


def naive(scheme: str):
    """Three lines of einsum with ALiBi, as commonly written: the whole square of scores at once."""
    import jax
    import jax.numpy as jnp

    def attend(q, k, v, table):
        gaps = jnp.arange(q.shape[1])[:, None] - jnp.arange(k.shape[1])[None, :]
        slopes = 2.0 ** -jnp.arange(1.0, HEADS + 1)
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * HEAD**-0.5 - (slopes[:, None, None] * gaps[None])[None]
        p = jax.nn.softmax(jnp.where((gaps >= 0)[None, None], s, -jnp.inf))
        return jnp.einsum("bhqk,bkhd->bqhd", p, v)

    return attend


def stock(scheme: str):
    """The attention of `jax.nn`."""
    import jax

    return lambda q, k, v, table: jax.nn.dot_product_attention(q, k, v, is_causal=True)


def candidate(name: str) -> side.Ready:
    who, way, length = name.split(" | ")
    arrays = inputs(int(length))
    if WHO[who].torch:
        return peers.attention(who, way == BOTH, arrays)
    import jax

    jax.config.update("jax_platforms", "cpu")  # the peers' figures are a processor's, so ours must be
    return in_jax(who, way == BOTH, arrays)


def measure(names: list[str], way: str, length: int, rounds: int) -> dict[str, side.Row]:
    """Each of ours in turn with its peers: all together would not fit the memory of a small machine."""
    rows = {}
    for base in dict.fromkeys(WHO[n].beside for n in names):
        full = {f"{n} | {way} | {length}": n for n in names if WHO[n].beside == base}
        pythons = {long: peers.python() for long, n in full.items() if WHO[n].torch}
        timed = side.compare("benchmarks.against", list(full), rounds, pythons)
        rows |= {full[long]: row for long, row in timed.items()}
    return rows


def agree(rows: dict[str, side.Row]) -> None:
    """Raise `RuntimeError` where candidates that should compute the same differ."""
    import numpy as np

    for name, row in rows.items():
        first = next(n for n in rows if WHO[n].computes == WHO[name].computes)
        apart = np.abs(np.subtract(row.probe, rows[first].probe)) / (1 + np.abs(rows[first].probe))
        if apart.max() > 1e-3:
            raise RuntimeError(f"{name} and {first} should compute the same, but differ by {apart.max():.2g}.")


def table(title: str, rows: dict[str, side.Row], missing: list[str]) -> str:
    """Seconds of each candidate, how many times faster ours is, and how many times our memory it takes."""
    lines = [[title, "median s", "min … max s", "ours is faster", "MiB", "over ours", "compile s", "peak GFLOP/s", ""]]
    for name, row in rows.items():
        base, known = rows[WHO[name].beside], row.scratch is not None
        lines.append(
            [
                name,
                f"{statistics.median(row.seconds):.3f}",
                f"{min(row.seconds):.3f} … {max(row.seconds):.3f}",
                f"{base.speed / row.speed:.2f}",
                f"{row.scratch / 2**20:.0f}" if known else "?",
                f"{row.scratch / base.scratch:.1f}" if known else "?",
                f"{row.compile_s:.1f}",
                f"{statistics.mean(row.peaks) / 1e9:.0f}",
                row.marks,
            ]
        )
    return side.aligned(lines + [[name, "not installed"] for name in missing])


def bars(found: dict[tuple[str, int], dict[str, side.Row]]) -> dict[str, float]:
    """The ratios of bars A5 and A6 that were measured."""
    ratios = {}
    for length, least in zip(LENGTHS, (3, 5), strict=True):
        rows = found.get((BOTH, length), {})
        for peer in (n for n in (PLAIN, COMPILED) if n in rows):
            ratios[f"A5 t5 over {peer}, {length} (bar {least})"] = rows[T5].speed / rows[peer].speed
            if length == 8192 and rows[peer].scratch is not None:
                ratios[f"A5 memory of {peer} over t5, {length} (bar 100)"] = rows[peer].scratch / rows[T5].scratch
    for length, least in zip(LENGTHS, (1.2, 1.4), strict=True):
        rows = found.get((FORWARD, length), {})
        if FLEX in rows:
            ratios[f"A6 alibi over {FLEX}, {length} (bar {least})"] = rows[ALIBI].speed / rows[FLEX].speed
    return ratios


def main() -> None:
    options = side.arguments(__doc__, candidate=candidate, bars="only candidates that a bar names")
    lengths = LENGTHS[:1] if options.quick else LENGTHS
    installed = peers.versions()
    absent = isinstance(installed, str)
    found, load = {}, os.getloadavg()[0]
    for length in lengths:
        for way in (FORWARD, BOTH):
            able = [n for n, who in WHO.items() if (n in BARS[way] if options.bars else who.backward or way == FORWARD)]
            names = [n for n in able if not (absent and WHO[n].torch)]
            rows = found[way, length] = measure(names, way, length, options.rounds)
            agree(rows)
            print(table(f"{way}, {length}", rows, [n for n in able if n not in names]), flush=True)
            if way == BOTH and not options.bars:
                print(f"{FLEX:32s} has no backward pass on a CPU")
            print()
    print(installed if absent else f"peers: {installed}")
    ratios = bars(found)
    side.show(ratios, 70)
    print(side.caution((row for rows in found.values() for row in rows.values()), options.quick, load))
    kept = [
        r._asdict() | {"name": f"{n} | {way} | {length}"} for (way, length), rs in found.items() for n, r in rs.items()
    ]
    side.write(options.json, {"peers": installed, "load before": load, "rows": kept, "ratios": ratios})


if __name__ == "__main__":
    main()
