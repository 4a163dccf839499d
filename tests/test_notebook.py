"""A scheme and a task show their cards in a notebook, and importing them imports no more."""

import subprocess
import sys

import posenc
from posenc.lab import tasks


def test_a_scheme_shows_its_card():
    for text in ("rope", "rope + alibi", "rope + window(3)", "[rope, nope]"):
        page = posenc.parse(text)._repr_html_()
        assert page.startswith("<article>") and f"<h1>{text}</h1>" in page


def test_a_task_shows_its_card():
    page = tasks.parse("copy")._repr_html_()
    assert "<h1>copy</h1>" in page and "An example of size" in page


def test_what_has_no_card_shows_as_its_text(monkeypatch):
    def refuse(scheme):
        raise ValueError("no text names it")

    monkeypatch.setattr("posenc.catalog.schemes.as_html", refuse)
    assert posenc.parse("rope")._repr_html_() is None


def test_importing_a_scheme_imports_no_card():
    program = "import sys, posenc; posenc.parse('rope'); assert 'posenc.catalog.schemes' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
