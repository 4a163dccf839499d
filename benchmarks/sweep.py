"""Many seeds at once: our arrangement of lanes against the same program in sequence, vmapped, padded, and in a loop.

    python -m benchmarks.sweep [--quick] [--rounds 5] [--json figures.json]

The model is that of Ruoss et al. (2023): 5 layers, width 64, 8 heads, RoPE, on even_pairs up to length 40.
S1: 16 trials, batch 32, one padded length. S2: 2 trials, batch 128, four buckets against one. S3: the same against one
process with a jitted step for each exact length and data made on the host, as the published loops do. Every round does
the same steps, so that all candidates of S2 and S3 meet the same lengths.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from benchmarks import side

DEVICES = {"S1 ours": 2, "S2 ours, four buckets": 2, "S2 padded": 2}
CANDIDATES = [
    "S1 one program, in sequence",
    "S1 vmap",
    "S1 ours",
    "S2 padded",
    "S2 ours, four buckets",
    "S3 loop, exact lengths, host data",
]
STEPS = 4
LONG = 24
"""Steps of a round where lengths vary."""


def cell(batch: int, buckets: int):
    import dataclasses

    from posenc.lab.spec.run import Run
    from posenc.lab.train.training import resolve

    base = Run(task="even_pairs", scheme="rope", width=64, depth=5, heads=8, hidden=256, norm="post", length=40)
    return resolve(dataclasses.replace(base, batch=batch, buckets=buckets))


def lanes_of(
    inside: str, devices: int, trials: int, batch: int, buckets: int, steps: int = STEPS, calls: int = 1
) -> side.Ready:
    """`trials` trials in one arrangement; with `calls`, the same program called that often for one trial each."""
    import jax

    from posenc.lab.spec.run import Knobs
    from posenc.lab.train.lanes import Arrangement, stack
    from posenc.lab.train.training import as_arrays, program

    how = Arrangement(inside, devices)
    run = program(cell(batch, buckets), steps, 1, how)
    lane = stack([as_arrays(Knobs(seed=n)) for n in range(trials)], how)
    states = [run.init(lane) for _ in range(calls)]
    began = time.perf_counter()
    go, scratch = compiled_segment(cell(batch, buckets), steps, how, states[0], lane)
    took = time.perf_counter() - began

    def once():
        nonlocal states
        states = [go(s) for s in states]
        jax.block_until_ready(states)

    return side.Ready(once, trials * calls * steps, took, scratch)


def compiled_segment(one: Any, steps: int, how: Any, state: Any, lane: Any) -> tuple[Callable, int]:
    """The first segment of a run, its batches made in it, as a function of the state; and bytes of scratch."""
    import jax.numpy as jnp

    from posenc.lab.train.batches import batches_of, draw_sizes
    from posenc.lab.train.training import train_segment

    first, total, classes = jnp.int32(0), jnp.int32(100), jnp.int32(one.task.classes)

    def made() -> tuple[Any, ...]:
        draws = draw_sizes(one.batching.sizes, steps, lane.seed, first)
        return lane, batches_of(one.batching, draws, how), first, draws.buckets, total, classes

    go = train_segment.lower(one.step, how, state, *made()).compile()

    def segment(state: Any) -> Any:
        return go(state, *made())[0]

    return segment, go.memory_analysis().temp_size_in_bytes


def loop() -> side.Ready:
    """One trial in the published manner: a compiled step per length, batches from NumPy."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from posenc.lab.spec.run import Knobs
    from posenc.lab.tasks import Batch
    from posenc.lab.train.batches import Examples
    from posenc.lab.train.training import State, adamw, as_arrays, cross_entropy, init, rate_at

    one = cell(128, 1)
    knobs = as_arrays(Knobs())
    state = jax.jit(functools.partial(init, one))(knobs)

    def step(state, batch, n):
        gradient = jax.grad(cross_entropy)(state.model, batch, jax.random.key(0), one.task.classes)
        optimiser = adamw(knobs, rate_at("cosine", knobs, n, jnp.int32(100)), state.model)
        update, moments = optimiser.update(gradient, state.optimiser, state.model)
        return State(jax.tree.map(jnp.add, state.model, update), moments, state.diverged)

    rng = np.random.default_rng(0)

    def batch(n: int) -> Examples:
        bits = rng.integers(0, 2, (128, n), dtype=np.int32)
        tokens = np.concatenate([bits, np.full((128, 1), one.task.special("EMPTY"), np.int32)], 1)
        score = np.arange(n + 1)[None, :].repeat(128, 0) == n
        targets = np.where(score, bits[:, :1] != bits[:, -1:], 0).astype(np.int32)
        valid, size = np.ones_like(score), np.full(128, n, np.int32)
        return Examples.of(Batch(tokens, targets, score, score.astype(np.float32), valid, size, ~score, {}, {}))

    began = time.perf_counter()
    compiled = {n: jax.jit(step, donate_argnums=0).lower(state, batch(n), jnp.int32(0)).compile() for n in range(1, 41)}
    took = time.perf_counter() - began
    lengths = [int(one.batching.sizes.size(knobs.seed, jnp.int32(step))) for step in range(LONG)]

    def once():
        nonlocal state
        for step, n in enumerate(lengths):
            state = compiled[n](state, batch(n), jnp.int32(step))
        jax.block_until_ready(state)

    return side.Ready(once, LONG, took)


def candidate(name: str) -> side.Ready:
    import jax

    jax.config.update("jax_num_cpu_devices", DEVICES.get(name, 1))
    return {
        "S1 one program, in sequence": lambda: lanes_of("map", 1, 1, 32, 1, calls=16),
        "S1 vmap": lambda: lanes_of("vmap", 1, 16, 32, 1),
        "S1 ours": lambda: lanes_of("map", 2, 16, 32, 1),
        "S2 padded": lambda: lanes_of("map", 2, 2, 128, 1, LONG),
        "S2 ours, four buckets": lambda: lanes_of("map", 2, 2, 128, 4, LONG),
        "S3 loop, exact lengths, host data": loop,
    }[name]()


def main() -> None:
    options = side.arguments(__doc__, candidate=candidate)
    rows = side.compare("benchmarks.sweep", CANDIDATES, options.rounds)
    print(side.table(rows, "S1 one program, in sequence", "trial-steps/s"))
    speed = {name: row.speed for name, row in rows.items()}
    ours, looped = rows["S2 ours, four buckets"], rows["S3 loop, exact lengths, host data"]
    bars = {
        "S1 ours / in sequence (bar 1.35)": speed["S1 ours"] / speed["S1 one program, in sequence"],
        "S1 ours / vmap (bar 1.6)": speed["S1 ours"] / speed["S1 vmap"],
        "S2 four buckets / padded (bar 1.6)": ours.speed / speed["S2 padded"],
        "S3 ours / loop, steady (bar 1.3)": ours.speed / looped.speed,
        "S3 loop / ours, compilation (bar 8)": looped.compile_s / ours.compile_s,
    }
    side.show(bars, 42, 6)
    side.write(options.json, {"rows": [r._asdict() for r in rows.values()], "ratios": bars})


if __name__ == "__main__":
    main()
