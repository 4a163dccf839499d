"""The training step of a decoder, ours against that of x-transformers: bars C1 and C2.

    PEERS=../peers/bin/python python -m benchmarks.step [--quick] [--sweep] [--rounds 5] [--json figures.json]

6 layers of width 256, 8 heads, 16 sequences of 256 tokens, RoPE, ReLU, Adam, float32, on the CPU: our own model and the
laboratory's loss against the same sizes in x-transformers, plain and under `torch.compile`. C1 compares
efficiency: floating-point operations per second, by one formula, over those that the same library reaches in a product
of matrices in the same process. C2 compares raw speed. `--quick` takes 2 layers and 3 rounds, and does not judge the
bars. `--sweep` times a step of a sweep on one core instead: 2 layers of width 64, 32 sequences of 16 tokens.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import NamedTuple

from benchmarks import peers, side

OURS, COMPILED, PLAIN = "posenc", "x-transformers, torch.compile", "x-transformers, plain"
QUICK = 2
"""The number of layers with `--quick`."""


class Size(NamedTuple):
    """A decoder and its batch."""

    depth: int = 6
    width: int = 256
    heads: int = 8
    hidden: int = 1024
    vocab: int = 256
    length: int = 256
    batch: int = 16

    @property
    def matrices(self) -> int:
        """Numbers in the matrices that multiply something: four of attention, two of the feed-forward, the readout."""
        return self.depth * (4 * self.width**2 + 2 * self.width * self.hidden) + self.width * self.vocab

    @property
    def operations(self) -> int:
        """Floating-point operations of a training step: products alone, causal attention halved, backward twice."""
        by_token = 2 * self.matrices * self.batch * self.length
        by_pair = self.depth * self.batch * 2 * (2 * self.width * self.length**2) // 2
        return 3 * (by_token + by_pair)


SWEEP = Size(depth=2, width=64, heads=4, hidden=128, vocab=17, length=16, batch=32)
"""What a sweep trains by default."""
STEPS = 100
"""Steps of a round of `--sweep`."""


def ours(size: Size) -> side.Ready:
    """Our Transformer, the loss of the laboratory, and Optax's Adam, in one program with donated arguments."""
    import jax
    import jax.numpy as jnp
    import optax

    from posenc.core.scheme import Dims
    from posenc.lab.models.interface import Shape
    from posenc.lab.models.transformer import Transformer
    from posenc.lab.tasks import Batch
    from posenc.lab.train.batches import Examples
    from posenc.lab.train.training import cross_entropy
    from posenc.naming import bind, parse

    head, tokens = size.width // size.heads, (size.batch, size.length)
    dims = Dims(width=size.width, heads=size.heads, head=head, trained=size.length, longest=size.length, causal=True)
    shape = Shape(dims, size.depth, size.hidden, size.vocab, size.vocab)
    adam = optax.adam(3e-4)
    drawn = jax.random.randint(jax.random.key(1), (size.batch, size.length + 1), 0, size.vocab, dtype=jnp.int32)
    every = jnp.ones(tokens, bool)
    full = jnp.full(size.batch, size.length, jnp.int32)
    batch = Examples.of(
        Batch(drawn[:, :-1], drawn[:, 1:], every, every.astype(jnp.float32), every, full, every, {}, {})
    )

    def step(model, moments, batch):
        loss, gradient = jax.value_and_grad(cross_entropy)(model, batch, jax.random.key(0), size.vocab)
        update, moments = adam.update(gradient, moments, model)
        return optax.apply_updates(model, update), moments, loss

    model = jax.jit(lambda key: Transformer(bind(parse("rope"), dims), shape, key=key))(jax.random.key(0))
    state = model, jax.jit(adam.init)(model)
    numbers = sum(a.size for a in jax.tree.leaves(model)) - sum(a.size for a in jax.tree.leaves(scales(model)))
    began = time.perf_counter()
    go = jax.jit(step, donate_argnums=(0, 1)).lower(*state, batch).compile()
    took = time.perf_counter() - began

    def once():
        nonlocal state
        *state, loss = go(*state, batch)
        jax.block_until_ready((state, loss))

    scratch = go.memory_analysis().temp_size_in_bytes
    return side.Ready(once, size.operations, took, scratch, side.jax_peak, (float(numbers),))


def scales(model) -> tuple:
    """The parameters of a model that are not matrices: the scales of its norms."""
    return tuple(block.scales for block in model.blocks), model.scale


