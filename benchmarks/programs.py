"""What a sweep compiles, and what a step costs: programs that tasks share, and a step beside plain JAX.

    python -m benchmarks.programs [--quick] [--rounds 5] [--json figures.json]

P1: seconds that XLA compiles for one scheme on five tasks of one layout, over one of them. P2: the same for 12 schemes
on the 15 tasks of `suite:chomsky`, from parts: two schemes on every task in one process give what a scheme costs and
what the tasks cost, and one scheme on every task, each compiled as if it were alone, gives what was paid when nothing
was shared. P3: one step of the quick start's shape over the same model written out in plain JAX, on one core. P4: how
long it takes to evaluate six trials, compiling included, where sizes share few padded ones as in a sweep, where all
share one, and where each has its own. P5: the peak memory of a sweep of three schemes on four tasks, over that of the
first scheme alone. P6: a row of the atlas, `posenc atlas` of a scheme of one's own: a seed at two rates on each probe,
on all cores. Nothing comes from a compilation cache. `--quick` takes three tasks of the suite, one length and one
probe, and does not judge the bars.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from unittest import mock

from benchmarks import side

FIVE = ("parity_check", "even_pairs", "cycle_navigation", "modular_arithmetic_brackets", "modular_arithmetic")
SCHEMES = ("rope", "t5")
MANY = 12
"""Schemes of P2."""
OF_SCHEME = ("initial_states", "train_segment", "sums")
"""The programs that depend on the scheme; the others, apart from trifles, depend on the task."""
OURS, PLAIN = "posenc", "plain JAX"
LENGTHS = 16, 40, 100
"""Trained lengths of P4."""
SWEPT = ("rope", "t5", "alibi"), (*FIVE[:3], "reverse_string")
"""Schemes and tasks of P5."""
PEAK = """import sys
from posenc.__main__ import main
code = main()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(code)"""
"""A command whose last word is the most KiB that its process held; `ru_maxrss` would count those of its parent too."""
STEPS = 100
SHAPE = {"width": 64, "depth": 2, "heads": 4, "hidden": 128, "batch": 32}


def cell(scheme: str, task: str, **settings: Any) -> Any:
    """A run of the quick start's shape."""
    from posenc.lab.spec.run import Run
    from posenc.lab.train.training import resolve

    return resolve(Run(scheme=scheme, task=task, **(SHAPE | settings)))


def compiled(cells: Iterable[Any]) -> dict[str, float]:
    """Seconds of compiling, by program, when these runs follow one another in this process."""
    import jax.numpy as jnp

    from posenc.lab.compiling import count_compilations
    from posenc.lab.run.plan import evaluated
    from posenc.lab.spec.run import Knobs, Plan
    from posenc.lab.tasks.floors import floors
    from posenc.lab.train.lanes import Arrangement, stack
    from posenc.lab.train.training import as_arrays, program

    how, plan, first = Arrangement("map", 1), Plan(), jnp.int32(0)
    with count_compilations() as found:
        for one in cells:
            run, lane, sizes = program(one, 2, plan.rows, how), stack([as_arrays(Knobs())], how), evaluated(one, plan)
            state, _ = run.segment(run.init(lane), lane, first, jnp.int32(2))
            run.evaluate(state, lane, sizes, [False] * len(sizes))
            floors(one.task, sizes)
    return found.each


def alone(cells: Iterable[Any]) -> float:
    """Seconds of compiling when each of these runs has a process of its own."""
    import jax

    total = 0.0
    for one in cells:
        jax.clear_caches()
        total += sum(compiled([one]).values())
    return total


class Parts(NamedTuple):
    """Seconds of compiling a suite."""

    scheme: float
    """What one scheme adds."""
    tasks: float
    """What the tasks cost, whatever the number of schemes."""
    alone: float
    """One scheme on every task, nothing shared."""

    def ratio(self, schemes: int) -> float:
        """What many schemes cost, over what they would if each pair compiled its own programs."""
        return (schemes * self.scheme + self.tasks) / (schemes * self.alone)


def parts(tasks: Iterable[str]) -> Parts:
    """The parts of P2."""
    import jax

    tasks = list(tasks)
    separate = alone(cell(SCHEMES[0], task) for task in tasks)
    jax.clear_caches()
    found = compiled(cell(scheme, task) for scheme in SCHEMES for task in tasks)
    schemes = sum(found.get(name, 0.0) for name in OF_SCHEME)
    return Parts(schemes / len(SCHEMES), sum(found.values()) - schemes, separate)


