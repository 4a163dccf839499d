"""The API reference: what `posenc` exports, a page for each group, written by mkdocstrings from the docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import posenc
from posenc.lab.site import tags
from posenc.lab.site.tags import SitePage

try:
    from griffe import Extension
except ModuleNotFoundError:  # without the extra `docs` nobody reads docstrings here
    Extension = object

GROUPS = {
    "schemes": (
        "Schemes",
        ("parse", "bind", "spec", "names", "describe", "cite", "Scheme", "Dims", "Tile", "At", "place"),
    ),
    "parameters": ("Parameters", ("init", "split", "layer", "input_scheme", "acts_on_input")),
    "attention": ("Attention", ("attend", "embed", "Cache", "Prefix", "Window")),
    "results": ("Checks and results", ("check", "load")),
}
"""SitePage to its title and the names on it; names that are in none come last."""
MODULES = {
    "nnx": "Flax NNX",
    "linen": "Flax Linen",
    "equinox": "Equinox",
    "huggingface": "Hugging Face",
    "sharding": "Sharding",
}
"""Modules that have a page of their own."""


def reference_pages() -> Iterator[SitePage]:
    """A page for each group of names, then one for each module."""
    homes = {name: home for home, public in posenc._HOMES.items() for name in public}
    rest = tuple(name for name in posenc.__all__ if all(name not in names for _, names in GROUPS.values()))
    groups = GROUPS | ({"further": ("Further", rest)} if rest else {})
    for page, (title, names) in groups.items():
        parts = [f"# {title}"]
        for name in names:
            parts += [f"## posenc.{name}", f"::: posenc.{homes[name]}.{name}"]
        yield tags.page(f"reference/{page}.md", title, *parts)
    for module, title in MODULES.items():
        shown = "    options:\n      heading_level: 2\n      show_root_heading: false\n      members_order: source"
        yield tags.page(f"reference/{module}.md", title, f"# posenc.{module}", f"::: posenc.{module}\n{shown}")


class FencedExamples(Extension):
    """Examples in docstrings as blocks of code, which Markdown would take for quotations and links."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Fence what a docstring has from `>>>` to the next empty line."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(doc: str) -> str:
    """A docstring whose examples are fenced.

    >>> fenced("Adds.\\n\\n>>> 1 + 1\\n2")
    'Adds.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    return re.sub(r"^>>> .*(?:\n.+)*", lambda m: f"```pycon\n{m[0]}\n```", doc, flags=re.MULTILINE)
