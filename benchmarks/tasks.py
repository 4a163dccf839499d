"""The cost of a batch: sampling each task, as a share of the training step that uses it (bar: under 5 %).

    python -m benchmarks.tasks [--quick] [--suite probes] [--rounds 5] [--json figures.json]

The default run of the laboratory on each task, at its published lengths: 64 sequences, two layers of width 64, an
encoder, or a decoder where the task needs one. Unlike in that run, all lengths are padded to the longest, so that each
task needs one program, not four. One lane of the laboratory's step is timed against the program that makes its batches.
Both are compiled first, then timed in turn in one process. `--quick` runs the suite of that name.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from benchmarks import side
from posenc.lab import tasks
from posenc.lab.spec.run import Knobs, Run
from posenc.lab.train.batches import draw_sizes, make_batches
from posenc.lab.train.bench import in_turn
from posenc.lab.train.lanes import Arrangement, stack
from posenc.lab.train.training import ResolvedRun, as_arrays, program, resolve, train_segment

BAR = 0.05
"""Sampling must take less than this share of a step."""
STEPS, BATCHES = 2, 64
"""Training steps of a round, and batches of a round: a single batch is too short to time."""


class Cost(NamedTuple):
    """One task: the timings of sampling its batches and of training on them."""

    sampling: side.Row
    step: side.Row
    tokens: int

    @property
    def share(self) -> float:
        """The time of sampling over that of the step, both medians."""
        return self.step.speed / self.sampling.speed

    @property
    def most(self) -> float:
        """The slowest round of batches over the fastest round of steps: noise can only raise it."""
        batch, step = self.sampling, self.step
        return max(batch.seconds) / batch.units / (min(step.seconds) / step.units)

    @property
    def marks(self) -> str:
        """Why the share may not be quoted, or an empty text."""
        return self.sampling.marks or self.step.marks


def cell(text: str, **settings: Any) -> ResolvedRun:
    """The default run of a task: of the models, the one that can do it; of the lengths, those it was published with."""
    task = tasks.parse(text)
    alone = "encoder" if "bidirectional" in task.directions else "decoder"
    model = "encoder_decoder" if task.layout is tasks.Layout.SEQ2SEQ else alone
    return resolve(Run(task=text, model=model, length=task.sizes.train[1], buckets=1, **settings))


def measure(cell: ResolvedRun, rounds: int) -> Cost:
    """Both programs of one task, timed in turn."""
    how, first = Arrangement("map", 1), jnp.int32(0)
    lane = stack([as_arrays(Knobs())], how)
    sizes = cell.batching.sizes
    draws = draw_sizes(sizes, BATCHES, lane.seed, first)
    sample, sampling = compiled(make_batches, cell.task, sizes.batch, sizes.edges[-1], how, draws.keys, draws.sizes)
    given = jax.tree.map(lambda a: a[:, :STEPS], sample(draws.keys, draws.sizes)).reading(cell.step.coordinates)
    rest = lane, given, first, draws.buckets[:STEPS], jnp.int32(100), jnp.int32(cell.task.classes)
    state = program(cell, STEPS, 1, how).init(lane)
    train, training = compiled(train_segment, cell.step, how, state, *rest)

    def trained() -> Any:
        nonlocal state
        state, loss = train(state, *rest)
        return state, loss

    sampled, stepped = map(tuple, in_turn([lambda: sample(draws.keys, draws.sizes), trained], rounds))
    name = cell.run.task
    return Cost(
        side.Row(name, sampled, BATCHES, sampling, scratch(sample)),
        side.Row(name, stepped, STEPS, training, scratch(train)),
        cell.task.tokens(cell.run.length),
    )


def compiled(program: Callable, *args: Any) -> tuple[Any, float]:
    """A compiled program, and the seconds that compiling took."""
    began = time.perf_counter()
    return program.lower(*args).compile(), time.perf_counter() - began


def scratch(program: Any) -> int:
    return program.memory_analysis().temp_size_in_bytes


def table(costs: list[Cost]) -> str:
    """The table, with the largest share first."""
    lines = [["task", "tokens", "batch ms", "step ms", "share %", "at most %", "compile s", ""]]
    for cost in sorted(costs, key=lambda c: -c.share):
        lines.append(
            [
                cost.step.name,
                str(cost.tokens),
                f"{1e3 / cost.sampling.speed:.3f}",
                f"{1e3 / cost.step.speed:.1f}",
                f"{100 * cost.share:.2f}",
                f"{100 * cost.most:.2f}",
                f"{cost.sampling.compile_s:.1f} + {cost.step.compile_s:.1f}",
                cost.marks,
            ]
        )
    return side.aligned(lines)


def verdict(costs: list[Cost]) -> str:
    """How many tasks miss the bar, and which; and the largest share, which holds whatever the noise."""
    over = [cost.step.name for cost in costs if cost.share >= BAR]
    named = f"{len(over)} of {len(costs)} tasks take {BAR:.0%} of a step or more{': ' * bool(over)}{', '.join(over)}."
    worst = max(costs, key=lambda c: c.most)
    return f"{named} No round of batches took more than {worst.most:.2%} of a step, and that was of {worst.step.name}."


def main() -> None:
    options = side.arguments(__doc__, suite=("only the tasks of this suite", tasks.suites()))
    suite = options.suite or ("quick" if options.quick else None)
    load, costs = os.getloadavg()[0], []
    for name in tasks.suite(suite) if suite else tasks.names():
        print(name, file=sys.stderr, flush=True)  # the table takes minutes
        costs.append(measure(cell(name), options.rounds))
    print(table(costs))
    print(verdict(costs))
    print(side.caution([row for cost in costs for row in (cost.sampling, cost.step)], options.quick, load))
    rows = [
        {"task": c.step.name, "tokens": c.tokens, "share": c.share, "most": c.most, "marks": c.marks} for c in costs
    ]
    timings = [{"sampling": c.sampling._asdict(), "step": c.step._asdict()} for c in costs]
    kept = [row | more for row, more in zip(rows, timings, strict=True)]
    side.write(options.json, {"load before": load, "bar": BAR, "rows": kept})


if __name__ == "__main__":
    main()
