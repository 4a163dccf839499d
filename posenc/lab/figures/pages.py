"""Pages in HTML: one place that fills templates, in which every text is escaped and loses its control characters."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

from posenc.lab.figures.style import plain, safe

FOLDER = Path(__file__).parent / "templates"


def filled(template: str, **values: Any) -> str:
    """Fill a template of this package.

    Raises `ValueError` where Jinja is not installed.
    """
    if importlib.util.find_spec("jinja2") is None:
        raise ValueError("HTML needs jinja2; pip install 'posenc[plot]'.")
    return _environment().get_template(template).render(**values)


@functools.cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> Markup:
        return value if isinstance(value, Markup) else Markup(safe(value))

    options = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True, "undefined": StrictUndefined}
    made = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, finalize=shown, **options)
    made.filters |= {"lines": lambda text: [plain(line) for line in str(text).split("\n")]}
    made.globals["read"] = lambda name: Markup((FOLDER / name).read_text(encoding="utf-8"))
    return made
