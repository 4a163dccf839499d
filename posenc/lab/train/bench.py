"""Speed of a scheme on this machine: every kernel that serves it, timed in turn in one process.

Programs are compiled first and run once uncounted; the clock stops when every output is there. Candidates are timed in
turn: a, b, c, a, b, c. Only ratios of medians of one such run can be compared. A shared machine varies by a third
within a minute, and all candidates meet the same minute.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import posenc
from posenc.attention.kernels import KERNELS, choose, serves
from posenc.core.compose import normal_form
from posenc.lab.train.device import memory

SIDE = 2048
"""Rows of the square matrices whose product says how fast the device could be."""
PASSES = ("forward", "both")
WIDE = 1.5
"""Ratio of the slowest round to the fastest from which they differ too much to be quoted."""


class Measured(NamedTuple):
    """One kernel, forward or with its gradient."""

    scheme: str
    length: int
    kernel: str
    passes: str
    """`forward`, or `both`: with the gradients of q, k, v and of every parameter."""
    auto: bool
    """True if `kernel="auto"` would take it."""
    seconds: tuple[float, ...]
    scratch: int
    """Bytes beside what goes in and out."""
    of_peak: float
    """Operations of the two products, halved by the mask, over what a plain product of matrices reaches here."""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def marks(self) -> str:
        """Why this row may not be quoted, or nothing."""
        return "noisy" if noisy(self.seconds) else ""


def measure(
    text: str, length: int, heads: int = 8, head: int = 64, *, dtype: str = "float32", rounds: int = 5,
    passes: Sequence[str] = PASSES, kernels: Sequence[str] = KERNELS,
) -> list[Measured]:  # fmt: skip
    """Each of these kernels that serves the scheme, on one causal sequence; `refused` names those that do not.

    A program that takes more than half of the machine's memory is not run, and has no seconds.
    """
    scheme, params, inputs = _problem(text, length, heads, head, dtype)
    hooks = normal_form(scheme).scheme
    usual = choose(hooks, "auto", inputs[0], length)
    able, have = serves(hooks), memory()
    requested = [(kernel, kind) for kind in passes for kernel in kernels if not able.get(kernel)]
    programs = {key: _compiled(scheme, params, inputs, *key) for key in requested}
    need = {key: program.memory_analysis().temp_size_in_bytes for key, program in programs.items()}
    fit = {key: program for key, program in programs.items() if not have or need[key] <= have / 2}
    goes = [lambda p=p: p(params, *inputs) for p in fit.values()]
    *took, peak = in_turn([*goes, product(SIDE, dtype)], rounds)
    most, timed = 2 * SIDE**3 / statistics.median(peak), dict(zip(fit, took, strict=True))
    rows = []
    for kernel, kind in requested:
        seconds = tuple(timed.get((kernel, kind), ()))
        done = 2 * length**2 * heads * head * (1 if kind == "forward" else 3.5)
        share = done / statistics.median(seconds) / most if seconds else 0.0
        rows.append(Measured(text, length, kernel, kind, kernel == usual, seconds, need[kernel, kind], share))
    return rows


def beside(
    texts: Sequence[str], length: int, kernel: str, passes: str, *, heads: int = 8, head: int = 64, rounds: int = 5
) -> dict[str, tuple[float, ...]]:
    """The seconds of each scheme under one kernel, all in turn, so that their ratios are of the same minutes."""
    goes = []
    for text in texts:
        scheme, params, inputs = _problem(text, length, heads, head, "float32")
        program = _compiled(scheme, params, inputs, kernel, passes)
        goes.append(functools.partial(program, params, *inputs))
    return dict(zip(texts, map(tuple, in_turn(goes, rounds)), strict=True))


def scratch(text: str, length: int, kernel: str, passes: str, heads: int = 8, head: int = 64) -> int:
    """Bytes that a program takes beside what goes in and out, known without running it."""
    scheme, params, inputs = _problem(text, length, heads, head, "float32", jax.eval_shape)
    return _compiled(scheme, params, inputs, kernel, passes).memory_analysis().temp_size_in_bytes


def refused(text: str) -> dict[str, str]:
    """The kernels that do not serve a scheme, and why."""
    return {k: why for k, why in serves(normal_form(posenc.parse(text)).scheme).items() if why}


def in_turn(goes: Sequence[Callable[[], Any]], rounds: int) -> list[list[float]]:
    """Seconds of each until every output is there, round after round."""
    return alternated([functools.partial(_seconds, go) for go in goes], rounds)


def alternated(goes: Sequence[Callable[[], float]], rounds: int) -> list[list[float]]:
    """The seconds that each says it took, round after round; the first round warms up and is not counted."""
    seconds: list[list[float]] = [[] for _ in goes]
    for n in range(rounds + 1):
        for times, go in zip(seconds, goes, strict=True):
            took = go()
            if n:
                times.append(took)
    return seconds


def noisy(seconds: Sequence[float]) -> bool:
    """Tell whether rounds differ too much to be quoted."""
    return bool(seconds) and max(seconds) > WIDE * min(seconds)


def product(side: int, dtype: str = "float32") -> Callable[[], Any]:
    """A plain product of two square matrices, compiled: what the device could do."""
    square = jnp.ones((side, side), dtype)
    multiply = jax.jit(jnp.matmul).lower(square, square).compile()
    return lambda: multiply(square, square)


def _problem(text: str, length: int, heads: int, head: int, dtype: str, make: Any = lambda f: f()) -> tuple:
    """A scheme bound to its sizes, its parameters, and queries, keys and values."""
    dims = posenc.Dims(width=heads * head, heads=heads, head=head, trained=length)
    scheme = posenc.bind(posenc.parse(text), dims)
    params = posenc.init(scheme, jax.random.key(1), dims)
    keys, shape = list(jax.random.split(jax.random.key(0), 3)), (1, length, heads, head)
    return scheme, params, make(lambda: [jax.random.normal(key, shape, dtype) for key in keys])


def _compiled(scheme: Any, params: Any, inputs: Sequence[Any], kernel: str, passes: str) -> Any:
    def out(params, q, k, v):
        x = q.reshape(*q.shape[:2], -1)  # for schemes that read it
        return posenc.attend(scheme, params, q, k, v, x=x, kernel=kernel)

    program = out if passes == "forward" else jax.grad(lambda *a: (out(*a) ** 2).sum(), argnums=(0, 1, 2, 3))
    return jax.jit(program).lower(params, *inputs).compile()


def _seconds(go: Callable[[], Any]) -> float:
    began = time.perf_counter()
    jax.block_until_ready(go())
    return time.perf_counter() - began
