"""A scheme of one's own: what `new` writes passes what `check` asks, and what is wrong is told in a sentence."""

import json
import subprocess
import sys

import pytest

from posenc.core.scheme import SCHEMES


@pytest.fixture
def fresh(monkeypatch):
    """No module and no name of these tests is left behind."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("mine", "other", "broken"):
        sys.modules.pop(name, None)
        SCHEMES._classes.pop(name, None)


def test_what_new_writes_passes_check(posenc, tmp_path, fresh):
    said = posenc("new", "scheme", "mine")
    assert said.code == 0 and not said.err and "posenc check mine:Mine" in said.out
    assert {p.name for p in tmp_path.iterdir()} == {"mine.py", "test_mine.py"}
    said = posenc("check", "mine:Mine")
    assert said.code == 0, said.out
    head, *lines = said.out.splitlines()
    assert head.startswith("mine: ") and " 0 fail" in head and len(lines) > 40
    assert any("G7" in line and "the_future_is_unseen" in line and "holds" in line for line in lines)


def test_the_test_that_new_writes_runs(posenc, tmp_path):
    posenc("new", "scheme", "other")
    text = (tmp_path / "test_other.py").read_text()
    quick = text.replace("posenc.check(Other(**settings))", "posenc.check(Other(**settings), only='G18')")
    assert quick != text
    (tmp_path / "test_other.py").write_text(quick)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_other.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout


BROKEN = """
from posenc import Scheme

class Broken(Scheme, name="broken"):
    "Adds to the score what it says it does not read."
    reads = "nothing"
    twice: bool = False
    samples = ({"twice": True},)
    def score(self, p, s, tile):
        return s - 0.1 * tile.distance * (1 + self.twice)

thing = Broken()
number = 5
"""


def test_a_scheme_that_breaks_its_word_fails_by_name(posenc, tmp_path, fresh):
    (tmp_path / "broken.py").write_text(BROKEN)
    said = posenc("check", "broken:thing", "--only", "scores_read_what_is_declared", "--samples", "--json")
    assert said.code == 1
    reports = json.loads(said.out)
    assert [r["scheme"] for r in reports] == ["broken", "broken(twice=True)"]
    assert all(not r["ok"] and r["findings"][0]["holds"] is False and r["findings"][0]["reason"] for r in reports)
    said = posenc("check", "broken:Broken", "--only", "scores_read_what_is_declared")
    assert said.code == 1 and "FAILS" in said.out


def test_our_own_schemes_are_checked_by_their_text(posenc):
    said = posenc("check", "rope + alibi", "--only", "G18", "its_text_names_it")
    assert said.code == 0 and said.out.startswith("rope + alibi: 3 hold, 0 fail")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["new", "task", "mine"], "writes a scheme, not 'task'"),
        (["new", "scheme", "Mine"], "'Mine' cannot name a scheme; take small letters"),
        (["new", "scheme", "../mine"], "'../mine' cannot name a scheme"),
        (["new", "scheme", "class"], "'class' cannot name a scheme"),
        (["new", "scheme", "rope"], "The name 'rope' is taken"),
        (["new", "scheme", "there"], "'there.py' is there already"),
        (["new", "scheme", "json"], "json.py would stand in the way of the module 'json'"),
        (["new", "scheme", "numpy"], "numpy.py would stand in the way of the module 'numpy'"),
        (["check", "nowhere:Mine"], "There is no module 'nowhere'"),
        (["check", "no.where:Mine"], "The module 'no.where' cannot be found"),
        (["check", ":Mine"], "':Mine' names no scheme; write module:Class"),
        (["check", "broken:Nothing"], "The module 'broken' has no 'Nothing'"),
        (["check", "broken:number"], "A scheme was expected"),
        (["check", "pathlib:Path"], "'pathlib:Path' is a class, but no posenc.Scheme"),
        (["check", "wrong:Mine"], "line 2, cannot be used: NameError: name 'nowhere' is not defined"),
        (["check", "ropee"], "Did you mean 'rope'"),
        (["check", "rope", "--only", "G99"], "No property is called G99"),
    ],
)
def test_what_cannot_be_written_or_checked_is_one_sentence(posenc, tmp_path, fresh, words, why):
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "wrong.py").write_text("\nnowhere.Mine\n")
    (tmp_path / "there.py").write_text("")
    said = posenc(*words)
    assert said.code == 2 and why in said.err and not said.out
    assert len(said.err.splitlines()) == 1
    assert {p.name for p in tmp_path.glob("*.py")} == {"broken.py", "wrong.py", "there.py"}
