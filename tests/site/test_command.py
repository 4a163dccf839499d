"""`posenc site` and `posenc open` at the edge: one sentence where they cannot serve, and nothing outside the folder."""

import importlib.util
import os
import threading
import urllib.error
import urllib.request

import pytest

from posenc.lab.cli import main
from posenc.lab.site import build
from posenc.lab.site.command import HOST, serve


@pytest.fixture
def installed(monkeypatch):
    """As with the extra `docs`, whatever is installed; nothing is built."""
    monkeypatch.setattr(build, "check_packages", lambda: None)
    monkeypatch.setattr(build, "write_pages", lambda folder: pytest.fail("it began to build"))


def said(capfd, *words):
    code = main(words)
    out, err = capfd.readouterr()
    assert not out and err.count("\n") == 1 and "Traceback" not in err
    return code, err


def test_without_the_extra_it_says_what_to_install(capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, err = said(capfd, "site", "--out", str(tmp_path / "site"))
    assert code == 2 and "pip install 'posenc[docs]'" in err and not (tmp_path / "site").exists()


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_is_no_site_is_refused_and_kept(capfd, installed, tmp_path, kind):
    target = tmp_path / "mine"
    if kind == "folder":
        target.mkdir()
        (target / "thesis.md").write_text("years")
    else:
        target.write_text("years")
    code, err = said(capfd, "site", "--out", str(target))
    assert code == 2 and "exists and is not a site of posenc" in err
    assert (target / "thesis.md" if kind == "folder" else target).read_text() == "years"


def test_a_folder_that_cannot_be_written_is_refused(capfd, installed, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "access", lambda *_: False)
    code, err = said(capfd, "site", "--out", str(tmp_path / "a" / "site"))
    assert code == 2 and "cannot be written" in err
    (tmp_path / "file").write_text("")
    code, err = said(capfd, "site", "--out", str(tmp_path / "file" / "site"))
    assert code == 2 and "cannot be written" in err


def test_an_earlier_site_may_be_written_again(tmp_path):
    (tmp_path / build.MARK).write_text("")
    (tmp_path / "index.html").write_text("")
    build.check_target(tmp_path)
    build.check_target(tmp_path / "new")


def test_there_must_be_a_site_to_open(capfd, tmp_path):
    code, err = said(capfd, "open", "--folder", str(tmp_path))
    assert code == 2 and "run `posenc site` first" in err
    (tmp_path / "index.html").write_text("home")
    code, err = said(capfd, "open", "--folder", str(tmp_path), "--port", "70000")
    assert code == 2 and "65535" in err


@pytest.fixture
def address(tmp_path):
    """A served folder with a file beside it, and a link that leads there."""
    folder = tmp_path / "site"
    (folder / "empty").mkdir(parents=True)
    (folder / "index.html").write_text("home")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    with serve(folder, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{server.server_address[1]}"
        server.shutdown()


def test_a_server_shows_its_folder_to_this_machine(address):
    with urllib.request.urlopen(f"{address}/") as answer:
        assert answer.read() == b"home"
    assert address.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("path", ["/../secret.txt", "/%2e%2e/secret.txt", "/link.txt", "/empty/", "/none"])
def test_a_server_shows_nothing_else(address, path):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(address + path)
    refused.value.close()
    assert refused.value.code == 404


def test_a_taken_port_is_refused(tmp_path):
    (tmp_path / "index.html").write_text("home")
    with serve(tmp_path, 0) as server, pytest.raises(ValueError, match="cannot be used"):
        serve(tmp_path, server.server_address[1])
