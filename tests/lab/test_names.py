"""A worker starts by the heads of records, and trains again what damage lost."""

import json
import shutil

import pytest

from posenc.lab.run import worker as module
from posenc.lab.run.worker import work
from posenc.lab.store import folder as store
from posenc.lab.store import logs, reading
from tests.lab import made
from tests.lab.test_sweep import Watch, trials


@pytest.fixture
def folder(whole, tmp_path):
    """A sweep of two groups, done."""
    return shutil.copytree(whole, tmp_path / "x")


def alone(folder):
    """Give each record a file of its own, as older versions did; returns the files."""
    log = made.log_of(folder)
    contents = [json.loads(logs.unseal(line).content) for line in log.read_bytes().splitlines()]
    log.unlink()
    return sorted(made.older_record(folder, content) for content in contents)


def damage(path):
    path.write_bytes(path.read_bytes().replace(b'"correct":', b'"c0rrect":', 1))


@pytest.mark.parametrize("older", [False, True])
def test_a_worker_runs_again_what_a_damaged_record_lost(folder, older):
    before = trials(folder)
    damage(alone(folder)[0] if older else made.log_of(folder))
    assert len(trials(folder)) == 2
    watch = Watch()
    assert work(folder, watch=watch) == 0
    assert len(watch.labels()) == 1 and trials(folder) == before and store.status(folder).problems == ()
    said = ["Records of 1 group are damaged, as `posenc status` says; running again."] * older
    assert [note for note in watch.notes() if "damaged" in note] == said
    again = Watch()
    assert work(folder, watch=again) == 0 and again.labels() == []


@pytest.mark.parametrize("older", [False, True])
def test_a_worker_reads_no_record_before_its_first_claim(folder, older, monkeypatch):
    if older:
        alone(folder)
    left = []
    with monkeypatch.context() as patch:
        patch.setattr(reading, "unsealed", None)
        patch.setattr(reading, "record_of", None)
        patch.setattr(module, "carry_out", lambda folder, groups, *_, **__: left.append(groups) or 75)
        assert work(folder, watch=Watch()) == 75
    assert left == [{}]


def test_of_a_group_that_was_recorded_in_parts_the_records_are_read(folder):
    """As where a plan was written again after some of its trials: names then say nothing."""
    (path, *_) = alone(folder)
    path.rename(path.with_name("0" * 32 + ".json"))
    watch = Watch()
    assert work(folder, watch=watch) == 0 and watch.labels() == []
