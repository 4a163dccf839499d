"""How long a sweep will take, before it starts: its multiplications over what this machine was just seen to do."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp

from posenc.lab.spec.run import Plan
from posenc.lab.sweep.plan import evaluated
from posenc.lab.train.training import ResolvedRun

COMPILE = 8.0
"""Seconds of compilation for each run, as seen on two cores without a warm cache."""
SHARE = 0.25
"""The share of the matrix product's speed that training small models reaches, as seen on two cores."""


def seconds(runs: list[tuple[ResolvedRun, int]], plan: Plan) -> float:
    """An estimate for so many trials of each run; right within a factor of two on the machines it was tried on."""
    if not runs:
        return 0.0
    return COMPILE * len(runs) + operations(runs, plan) / (SHARE * peak())


def operations(runs: list[tuple[ResolvedRun, int]], plan: Plan) -> float:
    """Floating-point operations of so many trials of each run, whatever the machine."""
    return sum(trials * (training(c) * plan.steps + evaluation(c, plan)) for c, trials in runs)


def training(resolved: ResolvedRun) -> float:
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
