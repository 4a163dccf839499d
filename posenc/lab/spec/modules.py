"""Modules of the user's: typing `mine:Mine` or `--import mine` imports mine.py of the working folder.

Such a module runs with all rights of this process, as any program that is started. So no plan, record or bundle imports
one. They hold the names of classes, and only the person who types a command may import them.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from posenc.language import grammar
from posenc.language.modules import foreign

if TYPE_CHECKING:
    from posenc.lab.spec.experiment import Experiment

OPTION = "--import"
WANTED = "the name of a module, such as mine for mine.py in this folder"


def load(module: str) -> ModuleType:
    """The module of this name, imported from the working folder, or else from Python's path. Raises `ValueError`."""
    if not all(map(str.isidentifier, module.split("."))):
        raise ValueError(f"{OPTION} takes {WANTED}, not {module!r}.")
    if module.endswith(".py"):
        raise ValueError(f"{module!r} is a file; the name of its module is {module.removesuffix('.py')!r}.")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()  # the file may be younger than what Python remembers of the folder
    try:
        spec = importlib.util.find_spec(module)
    except BaseException as fault:  # a package runs before its module is found
        if not foreign(fault):
            raise
        raise ValueError(f"The module {module!r} cannot be found: {fault}.") from None
    if spec is None:
        raise ValueError(f"There is no module {module!r} in this folder or on Python's path; write module:Class.")
    for ours in ("posenc.schemes", "posenc.coordinates", "posenc.lab.tasks"):
        importlib.import_module(ours)  # first, so that a class that takes one of our names is the user's
    with pointing(Path(spec.origin or module)):
        return importlib.import_module(module)


@contextlib.contextmanager
def pointing(path: Path) -> Iterator[None]:
    """Say of an error in a file in which of its lines it arose."""
    try:
        yield
    except BaseException as error:
        if not foreign(error):
            raise
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path]
        where = f", line {lines[-1]}," if lines else ""
        message = f"{error.msg} in line {error.lineno}" if isinstance(error, SyntaxError) else str(error)
        raise ValueError(f"{str(path)!r}{where} cannot be used: {type(error).__name__}: {message}") from error


def load_named(texts: Iterable[str | None]) -> None:
    """Import the modules whose classes some typed texts name; other texts are left to their readers."""
    for text in texts:
        for module in grammar.modules(grammar.read(text)) if text and ":" in text else ():
            load(module)


def load_for(experiment: Experiment) -> None:
    """Import the modules whose classes an experiment names."""
    run_texts = ((run.scheme, run.task, run.stem, run.goes_on.scheme) for run in experiment.runs)
    load_named(dict.fromkeys(text for texts in run_texts for text in texts))


def imported() -> list[str]:
    """The modules of this user's whose classes this process knows, for a worker to import too."""
    homes = {
        "posenc.core.scheme": "SCHEMES",
        "posenc.coordinates.base": "COORDINATES",
        "posenc.lab.tasks.task": "TASKS",
        "posenc.lab.models.stems": "STEMS",
    }
    registries = (getattr(sys.modules[home], name) for home, name in homes.items() if home in sys.modules)
    return sorted(set[str]().union(*(registry.imported() for registry in registries)))


def taken(args: list[str]) -> tuple[list[str], list[str]]:
    """The arguments without `--import MODULE`, which every command takes, and the modules."""
    left, modules, remaining = [], [], iter(args)
    for arg in remaining:
        flag, equals, value = arg.partition("=")
        if flag != OPTION:
            left.append(arg)
        elif not (value := value if equals else next(remaining, "")):
            raise ValueError(f"{OPTION} takes {WANTED}.")
        else:
            modules.append(value)
    return left, modules
