"""A Python file that a person names is run as a module; an error in it is told with its line."""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType


def executed(path: Path) -> ModuleType:
    """The module in a file. It is as trusted as any program that is started."""
    name = f"posenc_experiment_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # where dataclasses of the file look up their types
    try:
        with pointing(path):
            SourceFileLoader(name, str(path)).exec_module(module)
    finally:
        del sys.modules[name]
    return module


@contextlib.contextmanager
def pointing(path: Path) -> Iterator[None]:
    """Say of an error in a file in which of its lines it arose."""
    try:
        yield
    except (Exception, SystemExit) as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path]
        where = f", line {lines[-1]}," if lines else ""
        said = f"{error.msg} in line {error.lineno}" if isinstance(error, SyntaxError) else str(error)
        raise ValueError(f"{str(path)!r}{where} cannot be used: {type(error).__name__}: {said}") from error
