"""Programs that can be dropped, and a count of what XLA compiles while a block runs, with its seconds."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax

COMPILED = "/jax/core/compile/backend_compile_duration"
"""jax reports this of every program, those taken from the compilation cache included."""
KEPT = "/jax/compilation_cache/cache_hits"


class Programs:
    """A function that is compiled for each value of its first arguments, which are static, and can drop programs.

    `jax.jit` drops all programs of a function or none. Here those stay that were compiled ahead and are not called yet.
    """

    def __init__(self, f: Callable[..., Any], static: int, donated: tuple[int, ...] = ()):
        functools.update_wrapper(self, f)
        self._f, self._static, self._donated = f, static, donated
        self._by_key: dict[Hashable, Any] = {}
        self._called: set[Hashable] = set()

    def __call__(self, *args: Any) -> Any:
        key, jitted = self._find(args)
        self._called.add(key)
        return jitted(*args[self._static :])

    def lower(self, *args: Any) -> Any:
        """Lower the function for these arguments, or their shapes; a later call finds what was compiled of it."""
        return self._find(args)[1].lower(*args[self._static :])

    def forget(self) -> None:
        """Drop the programs that were called."""
        for key in self._called:
            del self._by_key[key]
        self._called.clear()

    def clear_cache(self) -> None:
        """Drop all programs."""
        self._by_key.clear()
        self._called.clear()

    def _cache_size(self) -> int:
        return sum(jitted._cache_size() for jitted in self._by_key.values())

    def _find(self, args: tuple[Any, ...]) -> tuple[Hashable, Any]:
        static, first = args[: self._static], args[self._static]
        key = (static, jax.tree.structure(first))  # that of a model or a state holds its scheme
        if key not in self._by_key:
            f = functools.wraps(self._f)(functools.partial(self._f, *static))
            self._by_key[key] = jax.jit(f, donate_argnums=self._donated)
        return key, self._by_key[key]


def forget(*programs: Programs) -> None:
    """Drop what was called of these, which else stays loaded as long as the process."""
    for each in programs:
        each.forget()
    gc.collect()  # cycles hold the programs


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
