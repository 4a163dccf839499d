"""Synthetic tasks by name: `parse("token_k_back(k=3)")`. Each isolates one thing that positions are needed for.

A class statement registers a task. Every module of this package is imported, so a new file is found by itself.
"""

import importlib
import pkgutil

from posenc.lab.tasks.task import TASKS as _TASKS
from posenc.lab.tasks.task import Batch as Batch
from posenc.lab.tasks.task import Layout as Layout
from posenc.lab.tasks.task import Sizes as Sizes
from posenc.lab.tasks.task import Task as Task
from posenc.language import grammar
from posenc.language.echo import offer
from posenc.language.registry import call as _call

for _module in pkgutil.iter_modules(__path__):
    if _module.name != "checks":  # who checks a task imports it, with the contract of schemes
        importlib.import_module(f"{__name__}.{_module.name}")


def parse(text: str) -> Task:
    """The task that a text names.

    >>> parse("token_k_back(3)")
    TokenKBack(k=3, symbols=16)
    """
    tree = grammar.read(text)
    if not isinstance(tree, grammar.Call):
        raise ValueError(f"{text!r} is not one task; write one name with settings, for example 'token_k_back(k=3)'.")
    return _TASKS.make(tree)


def spec(task: Task) -> str:
    """The shortest text of a task; `parse(spec(task)) == task`.

    >>> spec(parse("token_k_back(3, symbols=16)"))
    'token_k_back(k=3)'
    """
    return grammar.write(_call(task, task.name))


def names() -> list[str]:
    """The names of all tasks, including those of other packages."""
    return _TASKS.names()


def suites() -> list[str]:
    """The names of all suites."""
    return sorted({suite for name in names() for suite in _TASKS.find(name).suites})


def suite(name: str) -> tuple[str, ...]:
    """The texts of the tasks in a suite.

    >>> "copy" in suite("quick")
    True
    """
    suite_names = suites()
    if name not in suite_names:
        raise ValueError(f"No suite is called {name!r}.{offer(str(name), suite_names, '`posenc list suites` has all')}")
    return tuple(task for task in names() if name in _TASKS.find(task).suites)
