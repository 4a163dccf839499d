"""A fault written into one function, as a piece of source and what replaces it: so it reads as it would in a review."""

import __future__

import importlib
import inspect
import sys
import textwrap
from typing import Any, NamedTuple

import pytest


class Fault(NamedTuple):
    """`old` is replaced by `new` in a function, and `caught` must then fail for this scheme."""

    where: str
    old: str
    new: str
    scheme: str
    caught: str


class Place(NamedTuple):
    """The function that a fault is written into, and its source."""

    module: Any
    owner: Any
    name: str
    right: Any
    source: str


def find_place(where: str) -> Place:
    """What stands at "module:function" or "module:Class.method"."""
    home, _, path = where.partition(":")
    module = importlib.import_module(home)
    owner, name = module, path
    if "." in path:
        cls, name = path.split(".")
        owner = getattr(module, cls)
    right = getattr(owner, name)
    return Place(module, owner, name, right, textwrap.dedent(inspect.getsource(right)))


@pytest.fixture
def plant(monkeypatch):
    """Write a fault into a function, wherever posenc has imported it."""

    def write(fault: Fault):
        module, owner, name, right, source = find_place(fault.where)
        assert fault.old in source, f"{fault.where} no longer says {fault.old!r}"
        space = {**vars(module), "SEEN": []}
        code = compile(source.replace(fault.old, fault.new), fault.where, "exec", __future__.annotations.compiler_flag)
        exec(code, space)
        monkeypatch.setattr(owner, name, space[name])
        if owner is module:
            for other in [m for n, m in sys.modules.items() if n.startswith("posenc.") and m is not module]:
                if vars(other).get(name) is right:
                    monkeypatch.setattr(other, name, space[name])

    return write