def evaluating(length: int, padded: Any = None, trials: int = 6) -> float:
    """Seconds until six trials are evaluated at each size of a sweep, compiling included. `padded` gives the size that
    one of some sizes is padded to, where it is not the sweep's own."""
    import jax

    from posenc.lab.run.plan import evaluated
    from posenc.lab.spec.run import Knobs, Plan
    from posenc.lab.train import evaluation
    from posenc.lab.train.lanes import Arrangement, stack
    from posenc.lab.train.training import as_arrays, program

    jax.clear_caches()
    one, how, plan = cell("rope", "reverse_string", length=length), Arrangement("map", 1), Plan()
    run, sizes = program(one, 2, plan.rows, how), evaluated(one, plan)
    lanes = stack([as_arrays(Knobs(seed=seed)) for seed in range(trials)], how)
    state = jax.block_until_ready(run.init(lanes))
    rule = padded and {
        "rounds": lambda _, sizes, *rest: tuple(sorted({padded(sizes, n) for n in sizes})),
        "own_size": lambda _, sizes, n: padded(sizes, n),
    }
    with mock.patch.multiple(evaluation, **rule) if rule else contextlib.nullcontext():
        begun = time.perf_counter()
        run.evaluate(state, lanes, sizes, [False] * len(sizes))
        return time.perf_counter() - begun


def peak(schemes: Sequence[str], tasks: Sequence[str]) -> float:
    """The most MiB that the process of a sweep held."""
    settings = [f"{name}={value}" for name, value in (SHAPE | {"length": 16, "steps": 20}).items()]
    grid = ["--grid", f"scheme={','.join(schemes)}", f"task={','.join(tasks)}", "--seeds", "2", "--set", *settings]
    with tempfile.TemporaryDirectory() as folder:
        return int(output(folder, "-c", PEAK, "sweep", *grid, "--name", "peak").split()[-1]) / 2**10


def atlas_row(*options: str) -> float:
    """Seconds until `posenc atlas` has trained a scheme that has no row on the probes, compiling included."""
    with tempfile.TemporaryDirectory() as folder:
        output(folder, "-m", "posenc", "new", "scheme", "mine")
        begun = time.perf_counter()
        output(folder, "-m", "posenc", "atlas", "mine:Mine", *options)
        return time.perf_counter() - begun


def output(folder: str, *arguments: str) -> str:
    """What Python prints with these arguments, in a folder that also holds its runs and its compiled programs."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"XDG_CACHE_HOME": folder, "POSENC_RUNS": folder},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"posenc ended with status {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def candidate(name: str) -> side.Ready:
    """One of the two steps of P3. It keeps this process, and XLA's threads, on one core, before jax starts."""
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return {OURS: ours, PLAIN: plain}[name]()


def ours() -> side.Ready:
    """A segment of one trial as the laboratory trains it; every batch has the longest length."""
    import jax
    import jax.numpy as jnp

    from posenc.lab.spec.run import Knobs
    from posenc.lab.train.lanes import Arrangement, stack
    from posenc.lab.train.training import as_arrays, program

    one, how = cell("nope", "token_k_back(k=3)", length=16, shortest=16, buckets=1), Arrangement("map", 1)
    run, lane = program(one, STEPS, 1, how), stack([as_arrays(Knobs())], how)
    state = run.init(lane)

    def once() -> None:
        nonlocal state
        state, loss = run.segment(state, lane, jnp.int32(0), jnp.int32(10 * STEPS))
        jax.block_until_ready((state, loss))

    once()
    return side.Ready(once, STEPS, 0.0)


