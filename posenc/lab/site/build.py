"""The site from nothing: pages are written into a folder of their own, and MkDocs makes the site of them."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import posenc
from posenc.lab.results.ability_scores import ability_scores
from posenc.lab.site.tags import SitePage
from posenc.lab.spec.abilities import ABILITIES

ASSETS = Path(__file__).with_name("assets")
MARK = ".posenc-site"
"""A file by which a folder is known to be a site of ours, which may be written again."""
NEEDED = {"mkdocs": "mkdocs", "material": "mkdocs-material", "mkdocstrings_handlers": "mkdocstrings-python"}
NEEDED |= {"altair": "altair", "vl_convert": "vl-convert-python"}
"""Module to the package that has it, all of the extra `docs`."""


def build(target: Path) -> int:
    """Write the site into a folder; the number of its pages.

    Raises `ValueError` where a package is missing, or the folder holds something else or cannot be written.
    """
    check_packages()
    check_target(target)
    with tempfile.TemporaryDirectory(prefix="posenc-site-") as folder:
        pages, made = Path(folder) / "pages", Path(folder) / "site"
        written = write_pages(pages)
        render(pages, made, navigation(written))
        lost = made / "404.html"
        lost.write_text(from_here(lost.read_text(encoding="utf-8")), encoding="utf-8")
        (made / MARK).write_text(f"posenc {posenc.__version__}\n", encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(made, target)
    return sum(1 for _ in target.rglob("*.html"))


def from_here(page: str) -> str:
    """A page of the top folder whose addresses begin there, and not at the root of a server or of a disk."""
    return re.sub(r'(\b(?:href|src)=")/(?!/)', r"\1./", page).replace('"base": "/"', '"base": "."')


def check_packages() -> None:
    """Raise `ValueError` unless the extra `docs` is installed."""
    missing = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise ValueError(
            f"The site is made by {', '.join(missing)}, which must be installed: run `pip install 'posenc[docs]'`."
        )


def check_target(target: Path) -> None:
    """Raise `ValueError` unless a folder is free, empty, or an earlier site, and can be written."""
    if target.is_file() or (target.is_dir() and any(target.iterdir()) and not (target / MARK).is_file()):
        raise ValueError(f"{str(target)!r} exists and is not a site of posenc; give another folder with --out.")
    parent = next(folder for folder in (target.absolute(), *target.absolute().parents) if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise ValueError(f"{str(target)!r} cannot be written; give a folder that you may write with --out.")


def write_pages(folder: Path) -> list[SitePage]:
    """Write every page, picture and script into a folder; the pages, in order."""
    from vl_convert import javascript_bundle

    from posenc.lab.results.atlas_cells import recorded_cells
    from posenc.lab.site import guides, reference, shelf, tiles
    from posenc.lab.site.atlas_page import atlas_page
    from posenc.lab.site.experiment_pages import experiment_pages
    from posenc.lab.site.home import home
    from posenc.lab.site.scheme_pages import scheme_pages
    from posenc.lab.site.task_pages import task_pages

    assets = folder / "assets"
    shutil.copytree(ASSETS, assets)
    (assets / "vega.js").write_text(javascript_bundle(), encoding="utf-8")
    (assets / "figures").mkdir()
    (assets / "tiles").mkdir()
    for figure in shelf.figures():
        shutil.copy(figure, assets / "figures")
    cut = tiles.cut((shelf.experiments() / "figures" / "gallery.svg").read_text(encoding="utf-8"))
    for name in posenc.names():
        shown = cut.get(name, (tiles.NOTHING, False))[0]
        (assets / "tiles" / f"{name}.svg").write_text(shown, encoding="utf-8")
    shelved = shelf.shelve()
    recorded = {s.name: s.results for s in shelved if s.results is not None}
    scores = {ability: ability_scores(ability, recorded) for ability in ABILITIES}
    cells = recorded_cells()
    kinds = {
        "schemes": list(scheme_pages(cut, shelved, [s for of in scores.values() for s in of], cells)),
        "tasks": list(task_pages(shelved)),
        "experiments": list(experiment_pages(shelved)),
    }
    counts = {kind: len(pages) - 1 for kind, pages in kinds.items()}
    pages = [home(cells, counts), *(p for of in kinds.values() for p in of)]
    pages += [
        atlas_page(shelf.experiments(), assets),
        guides.which_page(scores),
        *guides.guide_pages(shelf.guides()),
        *reference.reference_pages(),
    ]
    for page in pages:
        path = folder / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page.text, encoding="utf-8")
    return pages


def navigation(pages: Sequence[SitePage]) -> list[Any]:
    """The pages in the order of the menu, by kind."""
    which = ["guides/which-scheme.md", "which.md"]
    of = lambda folder: [p.path for p in pages if p.path.startswith(f"{folder}/") and p.path not in which]  # noqa: E731
    nav: list[Any] = [{"Home": "index.md"}, {"Atlas": "atlas.md"}, {"Which scheme": which}]
    titles = {"schemes": "Schemes", "tasks": "Tasks", "experiments": "Experiments", "guides": "Guides"}
    return [*nav, *({title: of(kind)} for kind, title in titles.items()), {"Reference": of("reference")}]


def render(pages: Path, made: Path, nav: Sequence[Any]) -> None:
    """Make the site of the pages by MkDocs. Raises `ValueError` with its warnings if it has any."""
    from mkdocs.commands.build import build as mkdocs_build
    from mkdocs.config import load_config
    from mkdocs.exceptions import MkDocsException

    from posenc.lab.site.configuration import configuration

    settings = configuration(pages, made, nav, ["assets/site.js"])
    file = pages.parent / "mkdocs.yml"
    file.write_text(json.dumps(settings, indent=1), encoding="utf-8")
    with _warnings() as messages:
        try:
            config = load_config(str(file), strict=True)
            config.plugins.on_startup(command="build", dirty=False)
            mkdocs_build(config)
        except (MkDocsException, SystemExit) as error:
            first = "; ".join(messages[:40]) or str(error)
            raise ValueError(f"MkDocs finds {len(messages)} faults in the pages: {first}") from error


@contextlib.contextmanager
def _warnings() -> Iterator[list[str]]:
    """What MkDocs warns of, which it otherwise prints."""
    messages: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger, listener = logging.getLogger("mkdocs"), Listener(logging.WARNING)
    logger.addHandler(listener)
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")
    try:
        yield messages
    finally:
        logger.removeHandler(listener)
