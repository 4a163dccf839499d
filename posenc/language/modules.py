"""Classes in modules of the caller's: the class behind `mine:Mine`, and the file that it comes from.

Nothing here imports a module. A text may come from a plan, a record or a config of somebody else. So the caller imports
first: by `import mine` in Python, or by typing `mine:Mine` or `--import mine` on the command line.
"""

from __future__ import annotations

import ast
import difflib
import functools
import hashlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from posenc.language.echo import cut, echoed

OURS = ("posenc", "__main__")
"""Modules whose classes no text names by their file: what is shipped, and a script while it runs."""


def class_of(text: str, kind: str, registered: Mapping[str, type]) -> type:
    """The class that `mine:Mine` names, one of those `registered` by name. Raises one `ValueError` sentence."""
    module, _, name = text.partition(":")
    if module not in sys.modules:
        raise ValueError(
            f"{echoed(text)} is a class of the module {echoed(module)}, which is not imported, and a text imports"
            f" nothing by itself; add --import {cut(module)} to the command, or import it in Python first."
        )
    members = vars(sys.modules[module])  # not getattr, by which some modules import more
    classes = {k: v for k, v in members.items() if isinstance(v, type) and registered.get(getattr(v, "name", "")) is v}
    if name in classes:
        return classes[name]
    wrong = (
        f"{echoed(text)} is not the class of a {kind}"
        if name in members
        else f"The module {module!r} has no {echoed(name)}"
    )
    defined = [k for k, cls in classes.items() if cls.__module__ == module]
    near = difflib.get_close_matches(name, defined, 1, 0.5) or defined
    raise ValueError(f"{wrong}; " + (f"write {module}:{near[0]}." if near else f"{module!r} defines no {kind}."))


def foreign(error: BaseException) -> bool:
    """Tell whether somebody else's code raised this by itself, and not Ctrl-C or a signal that posenc answers."""
    return not isinstance(error, KeyboardInterrupt | GeneratorExit) and not type(error).__module__.startswith("posenc.")


def digest(cls: type) -> str | None:
    """The SHA-256 of the file that defines a class; None for ours, and where there is no file, as in a notebook."""
    spec = getattr(sys.modules.get(cls.__module__), "__spec__", None)
    if spec is None or not spec.has_location or cls.__module__.partition(".")[0] in OURS:
        return None
    try:
        return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()
    except OSError:  # inside an archive
        return None


def notebook(builder: str) -> Callable[[Any], str | None]:
    """Return a method `_repr_html_`, by a function of a package above, such as "posenc.catalog.schemes:as_html". It is
    looked up when a notebook asks. An object without a card there shows as its text."""

    def html(thing: Any) -> str | None:
        try:
            return pkgutil.resolve_name(builder)(thing)
        except ValueError:
            return None

    return html


ROOT = Path(__file__).resolve().parent.parent


@functools.cache
def declarations(package: str) -> Mapping[str, Mapping[str, str]]:
    """Return name to what the body of its class statement sets, as source text. `class Rope(Scheme, name="rope")` in a
    file of "schemes" gives "rope" to {"family": "'rotary'", ...}.

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
