"""Programs that can be dropped, and a count of what XLA compiles while a block runs, with its seconds."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax

LEVEL, EMITTERS = "xla_backend_optimization_level", "xla_cpu_use_fusion_emitters"
COMPILED = "/jax/core/compile/backend_compile_duration"
"""jax reports this of every program, those taken from the compilation cache included."""
KEPT = "/jax/compilation_cache/cache_hits"
OFTEN = ((LEVEL, 1),)
"""XLA's options of steps on processors: they are as fast as by its default level of 3, and compile in nine tenths of
the time."""
SOMETIMES = ((LEVEL, 1), (EMITTERS, False))
"""Options of what runs some ten times for each trial: it is as fast, and compiles in two thirds of that time. Steps
would be a tenth slower."""
SELDOM = ((LEVEL, 0), (EMITTERS, False))
"""Options of what runs a few times for each group of trials: it is slower, and compiles in a quarter of the time."""


@functools.cache
def options(wanted: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """Return those of some options that XLA knows, since they change from version to version. An option that its flags
    name is left out."""
    if jax.default_backend() != "cpu":
        return {}
    return {
        name: value
        for name, value in wanted
        if name not in os.environ.get("XLA_FLAGS", "") and _compiles_with(name, value)
    }


@functools.cache
def _compiles_with(name: str, value: Any) -> bool:
    """Tell whether XLA compiles with an option."""
    try:
        jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except Exception:  # of a type that differs, too
        return False
    return True


class Programs:
    """A function that is compiled for each value of its first arguments, which are static, and can drop programs.

    `jax.jit` drops all programs of a function or none. Here those stay that were compiled ahead and are not called yet.
    """

    def __init__(self, f: Callable[..., Any], static: int, donated: tuple[int, ...] = (), wanted: Any = SOMETIMES):
        functools.update_wrapper(self, f)
        self._f, self._static, self._donated, self._wanted = f, static, donated, wanted
        self._by_key: dict[Hashable, Any] = {}
        self._called: set[Hashable] = set()

    def __call__(self, *args: Any) -> Any:
        if any(isinstance(a, jax.core.Tracer) for a in jax.tree.leaves(args[self._static :])):
            return self._f(*args)  # a part of another program, which jax refuses options of its own
        key, jitted = self._find(args)
        self._called.add(key)
        return jitted(*args[self._static :])

    def lower(self, *args: Any) -> Any:
        """Lower the function for these arguments, or their shapes; a later call finds what was compiled of it."""
        return self._find(args)[1].lower(*args[self._static :])

    def forget(self) -> int:
        """Drop the programs that were called; returns how many these were."""
        for key in self._called:
            del self._by_key[key]
        dropped = len(self._called)
        self._called.clear()
        return dropped

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
            self._by_key[key] = jax.jit(f, donate_argnums=self._donated, compiler_options=options(self._wanted))
        return key, self._by_key[key]


def forget(*programs: Programs) -> None:
    """Drop what was called of these, which else stays loaded as long as the process."""
    if sum(each.forget() for each in programs):
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
