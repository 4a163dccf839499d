"""One token at a time: with a cache against running all tokens again, and a ring against a cache of all of them.

    python -m benchmarks.decode [--quick] [--rounds 5] [--json figures.json]

One attention of 8 heads of 64 features, one sequence, float32. Each round makes the last 16 tokens (4 with `--quick`,
and 1 where everything is run again) of a text of 512 or 2048. The cache is donated, as whoever decodes would. The ring
of 128 places serves a window of 128 keys in a text of 2048, and the whole cache beside it the same window. Candidates
of the same text are held to the same output of the last token.
"""

from __future__ import annotations

import os
import time

from benchmarks import side

HEADS, HEAD, WINDOW = 8, 64, 128
SCHEMES = "rope", "t5"
TEXTS = [(scheme, places) for scheme in SCHEMES for places in (512, 2048)]
AGAIN = {f"{scheme} {places} again": (scheme, places) for scheme, places in TEXTS}
CACHED = {f"{scheme} {places} cached": (scheme, places) for scheme, places in TEXTS}
NARROW = {f"{scheme} window {kind}": (scheme, kind == "ring") for scheme in SCHEMES for kind in ("ring", "whole")}
TOLERANCE = 1e-4
"""By how much the outputs of two candidates of one text may differ, in float32."""


def text(scheme: str, places: int):
    """A scheme fitted to the text, its parameters, and the text's queries, keys and values."""
    import jax
    import numpy as np

    import posenc

    dims = posenc.Dims(width=HEADS * HEAD, heads=HEADS, head=HEAD, trained=places)
    fitted = posenc.bind(posenc.parse(scheme), dims)
    draw = np.random.default_rng(0)
    qkv = [draw.normal(size=(1, places, HEADS, HEAD)).astype(np.float32) for _ in range(3)]
    return fitted, posenc.init(fitted, jax.random.key(0), dims), dims, qkv


def again(scheme: str, places: int) -> side.Ready:
    """The whole forward for one more token."""
    import jax

    import posenc

    fitted, params, _, qkv = text(scheme, places)
    began = time.perf_counter()
    run = jax.jit(lambda q, k, v: posenc.attend(fitted, params, q, k, v)).lower(*qkv).compile()
    took = time.perf_counter() - began
    qkv = jax.device_put(qkv)
    probe = tuple(map(float, run(*qkv)[0, -1, 0, :4]))
    scratch = run.memory_analysis().temp_size_in_bytes
    return side.Ready(lambda: jax.block_until_ready(run(*qkv)), 1, took, scratch, probe=probe)


def cached(scheme: str, places: int, steps: int, window: int | None = None, ring: bool = False) -> side.Ready:
    """The last tokens of a text, one a call."""
    import jax
    import jax.numpy as jnp

    import posenc

    fitted, params, dims, qkv = text(scheme, places)
    look = "causal" if window is None else posenc.Window(window - 1, 0)
    capacity = window if ring else places
    about = {"batch": 1, "capacity": capacity, "dtype": jnp.float32}
    empty = posenc.Cache.empty(fitted, params, dims, **about, ring=ring)
    step = jax.jit(
        lambda cache, q, k, v: posenc.attend(fitted, params, q, k, v, mask=look, cache=cache), donate_argnums=0
    )
    tokens = [jax.device_put([a[:, n : n + 1] for a in qkv]) for n in range(places)]
    began = time.perf_counter()
    one = step.lower(empty, *tokens[0]).compile()
    took = time.perf_counter() - began
    state = empty
    for token in tokens[:-steps]:
        _, state = one(state, *token)
    out, first = None, places - steps

    def once():
        nonlocal state, out
        state = state._replace(length=jnp.int32(first))  # the same tokens go to the same places again
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
    asked = side.arguments(__doc__)
    if asked.candidate:
        side.serve(candidate(asked.candidate))
        return
    if asked.quick:
        os.environ["POSENC_BENCHMARK_STEPS"] = "4"
    load = os.getloadavg()[0]
    rows = side.compare("benchmarks.decode", [*AGAIN, *CACHED, *NARROW], asked.rounds)
    print(side.table(rows, "rope 512 again", "tokens/s"))
    pairs = [(f"{s} {n} cached", f"{s} {n} again") for s, n in TEXTS]
    pairs += [(f"{s} window ring", f"{s} window whole") for s in SCHEMES]
    ratios = {}
    for ours, theirs in pairs:
        apart = max(abs(a - b) for a, b in zip(rows[ours].probe, rows[theirs].probe, strict=True))
        if apart > TOLERANCE:
            raise SystemExit(f"{ours!r} and {theirs!r} differ by {apart:.1e} in what they compute.")
        ratios[f"{ours} / {theirs}"] = rows[ours].speed / rows[theirs].speed
    for what, ratio in ratios.items():
        print(f"{what:42s} {ratio:6.2f}")
    print(side.caution(rows.values(), asked.quick, load))
    side.write(asked.json, {"rows": [r._asdict() for r in rows.values()], "ratios": ratios})


if __name__ == "__main__":
    main()