def candidate(name: str) -> side.Ready:
    who, which = name.split(" | ")
    if which == "sweep":
        return swept(who)
    size = Size(depth=int(which))
    if who != OURS:
        return peers.decoder(size, size.operations, who == COMPILED)
    import jax

    jax.config.update("jax_platforms", "cpu")  # the peers' figures are a processor's, so ours must be
    return ours(size)


def swept(who: str) -> side.Ready:
    """Steps of a sweep: ours as the laboratory trains, with its batches, clipping and AdamW."""
    if who == OURS:
        from benchmarks import programs

        return programs.candidate(programs.OURS)
    ready = peers.decoder(SWEEP, STEPS, who == COMPILED)

    def steps() -> None:
        for _ in range(STEPS):
            ready.go()

    return ready._replace(go=steps)


def sweep_steps(rounds: int) -> dict[str, float]:
    """Milliseconds of a step of a sweep, each candidate on the first core: the least of the rounds, which run in
    turn."""
    if isinstance(installed := peers.versions(), str):
        raise SystemExit(installed)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    names = {"ours_ms": OURS, "plain_ms": PLAIN, "compiled_ms": COMPILED}
    pythons = {f"{name} | sweep": peers.python() for name in (PLAIN, COMPILED)}
    rows = side.compare("benchmarks.step", [f"{name} | sweep" for name in names.values()], rounds, pythons)
    return {key: 1000 * min(rows[f"{name} | sweep"].seconds) / STEPS for key, name in names.items()}


def agree(rows: dict[str, side.Row]) -> None:
    """Raise `RuntimeError` where models differ in size."""
    sizes = {name: row.probe[0] for name, row in rows.items()}
    if len(set(sizes.values())) > 1:
        raise RuntimeError(f"The models should have equally many numbers in their matrices, but have {sizes}.")


def table(rows: dict[str, side.Row], missing: list[str]) -> str:
    """Seconds per step and operations per second, and the latter over the peak of the candidate's own library."""
    lines = [["training step", "step s", "min … max s", "GFLOP/s", "own peak", "of its peak", "compile s", "MiB", ""]]
    for name, row in rows.items():
        lines.append(
            [
                name,
                f"{statistics.median(row.seconds):.3f}",
                f"{min(row.seconds):.3f} … {max(row.seconds):.3f}",
                f"{row.speed / 1e9:.0f}",
                f"{statistics.mean(row.peaks) / 1e9:.0f}",
                f"{row.efficiency:.2f}",
                f"{row.compile_s:.1f}",
                "?" if row.scratch is None else f"{row.scratch / 2**20:.0f}",
                row.marks,
            ]
        )
    return side.aligned(lines + [[name, "not installed"] for name in missing])


def bars(rows: dict[str, side.Row]) -> dict[str, float]:
    """The ratios of bars C1 and C2, if x-transformers was timed."""
    if COMPILED not in rows:
        return {}
    own, theirs = rows[OURS], rows[COMPILED]
    return {
        "C1 efficiency over x-transformers' under torch.compile (bar 0.85)": own.efficiency / theirs.efficiency,
        "C2 speed over x-transformers' under torch.compile (bar 0.45)": own.speed / theirs.speed,
        "compilation of x-transformers over ours": theirs.compile_s / own.compile_s,
    }


def main() -> None:
    options = side.arguments(__doc__, candidate=candidate, sweep="a step of a sweep on one core, and nothing else")
    if options.sweep:
        times = sweep_steps(options.rounds)
        print(", ".join(f"{name} {ms:.2f}" for name, ms in times.items()))
        side.write(options.json, {"sweep_step": times, "load before": os.getloadavg()[0]})
        return
    depth = QUICK if options.quick else Size().depth
    installed = peers.versions()
    absent = isinstance(installed, str)
    names = [OURS] if absent else [OURS, COMPILED, PLAIN]
    full = {f"{n} | {depth}": n for n in names}
    pythons = {long: peers.python() for long, n in full.items() if n != OURS}
    load = os.getloadavg()[0]
    rows = {full[n]: row for n, row in side.compare("benchmarks.step", list(full), options.rounds, pythons).items()}
    agree(rows)
    print(table(rows, [COMPILED, PLAIN] if absent else []))
    print(installed if absent else f"peers: {installed}")
    ratios = bars(rows)
    side.show(ratios, 70)
    print(side.caution(rows.values(), options.quick, load))
    kept = [row._asdict() | {"name": name} for name, row in rows.items()]
    size = Size(depth=depth)._asdict()
    side.write(options.json, {"peers": installed, "load before": load, "size": size, "rows": kept, "ratios": ratios})


if __name__ == "__main__":
    main()
