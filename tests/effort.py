"""How hard XLA tries: little in the tests, since compiling is most of their time, and as for users where bits count."""

import os
from importlib.metadata import version
from typing import Any

import jax

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
