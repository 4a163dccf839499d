"""How hard XLA tries: little in the tests, since compiling is most of their time, and as for users where bits count."""

import os
from typing import Any

from posenc.contract.case import LITTLE

MUCH = {name: not value for name, value in LITTLE.items()} | {"xla_backend_optimization_level": 3}


def try_little() -> None:
    """Compile with little effort, here and in processes begun here; before jax is first used.

    XLA ends the process over an option that it does not know, so that `LITTLE` must hold none.
    """
    said = " ".join(f"--{name}={str(value).lower()}" for name, value in LITTLE.items())
    os.environ["XLA_FLAGS"] = f"{said} {os.environ.get('XLA_FLAGS', '')}".strip()


def as_for_users(program: Any) -> Any:
    """A jitted function that is compiled as it is outside of tests: there trials are promised to the bit."""
    compiled: dict[Any, Any] = {}

    def run(*args):
        if "it" not in compiled:
            compiled["it"] = program.lower(*args).compile(compiler_options=MUCH)
        return compiled["it"](*args)

    return run
