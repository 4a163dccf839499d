"""How hard XLA tries: little in the tests, since compiling is most of their time, and as for users where bits count."""

import os
from importlib.metadata import version
from typing import Any

LITTLE: dict[str, Any] = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
MUCH: dict[str, Any] = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False}
if version("jaxlib").startswith("0.10."):  # later ones know no such option, and end the process over it
    LITTLE["xla_cpu_use_fusion_emitters"] = False
    MUCH["xla_cpu_use_fusion_emitters"] = True


def try_little() -> None:
    """Compile with little effort, here and in processes begun here; before jax is first used."""
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
