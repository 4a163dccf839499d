"""How hard XLA tries: little in the tests, since compiling is most of their time, and as for users where bits count."""

import os
import threading
from importlib.metadata import version
from typing import Any

import jax
from jax._src.interpreters import mlir

from posenc.contract.case import LITTLE

ONE_PIECE = {"xla_cpu_parallel_codegen_split_count": 1} if version("jaxlib").startswith("0.10.") else {}
"""Each program is compiled in one piece: cut into pieces for many threads, small ones cost an eighth more."""
MUCH = (
    {name: not value for name, value in LITTLE.items()}
    | {"xla_backend_optimization_level": 3}
    | dict.fromkeys(ONE_PIECE, 32)
)


def try_little() -> None:
    """Compile with little effort, here and in processes begun here; before jax is first used.

    XLA ends the process over an option that it does not know, so that these must hold none.
    """
    said = " ".join(f"--{name}={str(value).lower()}" for name, value in (LITTLE | ONE_PIECE).items())
    os.environ["XLA_FLAGS"] = f"{said} {os.environ.get('XLA_FLAGS', '')}".strip()


PROGRAMS = 200
"""How many programs of a thread are lowered in one context; what they share lives as long as it."""


class Contexts(threading.local):
    """What makes the context that a program is lowered in: one for many of them, since a small program costs a quarter
    less without its own."""

    def __init__(self, make: Any):
        self._make, self._left, self._context = make, 0, None

    def __call__(self) -> Any:
        if not self._left:
            self._context, self._left = self._make(), PROGRAMS
        self._left -= 1
        return self._context


def share_contexts() -> None:
    """Lower many programs in one context of MLIR, where this jax makes its contexts by a function of this name."""
    if hasattr(mlir, "make_ir_context"):
        mlir.make_ir_context = Contexts(mlir.make_ir_context)


def as_for_users(program: Any, static: int) -> Any:
    """A jitted function that is compiled as it is outside of tests: there trials are promised to the bit.

    Its first `static` arguments are static.
    """
    compiled: dict[Any, Any] = {}

    def run(*args):
        rest = args[static:]
        key = args[:static], jax.tree.structure(rest), tuple(a.shape for a in jax.tree.leaves(rest))
        if key not in compiled:
            compiled[key] = program.lower(*args).compile(compiler_options=MUCH)
        return compiled[key](*rest)

    return run
