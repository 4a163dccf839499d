"""What XLA compiles while a block runs: how many programs, how many of them the cache held, and how long it took."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax

COMPILED = "/jax/core/compile/backend_compile_duration"
"""jax reports this of every program, those taken from the compilation cache included."""
KEPT = "/jax/compilation_cache/cache_hits"


@dataclass
class Compiled:
    """A count that goes on while its block runs."""

    programs: int = 0
    """Programs that this process compiled or read from the cache."""
    kept: int = 0
    """How many of these the cache held."""
    seconds: float = 0.0
    each: dict[str, float] = field(default_factory=dict)
    """Seconds by the name of the function that was compiled."""

    def __str__(self) -> str:
        return f"Compiling took {self.seconds:.1f} s: {self.programs} programs, {self.kept} of them from the cache."

    def as_record(self) -> dict[str, Any]:
        """The count as records and logs keep it."""
        return {"programs": self.programs, "kept": self.kept, "seconds": round(self.seconds, 3)}


@contextlib.contextmanager
def count_compilations() -> Iterator[Compiled]:
    """The count of a block. Blocks may be nested; a program counts in each of those around it."""
    compiled = Compiled()

    def took(event: str, seconds: float, fun_name: str = "", **_: Any) -> None:
        if event == COMPILED:
            compiled.programs, compiled.seconds = compiled.programs + 1, compiled.seconds + seconds
            name = fun_name.removeprefix("jit(").removesuffix(")")
            compiled.each[name] = compiled.each.get(name, 0.0) + seconds

    def happened(event: str, **_: Any) -> None:
        compiled.kept += event == KEPT

    jax.monitoring.register_event_duration_secs_listener(took)
    jax.monitoring.register_event_listener(happened)
    try:
        yield compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(took)
        jax.monitoring.unregister_event_listener(happened)
