"""How MkDocs is to make the site, as a plain value: Material's theme, and nothing from another host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import posenc

SCHEMES = (("(prefers-color-scheme: light)", "default", "dark"), ("(prefers-color-scheme: dark)", "slate", "light"))
EXTENSIONS: tuple[Any, ...] = (
    "admonition",
    "attr_list",
    "md_in_html",
    "tables",
    {"toc": {"permalink": True}},
    {"pymdownx.highlight": {"anchor_linenums": False}},
    "pymdownx.superfences",
    "pymdownx.details",
    {"pymdownx.tabbed": {"alternate_style": True}},
)
DOCSTRINGS = {
    "extensions": ["posenc.lab.site.reference.FencedExamples"],
    "docstring_style": None,
    "show_root_heading": False,
    "show_root_toc_entry": False,
    "show_source": False,
    "heading_level": 3,
    "separate_signature": True,
    "show_signature_annotations": False,
}


def configuration(pages: Path, site: Path, nav: Sequence[Any], scripts: Sequence[str]) -> dict[str, Any]:
    """The settings of MkDocs for pages of Markdown in one folder and the site in another."""
    palette = []
    for media, scheme, other in SCHEMES:
        sky = "night" if other == "dark" else "sunny"
        toggle = {"icon": f"material/weather-{sky}", "name": f"Show the {other} pages"}
        palette.append({"media": media, "scheme": scheme, "primary": "indigo", "accent": "indigo", "toggle": toggle})
    handler = {"paths": [str(Path(posenc.__file__).resolve().parent.parent)], "options": DOCSTRINGS}
    theme = {
        "name": "material",
        "font": False,
        "palette": palette,
        "features": [
            "navigation.tabs",
            "navigation.top",
            "content.code.copy",
            "search.suggest",
            "navigation.indexes",
            "navigation.prune",
            "content.tabs.link",
        ],
    }
    return {
        "site_name": "posenc",
        "site_description": "Positional encodings for Transformers in JAX, compared.",
        "docs_dir": str(pages),
        "site_dir": str(site),
        "use_directory_urls": False,
        "theme": theme,
        "plugins": ["search", "offline", {"mkdocstrings": {"handlers": {"python": handler}}}],
        "markdown_extensions": list(EXTENSIONS),
        "extra_css": ["assets/site.css"],
        "extra_javascript": list(scripts),
        "extra": {"generator": False, "polyfills": ["assets/iframe-worker.js"]},  # else one of another host
        "nav": list(nav),
        "validation": {"links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn"}},
    }
