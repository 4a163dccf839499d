"""Docstrings as mkdocstrings shall read them."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension


class FencedExamples(Extension):
    """Examples in docstrings as blocks of code, which Markdown would take for quotations and links."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Fence a docstring from `>>>` to the next empty line."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(doc: str) -> str:
    """Fence the examples of a docstring.

    >>> fenced("Adds.\\n\\n>>> 1 + 1\\n2")
    'Adds.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    return re.sub(r"^>>> .*(?:\n.+)*", lambda m: f"```pycon\n{m[0]}\n```", doc, flags=re.MULTILINE)
