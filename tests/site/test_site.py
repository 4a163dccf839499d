"""The whole site: a page for everything, links that lead somewhere, and nothing from another host."""

import html.parser
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import posenc
from posenc.lab import tasks

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.ci, pytest.mark.timeout(900)]  # the first test waits for the site
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


class Read(html.parser.HTMLParser):
    """What a page links to, loads, shows and names."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.silent, self.ids = [], [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADING and values.get(LOADING[tag]):
            self.loaded.append(values[LOADING[tag]])
        if tag == "img" and not values.get("alt"):
            self.silent.append(values)


@pytest.fixture(scope="module")
def pages(built):
    return {path: Read(path) for path in sorted(built.rglob("*.html"))}


def test_everything_has_its_page(built, pages):
    experiments = [path.stem for path in (ROOT / "experiments").glob("*.py") if path.name[0] != "_"]
    wanted = {f"schemes/{name}" for name in posenc.names()} | {f"tasks/{name}" for name in tasks.names()}
    wanted |= {f"experiments/{name}" for name in experiments}
    wanted |= {f"guides/{path.stem}" for path in (ROOT / "docs").glob("*.md")}
    wanted |= {"index", "atlas", "which", "guides/by-hand", "reference/attention"}
    assert wanted <= {path.relative_to(built).with_suffix("").as_posix() for path in pages}
    assert len(pages) >= 140


def test_every_link_leads_somewhere(built, pages):
    broken = []
    for path, page in pages.items():
        for target in page.links + page.loaded:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            file = file / "index.html" if file.is_dir() else file
            known = pages.get(file)
            if not file.is_file() or (known and parts.fragment and unquote(parts.fragment) not in known.ids):
                broken.append((path.relative_to(built).as_posix(), target))
    assert not [line for line in broken if "#__" not in line[1]]


def test_nothing_is_loaded_from_another_host(built, pages):
    assert not [(path.name, target) for path, page in pages.items() for target in page.loaded if "//" in target]
    styles = "".join(path.read_text(encoding="utf-8") for path in built.rglob("*.css"))
    assert not re.findall(r"url\(\s*[\"']?(?:https?:)?//[^)]*\)|@import", styles)


def test_every_image_has_a_text(pages):
    assert not {path.name: page.silent for path, page in pages.items() if page.silent}


def test_pages_hold_what_they_are_for(built):
    def text(name):
        return Path(built / f"{name}.html").read_text(encoding="utf-8")

    scheme, task, experiment = text("schemes/rope"), text("tasks/copy"), text("experiments/length")
    for wanted in ("query, key", "posenc.nnx", "posenc.linen", "@article", "posenc/schemes/rope.py", "tiles/rope.svg"):
        assert wanted in re.sub(r"<[^>]*span[^>]*>", "", scheme), wanted
    assert "assets/mathjax.js" in scheme and r'data-tex="ω_{i} = \text{base}^{-2i / d}"' in scheme
    assert "Other rows of the atlas" in scheme and ">atlas_encoders</a></td>" not in scheme
    assert task.count("oracle ") >= 3 and "uniform" in task and "experiments/copying.html" in task
    assert "figures/length.svg" in experiment and "both at a baseline" in experiment
    assert "PaTH reaches" in text("experiments/atlas").partition('id="reading"')[2].partition("<h2")[0]
    assert "posenc reproduce length" in re.sub(r"<[^>]*>", "", experiment)
