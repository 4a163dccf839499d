"""The file of a scheme or task of the user's own is part of a trial's identity, and stored runs import nothing."""

import dataclasses
import importlib
import sys

import pytest

from posenc.core.scheme import SCHEMES
from posenc.lab.results.results import load
from posenc.lab.run import plan
from posenc.lab.spec.run import Knobs, Run
from posenc.lab.train.training import resolve
from tests.lab import made

RUN = Run(task="even_pairs", scheme="mine:Mine(rate=0.5)", width=8, depth=1, heads=2, hidden=8, batch=4, length=4)
SCHEME = """
from posenc import Scheme

class Mine(Scheme, name="mine"):
    "A penalty, linear in distance."
    reads = "distance"
    rate: float = {rate}
    def score(self, p, s, tile):
        return s - self.rate * abs(tile.distance).astype(s.dtype)
"""
TASK = """
from posenc.tasks import Layout, Sizes, Task, parse

class Odd(Task, name="odd"):
    "Even pairs, by another name."
    layout, alphabet, classes, sizes = Layout.CLASSIFY, 2, 2, Sizes(2, (2, 8), (12, 16))
    def tokens(self, n):
        return n + 1
    def make(self, key, n, n_max):
        return parse("even_pairs").make(key, n, n_max)
    def answer(self, prompt):
        return [int(prompt[0] != prompt[-1])]
"""


@pytest.fixture
def mine(tmp_path, monkeypatch, fresh):
    """`mine(rate=0.1)` writes mine.py and imports it as a new process would."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text=SCHEME, name="mine", **settings):
        fresh()
        (tmp_path / f"{name}.py").write_text(text.format(**settings))
        importlib.invalidate_caches()
        importlib.import_module(name)

    return write


def written(run=RUN):
    return plan.written(resolve(run))


def identity(run=RUN):
    return plan.identity(resolve(run), Knobs(), 4)


def test_an_edited_scheme_is_another_trial_and_the_same_file_the_same(mine):
    mine(rate=0.1)
    before = identity()
    mine(rate=0.1, text=SCHEME.replace("- self.rate", "- 2 * self.rate"))
    assert identity() != before, "an edit that changes no setting"
    mine(rate=0.1)
    assert identity() == before == identity(dataclasses.replace(RUN, scheme="mine(rate=0.5)"))
    assert list(written()["sources"]) == ["mine:Mine"] and "sources" not in written(
        dataclasses.replace(RUN, scheme="t5")
    )


def test_every_part_counts_also_second_schemes_and_tasks_within_tasks(mine):
    mine(TASK, "odd")
    importlib.import_module("odd")
    for task in ("odd:Odd", "shifted(task='odd:Odd', size=4)"):
        assert list(written(dataclasses.replace(RUN, task=task, scheme="rope"))["sources"]) == ["odd:Odd"]
    mine(rate=0.1)
    for scheme in ("rope + mine:Mine", "[mine:Mine]", "mine:Mine @ random_sorted(64)"):
        assert list(written(dataclasses.replace(RUN, scheme=scheme))["sources"]) == ["mine:Mine"]
    assert list(written(dataclasses.replace(RUN, scheme="rope", then="0.5 mine:Mine"))["sources"]) == ["mine:Mine"]


def test_the_digest_is_of_the_file_that_was_imported(mine, tmp_path):
    """Not of what somebody has written since, which no process runs yet."""
    mine(rate=0.1)
    before = written()["sources"]
    (tmp_path / "mine.py").write_text(SCHEME.format(rate=0.25))
    assert written()["sources"] == before
    importlib.reload(sys.modules["mine"])
    assert written()["sources"] != before


def test_what_an_installed_package_provides_is_told_apart_by_its_revision(mine, monkeypatch):
    entry = type("Entry", (), {"name": "mine", "value": "mine"})
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **chosen: [entry])
    mine(rate=0.1)
    assert "sources" not in written()
    entry.value = "another.package"
    with pytest.raises(ValueError, match="'mine:Mine' is named 'mine', as is 'another.package' of a package; rename"):
        SCHEMES.find("mine:Mine")


def test_a_stored_run_imports_nothing_and_notices_another_file(mine, fresh):
    mine(rate=0.1)
    stored = written()
    assert plan.planned_run(stored).scheme == resolve(RUN).scheme
    fresh()
    with pytest.raises(ValueError, match=r"was trained with 'mine:Mine'.*add --import mine to the command"):
        plan.planned_run(stored)
    assert "mine" not in sys.modules
    mine(rate=0.125)
    with pytest.raises(ValueError, match=r"The file of 'mine:Mine' has changed since mine\(rate=0.5\) on even_pairs"):
        plan.planned_run(stored)
    with pytest.raises(ValueError, match="are not a table of digests"):
        plan.planned_run({**stored, "sources": ["mine:Mine"]})


def test_trials_of_two_files_are_two_rows_and_reading_imports_nothing(tmp_path, monkeypatch, fresh):
    monkeypatch.setenv("POSENC_RUNS", str(tmp_path))
    (tmp_path / "mine.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    records = [made.rope(label="mine"), made.rope(label="alibi")]
    records += [made.rope(label="mine", seeds=(3, 4, 5))]
    for number in (0, 2):
        records[number]["run"]["sources"] = {"mine:Mine": f"{number}abcdef0123"}
    labels = {row.scheme for row in load(made.filled("two", records)).rows()}
    assert labels == {"alibi", "mine (file of mine:Mine=0abcdef0)", "mine (file of mine:Mine=2abcdef0)"}
    assert {row.scheme for row in load(made.filled("one", records[:2])).rows()} == {"alibi", "mine"}
    assert "mine" not in sys.modules
