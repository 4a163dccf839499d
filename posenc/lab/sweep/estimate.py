"""How long a sweep will take, before it starts: its multiplications over what this machine was just seen to do."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp

from posenc.lab.spec.run import Plan
from posenc.lab.sweep.plan import evaluated
from posenc.lab.train import training
from posenc.lab.train.training import ResolvedRun

COMPILE = {"steps": 5.0, "sums": 0.9}
"""Seconds of compiling a program of each kind, as seen on two cores with nothing cached; half a second for others."""
SHARE = 0.25
"""The share of the matrix product's speed that training small models reaches, as seen on two cores."""


def programs(runs: Iterable[ResolvedRun], plan: Plan) -> set[tuple[Any, ...]]:
    """The programs that these runs compile between them, each with its kind first."""
    return set().union(*(training.programs(one, plan.steps, plan.rows, evaluated(one, plan)) for one in runs))


def seconds(runs: list[tuple[ResolvedRun, int]], plan: Plan, needed: Iterable[tuple[Any, ...]]) -> float:
    """An estimate for so many trials of each run, and the programs they need; right within a factor of two on the
    machines it was tried on."""
    if not runs:
        return 0.0
    compiling = sum(COMPILE.get(kind, 0.5) for kind, *_ in needed)
    return compiling + operations(runs, plan) / (SHARE * peak())


def operations(runs: list[tuple[ResolvedRun, int]], plan: Plan) -> float:
    """Floating-point operations of so many trials of each run, whatever the machine."""
    begun: set[Any] = set()
    return sum(trials * (steps(c, plan.steps, begun) + evaluation(c, plan)) for c, trials in runs)


def steps(resolved: ResolvedRun, total: int, begun: set[Any]) -> float:
    """Floating-point operations of training one trial, whose later steps may be longer. A beginning that another scheme
    goes on from is left out where it is among those `begun`, to which those counted are added."""
    found, begin, whole = 0.0, 0, training.stages(resolved, total)
    for stage, end in whole:
        beginning = stage.step, stage.batching, end
        if end == total or beginning not in begun:
            found += step(stage) * (end - begin)
        begun.add(beginning)
        begin = end
    return found


def step(resolved: ResolvedRun) -> float:
    """Floating-point operations of one step: three times the forward pass, at the mean length."""
    tokens = (resolved.task.tokens(resolved.run.shortest) + resolved.task.tokens(resolved.run.length)) / 2
    return 3 * forward(resolved, tokens) * resolved.run.batch


def evaluation(resolved: ResolvedRun, plan: Plan) -> float:
    """Floating-point operations of evaluating one trial."""
    return sum(forward(resolved, resolved.task.tokens(n)) for n in evaluated(resolved, plan)) * plan.rows


def forward(resolved: ResolvedRun, tokens: float) -> float:
    """Floating-point operations of one sequence: matrix products alone."""
    run = resolved.run
    looked = 2 * tokens * run.width if run.kind.pairs(run) else 0
    layer = run.kind.weights(run) + looked
    return 2 * tokens * (run.depth * layer + run.width * resolved.task.classes)


def peak() -> float:
    """Floating-point operations per second of a matrix product here, now: the fastest of a few, since others may be at
    work on the same machine."""
    a = jnp.ones((1024, 1024))
    product = jax.jit(lambda a: a @ a)
    jax.block_until_ready(product(a))
    took = []
    for _ in range(8):
        began = time.perf_counter()
        jax.block_until_ready(product(a))
        took.append(time.perf_counter() - began)
    return 2 * 1024**3 / min(took)
