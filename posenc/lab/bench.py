"""How fast this machine runs a scheme: every kernel that serves it, timed in turn in one process.

Only ratios of medians are worth comparing: a shared machine varies by a third within a minute, and all candidates meet
the same minute. Programs are compiled first and run once uncounted; the clock stops when every output is there.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import posenc
from posenc.kernels import choose, serves

SIDE = 2048
"""Rows of the square matrices whose product says how fast the device could be."""
PASSES = ("forward", "both")


class Measured(NamedTuple):
    """One kernel, forward or with its gradient."""

    scheme: str
    length: int
    kernel: str
    passes: str
    """`forward`, or `both`: with the gradients of q, k, v and of every parameter."""
    auto: bool
    """Whether `kernel="auto"` would take it."""
    seconds: tuple[float, ...]
    scratch: int
    """Bytes beside what goes in and out."""
    of_peak: float
    """Operations of the two products, halved by the mask, over what a plain product of matrices reaches here."""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def measure(text: str, length: int, heads: int, head: int, dtype: str, rounds: int) -> list[Measured]:
    """Each kernel that serves the scheme, on one causal sequence; `refused` names the others."""
    dims = posenc.Dims(width=heads * head, heads=heads, head=head, trained=length)
    scheme = posenc.bind(posenc.parse(text), dims)
    params = posenc.init(scheme, jax.random.key(1), dims)
    shape = (1, length, heads, head)
    inputs = [jax.random.normal(key, shape, dtype) for key in jax.random.split(jax.random.key(0), 3)]
    usual = choose(posenc.compose.bare(scheme), "auto", inputs[0], length)
    kinds = [k for k, why in serves(posenc.compose.bare(scheme)).items() if not why]
    asked = [(kernel, passes) for passes in PASSES for kernel in kinds]
    programs = {key: _compiled(scheme, params, inputs, *key) for key in asked}
    square = jnp.ones((SIDE, SIDE), dtype)
    product = jax.jit(jnp.matmul).lower(square, square).compile()
    goes: list[Callable[[], Any]] = [lambda p=p: p(params, *inputs) for p in programs.values()]
    *took, peak = _in_turn([*goes, lambda: product(square, square)], rounds)
    most = 2 * SIDE**3 / statistics.median(peak)
    found = []
    for (kernel, passes), program, seconds in zip(asked, programs.values(), took, strict=True):
        done = 2 * length**2 * heads * head * (1 if passes == "forward" else 3.5)
        scratch = program.memory_analysis().temp_size_in_bytes
        share = done / statistics.median(seconds) / most
        found.append(Measured(text, length, kernel, passes, kernel == usual, tuple(seconds), scratch, share))
    return found


def refused(text: str) -> dict[str, str]:
    """The kernels that do not serve a scheme, and why."""
    return {k: why for k, why in serves(posenc.compose.bare(posenc.parse(text))).items() if why}


def _compiled(scheme: Any, params: Any, inputs: Sequence[Any], kernel: str, passes: str) -> Any:
    def out(params, q, k, v):
        x = q.reshape(*q.shape[:2], -1)  # for schemes that read it
        return posenc.attend(scheme, params, q, k, v, x=x, kernel=kernel)

    whole = out if passes == "forward" else jax.grad(lambda *a: (out(*a) ** 2).sum(), argnums=(0, 1, 2, 3))
    return jax.jit(whole).lower(params, *inputs).compile()


def _in_turn(goes: Sequence[Callable[[], Any]], rounds: int) -> list[list[float]]:
    """Seconds of each, round after round; the first round is not counted."""
    seconds: list[list[float]] = [[] for _ in goes]
    for n in range(rounds + 1):
        for mine, go in zip(seconds, goes, strict=True):
            began = time.perf_counter()
            jax.block_until_ready(go())
            if n:
                mine.append(time.perf_counter() - began)
    return seconds
