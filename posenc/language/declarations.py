"""The named classes of a package, read from its source: naming schemes and tasks costs no import of jax."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@functools.cache
def declarations(package: str) -> Mapping[str, Mapping[str, str]]:
    """Name to what the body of its class statement sets, as source text: of `class Rope(Scheme, name="rope")` in a file
    of "schemes", "rope" to {"family": "'rotary'", ...}.

    >>> declarations("schemes")["rope"]["family"]
    "'rotary'"
    """
    classes: dict[str, dict[str, str]] = {}
    for path in sorted(ROOT.joinpath(*package.split(".")).glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef):
                continue
            for keyword in node.keywords:
                if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                    classes[str(keyword.value.value)] = _assigned(node)
    return classes


def _assigned(statement: ast.ClassDef) -> dict[str, str]:
    """The attributes that a class body sets, settings with a default among them."""
    attributes: dict[str, str] = {}
    for node in statement.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        attributes |= {at.id: ast.unparse(value) for at in targets if isinstance(at, ast.Name) and value is not None}
    return attributes
