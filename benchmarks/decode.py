"""Decoding token by token: a cache against recomputing all tokens, and a ring against a cache of all tokens.

    python -m benchmarks.decode [--quick] [--rounds 5] [--json figures.json]

One attention of 8 heads of 64 features, one sequence, float32. Each round decodes the last 16 tokens (4 with `--quick`,
and 1 where everything is recomputed) of a text of 512 or 2048. The cache is donated, as in real decoding. The ring of
128 slots has a window of 128 keys in a text of 2048, and is compared with a whole cache under the same window.
Candidates of the same text must agree in the output of the last token.
"""

from __future__ import annotations

import os
import time

from benchmarks import side

HEADS, HEAD, WINDOW = 8, 64, 128
SCHEMES = "rope", "t5"
TEXTS = [(scheme, length) for scheme in SCHEMES for length in (512, 2048)]
AGAIN = {f"{scheme} {length} again": (scheme, length) for scheme, length in TEXTS}
CACHED = {f"{scheme} {length} cached": (scheme, length) for scheme, length in TEXTS}
NARROW = {f"{scheme} window {kind}": (scheme, kind == "ring") for scheme in SCHEMES for kind in ("ring", "whole")}
TOLERANCE = 1e-4
"""The largest allowed difference between the outputs of two candidates of one text, in float32."""


def text(scheme: str, length: int):
    """A scheme bound to the text's length, its parameters, and the text's queries, keys and values."""
    import jax
    import numpy as np

    import posenc

    dims = posenc.Dims(width=HEADS * HEAD, heads=HEADS, head=HEAD, trained=length)
    fitted = posenc.bind(posenc.parse(scheme), dims)
    draw = np.random.default_rng(0)
    qkv = [draw.normal(size=(1, length, HEADS, HEAD)).astype(np.float32) for _ in range(3)]
    return fitted, posenc.init(fitted, jax.random.key(0), dims), dims, qkv


def again(scheme: str, length: int) -> side.Ready:
    """The full forward pass for one more token."""
    import jax

    import posenc

    fitted, params, _, qkv = text(scheme, length)
    began = time.perf_counter()
    run = jax.jit(lambda q, k, v: posenc.attend(fitted, params, q, k, v)).lower(*qkv).compile()
    took = time.perf_counter() - began
    qkv = jax.device_put(qkv)
    probe = tuple(map(float, run(*qkv)[0, -1, 0, :4]))
    scratch = run.memory_analysis().temp_size_in_bytes
    return side.Ready(lambda: jax.block_until_ready(run(*qkv)), 1, took, scratch, probe=probe)


def cached(scheme: str, length: int, steps: int, window: int | None = None, ring: bool = False) -> side.Ready:
    """The last tokens of a text, one per call."""
    import jax
    import jax.numpy as jnp

    import posenc

    fitted, params, dims, qkv = text(scheme, length)
    mask = "causal" if window is None else posenc.Window(window - 1, 0)
    capacity = window if ring else length
    about = {"batch": 1, "capacity": capacity, "dtype": jnp.float32}
    empty = posenc.Cache.empty(fitted, params, dims, **about, ring=ring)
    step = jax.jit(
        lambda cache, q, k, v: posenc.attend(fitted, params, q, k, v, mask=mask, cache=cache), donate_argnums=0
    )
    tokens = [jax.device_put([a[:, n : n + 1] for a in qkv]) for n in range(length)]
    began = time.perf_counter()
    one = step.lower(empty, *tokens[0]).compile()
    took = time.perf_counter() - began
    state = empty
    for token in tokens[:-steps]:
        _, state = one(state, *token)
    out, first = None, length - steps

    def once():
        nonlocal state, out
        state = state._replace(length=jnp.int32(first))  # the same tokens are written to the same slots again
        for token in tokens[first:]:
            out, state = one(state, *token)
        jax.block_until_ready((out, state))

    once()
    probe = tuple(map(float, out[0, -1, 0, :4]))
    return side.Ready(once, steps, took, one.memory_analysis().temp_size_in_bytes, probe=probe)


def candidate(name: str) -> side.Ready:
    steps = int(os.environ.get("POSENC_BENCHMARK_STEPS", "16"))
    if name in AGAIN:
        return again(*AGAIN[name])
    if name in CACHED:
        return cached(*CACHED[name], steps)
    scheme, ring = NARROW[name]
    return cached(scheme, 2048, steps, WINDOW, ring)


def main() -> None:
    options = side.arguments(__doc__, candidate=candidate)
    if options.quick:
        os.environ["POSENC_BENCHMARK_STEPS"] = "4"
    load = os.getloadavg()[0]
    rows = side.compare("benchmarks.decode", [*AGAIN, *CACHED, *NARROW], options.rounds)
    print(side.table(rows, "rope 512 again", "tokens/s"))
    pairs = [(f"{s} {n} cached", f"{s} {n} again") for s, n in TEXTS]
    pairs += [(f"{s} window ring", f"{s} window whole") for s in SCHEMES]
    ratios = {}
    for ours, theirs in pairs:
        apart = max(abs(a - b) for a, b in zip(rows[ours].probe, rows[theirs].probe, strict=True))
        if apart > TOLERANCE:
            raise SystemExit(f"{ours!r} and {theirs!r} should compute the same, but differ by {apart:.1e}.")
        ratios[f"{ours} / {theirs}"] = rows[ours].speed / rows[theirs].speed
    side.show(ratios, 42, 6)
    print(side.caution(rows.values(), options.quick, load))
    side.write(options.json, {"rows": [r._asdict() for r in rows.values()], "ratios": ratios})


if __name__ == "__main__":
    main()
