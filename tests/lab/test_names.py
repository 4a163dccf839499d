"""A worker starts by the ids of records, and trains again what damage lost."""

import shutil

import pytest

from posenc.lab.run.worker import Worker, work
from posenc.lab.store import folder as store
from posenc.lab.store import logs
from tests.lab import made
from tests.lab.test_sweep import Watch, trials


@pytest.fixture
def folder(whole, tmp_path):
    """A sweep of two groups, done."""
    return shutil.copytree(whole, tmp_path / "x")


def test_a_worker_runs_again_what_a_damaged_record_lost(folder):
    before, log = trials(folder), made.log_of(folder)
    log.write_bytes(log.read_bytes().replace(b'"correct":', b'"c0rrect":', 1))
    assert len(trials(folder)) == 2
    watch = Watch()
    assert work(folder, watch=watch) == 0
    assert len(watch.labels()) == 1 and trials(folder) == before and store.status(folder).problems == ()
    again = Watch()
    assert work(folder, watch=again) == 0 and again.labels() == []


def test_a_worker_reads_no_record_before_its_first_claim(folder, monkeypatch):
    left = []
    with monkeypatch.context() as patch:
        patch.setattr(logs, "record_of", None)
        patch.setattr(Worker, "carry_out", lambda worker, groups, recorded: left.append(groups) or 75)
        assert work(folder, watch=Watch()) == 75
    assert left == [{}]


def test_what_a_group_of_another_cut_recorded_is_not_trained_again(folder):
    """As where a plan was written again after some of its trials: names of groups then say nothing."""
    made.replanned(folder, lambda line: line | {"group": line["id"][:32]})
    watch = Watch()
    assert work(folder, watch=watch) == 0 and watch.labels() == []