def plain() -> side.Ready:
    """The same sizes written out: layers unrolled, no masks, no buckets, AdamW of Optax, batches made in the step."""
    import jax
    import jax.numpy as jnp
    import optax

    from posenc.lab.models.parts import linear

    rows, length, width, heads, hidden, symbols = 32, 16, 64, 4, 128, 17
    keys = iter(jax.random.split(jax.random.key(0), 40))

    def drawn(*shape: int) -> Any:
        return jax.random.normal(next(keys), shape) * shape[0] ** -0.5

    def layer() -> dict[str, Any]:
        matrices = {"q": (width, width), "kv": (width, 2 * width), "o": (width, width)}
        matrices |= {"up": (width, hidden), "down": (hidden, width)}
        return {name: drawn(*shape) for name, shape in matrices.items()} | {n: jnp.ones(width) for n in ("g", "h")}

    def norm(x: Any, scale: Any) -> Any:
        x = x - x.mean(-1, keepdims=True)
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale

    def loss(p: Any, tokens: Any) -> Any:
        x = p["embedding"][tokens]
        for one in p["layers"]:
            y = norm(x, one["g"])
            q = linear(y, one["q"]).reshape(rows, length, heads, -1)
            k, v = jnp.split(linear(y, one["kv"]).reshape(rows, length, 2 * heads, -1), 2, 2)
            a = jax.nn.softmax(jnp.einsum("blhd,bmhd->bhlm", q, k) * (width // heads) ** -0.5)
            x = x + linear(jnp.einsum("bhlm,bmhd->blhd", a, v).reshape(rows, length, width), one["o"])
            x = x + linear(jax.nn.relu(linear(norm(x, one["h"]), one["up"])), one["down"])
        logits = linear(norm(x, p["scale"]), p["readout"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens).mean()

    params = {"embedding": drawn(symbols, width), "readout": drawn(width, symbols), "scale": jnp.ones(width)}
    params |= {"layers": [layer() for _ in range(2)]}
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3))

    def step(carry: Any, n: Any) -> tuple[Any, None]:
        params, moments = carry
        tokens = jax.random.randint(jax.random.fold_in(jax.random.key(1), n), (rows, length), 0, symbols)
        update, moments = optimiser.update(jax.grad(loss)(params, tokens), moments, params)
        return (optax.apply_updates(params, update), moments), None

    run = jax.jit(lambda carry: jax.lax.scan(step, carry, jnp.arange(STEPS))[0])
    carry = params, optimiser.init(params)

    def once() -> None:
        nonlocal carry
        carry = jax.block_until_ready(run(carry))

    once()
    return side.Ready(once, STEPS, 0.0)


def main() -> None:
    options = side.arguments(__doc__, candidate=candidate)
    load = os.getloadavg()[0]
    rows = side.compare("benchmarks.programs", [OURS, PLAIN], options.rounds)

    from posenc.lab import tasks

    one, five = (sum(compiled(cell("rope", task, length=21) for task in some).values()) for some in (FIVE[:1], FIVE))
    suite = parts(tasks.suite("chomsky")[: 3 if options.quick else None])
    figures = {
        "P1 XLA compiles one task, s": one,
        "P1 and five of one layout, s": one + five,
        "P1 five over one (bar 2)": (one + five) / one,
        "P2 a scheme adds, s": suite.scheme,
        "P2 the tasks cost, s": suite.tasks,
        "P2 one scheme when each task compiles all, s": suite.alone,
        f"P2 {MANY} schemes over nothing shared (bar 0.25)": suite.ratio(MANY),
        "P3 a step, ms": 1e3 / rows[OURS].speed,
        "P3 in plain JAX, ms": 1e3 / rows[PLAIN].speed,
        "P3 a step over plain JAX (bar 1.25)": rows[PLAIN].speed / rows[OURS].speed,
    }
    rules = {"few": None, "one": lambda sizes, _: max(sizes), "each": lambda _, n: n}
    for length in LENGTHS[:1] if options.quick else LENGTHS:
        for name, rule in rules.items():
            figures[f"P4 evaluating, length {length}, padded sizes: {name}, s"] = evaluating(length, rule)
    first, every = (peak(some, SWEPT[1]) for some in (SWEPT[0][:1], SWEPT[0]))
    figures |= {"P5 peak of one scheme on four tasks, MiB": first, "P5 peak of three schemes, MiB": every}
    figures["P5 three schemes over one (bar 1.1)"] = every / first
    row = atlas_row(*(["--probes", "offset"] if options.quick else []))
    figures["P6 a row of the atlas, minutes for one rate (bar 5)"] = row / 60 / 2
    side.show(figures, 52)
    print(side.caution(rows.values(), options.quick, load))
    kept = [row._asdict() | {"name": name, "median": statistics.median(row.seconds)} for name, row in rows.items()]
    side.write(options.json, {"load before": load, "parts": suite._asdict(), "rows": kept, "figures": figures})


if __name__ == "__main__":
    main()
