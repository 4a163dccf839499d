"""A scheme of one's own: what `new` writes passes what `check` asks, and what is wrong is told in a sentence."""

import json
import subprocess
import sys

import jax
import pytest

from posenc.lab import tasks
from posenc.lab.tasks import checks
from posenc.lab.tasks.task import TASKS, Task


@pytest.mark.nightly  # the README's new scheme passes the whole check, and the test that `new` writes runs
def test_what_new_writes_passes_check(posenc, tmp_path, fresh):
    said = posenc("new", "scheme", "mine")
    assert said.code == 0 and not said.err and "posenc check mine:Mine" in said.out
    assert "posenc sweep --grid scheme=alibi,mine:Mine task=before" in said.out
    assert {p.name for p in tmp_path.iterdir()} == {"mine.py", "test_mine.py"}
    said = posenc("check", "mine:Mine")
    assert said.code == 0, said.out
    head, *lines = said.out.splitlines()
    assert head.startswith("mine: ") and " 0 fail" in head and len(lines) > 40
    assert any("G7" in line and "the_future_is_unseen" in line and "holds" in line for line in lines)


@pytest.mark.ci
def test_the_test_that_new_writes_runs(posenc, tmp_path):
    posenc("new", "scheme", "other")
    text = (tmp_path / "test_other.py").read_text()
    quick = text.replace("posenc.check(Other(**settings))", "posenc.check(Other(**settings), only='G18')")
    assert quick != text
    (tmp_path / "test_other.py").write_text(quick)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_other.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout


@pytest.mark.ci
def test_the_task_that_new_writes_passes_check(posenc, tmp_path, fresh):
    said = posenc("new", "task", "mine")
    assert said.code == 0 and not said.err and "posenc check mine:Mine" in said.out
    assert {p.name for p in tmp_path.iterdir()} == {"mine.py", "test_mine.py"}
    said = posenc("check", "mine:Mine", "--samples")
    assert said.code == 0, said.out
    heads = [line for line in said.out.splitlines() if not line.startswith(" ")]
    assert heads == [f"{name}: {len(checks.PROPERTIES)} hold, 0 fail, 0 do not apply" for name in ("mine", "mine(k=3)")]
    assert "2560 examples at sizes 2, 3, 4, 21, 42" in said.out
    assert tasks.parse("mine(k=2)").answer([0, 1, 2, 3]) == [2, 3, 0, 1]
    compile((tmp_path / "test_mine.py").read_text(), "test_mine.py", "exec")


def faulty(base, **changed):
    """A task like `base`, unregistered, with some attributes replaced by wrong ones."""
    body = {
        k: v
        for k, v in vars(base).items()
        if k in ("layout", "alphabet", "classes", "sizes", "tokens", "make", "answer")
    }
    return type("Faulty", (Task,), {**body, "__annotations__": {}, **changed}, name=None)()


EVEN = TASKS.find("even_pairs")
FAULTS = {
    "samples_equal_the_oracle": {"answer": lambda task, prompt: [1 - (prompt[0] != prompt[-1])]},
    "sizes_are_legal": {"tokens": lambda task, n: n},
    "the_key_decides_the_examples": {"make": lambda task, key, n, n_max: EVEN.make(task, jax.random.key(0), n, n_max)},
    "examples_are_well_formed": {
        "make": lambda task, key, n, n_max: (b := EVEN.make(task, key, n, n_max))._replace(targets=b.targets + 7)
    },
    "the_answer_is_not_in_the_input": {
        "make": lambda task, key, n, n_max: (b := EVEN.make(task, key, n, n_max))._replace(score=b.valid)
    },
    "examples_are_scored": {
        "make": lambda task, key, n, n_max: (b := EVEN.make(task, key, n, n_max))._replace(score=b.score & False)
    },
    "floors_leave_room": {
        "make": lambda task, key, n, n_max: (b := EVEN.make(task, key, n, n_max))._replace(targets=b.targets * 0)
    },
}


@pytest.mark.ci
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_task_fails_its_property_by_name(name):
    good = checks.check(faulty(EVEN), only=name)
    assert good.ok, str(good)
    bad = checks.check(faulty(EVEN, **FAULTS[name]), only=name)
    assert not bad.ok and bad.failures[0].name == name and bad.failures[0].outcome.reason


def test_a_task_without_a_name_has_no_text_to_check():
    assert checks.check(faulty(EVEN), only=["the_text_names_the_task"]).findings[0].outcome.holds is None


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


@pytest.mark.parametrize(
    ("text", "only", "head"),
    [
        ("rope + alibi", ["G18", "its_text_names_it"], "rope + alibi: 3 hold, 0 fail"),
        ("even_pairs", ["samples_equal_the_oracle", "the_text_names_the_task"], "even_pairs: 2 hold, 0 fail"),
    ],
)
def test_our_own_are_checked_by_their_text(posenc, text, only, head):
    said = posenc("check", text, "--only", *only)
    assert said.code == 0 and said.out.startswith(head)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["new", "scheme", "there"], "'there.py'"),
        (["check", "broken:Nothing"], "'Nothing'"),
        (["check", "broken:number"], "scheme"),
    ],
)
def test_what_cannot_be_written_or_checked_is_one_sentence(refuse, tmp_path, fresh, words, named):
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "there.py").write_text("")
    assert named in refuse(*words)
