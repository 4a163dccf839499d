"""Pages and files that no folder holds, and the menu: hooks of MkDocs."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from posenc_site import pages, records
from posenc_site.records import EXPERIMENTS, ROOT
from vl_convert import javascript_bundle

from posenc.lab.explain import gallery
from posenc.lab.figures.files import render
from posenc.lab.train.device import prepare

WHICH = ["guides/which-scheme.md", "which.md"]


def on_files(site: Files, config: Any) -> Files:
    """Add every generated page, the guides, figures and scripts; set the menu."""
    made = {**generated()}
    for path in sorted((ROOT / "docs").glob("*.md")):
        made[f"guides/{path.name}"] = pages.localized(path.read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    made["guides/changes.md"] = pages.localized(changes.replace("](docs/", "]("))
    for notebook in sorted((ROOT / "docs").glob("*.ipynb")):
        made[f"guides/{notebook.name}"] = notebook.read_text(encoding="utf-8")
    for path, content in made.items():
        site.append(File.generated(config, path, content=content))
    for figure in sorted((EXPERIMENTS / "figures").glob("*.svg")):
        site.append(File.generated(config, f"assets/figures/{figure.name}", abs_src_path=str(figure)))
    found = sorted({file.src_uri for file in site.documentation_pages()} - {*WHICH})
    menu: list[Any] = [{"Home": "index.md"}, {"Atlas": "atlas.md"}, {"Which scheme": WHICH}]
    for kind in ("schemes", "tasks", "experiments", "guides", "reference"):
        own = sorted((n for n in found if n.startswith(f"{kind}/")), key=lambda name: not name.endswith("/index.md"))
        menu.append({kind.capitalize(): own})
    config.nav = menu
    return site


@functools.cache
def generated() -> dict[str, str | bytes]:
    """Make the files that only a new process makes again."""
    tiles = dict(_tiles())
    atlas, data = pages.atlas_page(records.atlas_data(records.atlas_records()))
    made: dict[str, str | bytes] = dict(pages.pages({name for name, (_, moved) in tiles.items() if moved}))
    made |= {f"assets/tiles/{name}.svg": picture for name, (picture, _) in tiles.items()}
    made["assets/mathjax.js"] = (files("mathjax") / "static/mathjax/es5/tex-svg.js").read_bytes()
    made |= {"assets/vega.js": javascript_bundle(), "assets/atlas-data.js": data, **dict([atlas])}
    return made


def _tiles() -> Iterator[tuple[str, tuple[bytes, bool]]]:
    """Draw the panel of each scheme as the gallery does; compiled programs are kept for the next time."""
    prepare()
    for panel in gallery.panels():
        yield panel.name, (render(gallery.draw_one(panel), "svg", panel.name, ""), panel.moved)


def on_post_build(config: Any) -> None:
    """Let the page of missing addresses work from any folder, also of a disk."""
    lost = Path(config.site_dir) / "404.html"
    text = re.sub(r'(\b(?:href|src)=")/(?!/)', r"\1./", lost.read_text(encoding="utf-8"))
    lost.write_text(text.replace('"base": "/"', '"base": "."'), encoding="utf-8")
