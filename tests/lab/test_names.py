"""A worker starts by the names of records, and the end of a large sweep packs them: no trial is lost by either."""

import errno

import pytest

from posenc.lab.figures.tables import table
from posenc.lab.results.results import load
from posenc.lab.store import compacting, packs, reading
from posenc.lab.store import folder as store
from posenc.lab.sweep import work as module
from posenc.lab.sweep.sweep import planned, sweep
from posenc.lab.sweep.work import work
from tests.lab.test_sweep import Watch, experiment, trials


@pytest.fixture
def folder(tmp_path):
    """A sweep of two groups, done."""
    planned(experiment(), tmp_path / "x")
    assert work(tmp_path / "x", watch=Watch()) == 0
    return tmp_path / "x"


def damage(path):
    path.write_bytes(path.read_bytes().replace(b'"done"', b'"d0ne"', 1))


def notes(watch):
    return [said[1] for said in watch.heard if said[0] == "note"]


@pytest.mark.ci
@pytest.mark.parametrize("packed", [False, True])
def test_a_worker_runs_again_what_a_damaged_record_lost(folder, packed):
    before = trials(folder)
    if packed:
        compacting.compact(folder)
    damage(packs.present(folder)[0] if packed else reading.singles(folder)[0])
    assert len(trials(folder)) == 2
    watch = Watch()
    assert work(folder, watch=watch) == 0
    assert len(watch.labels()) == 1 and trials(folder) == before
    assert notes(watch)[0] == "Records of 1 group are damaged, as `posenc status` says; running again."
    again = Watch()
    assert work(folder, watch=again) == 0 and again.labels() == []


@pytest.mark.parametrize("packed", [False, True])
def test_a_worker_reads_no_record_before_its_first_claim(folder, packed, monkeypatch):
    if packed:
        compacting.compact(folder)
    left = []
    with monkeypatch.context() as patch:
        patch.setattr(reading, "unsealed", None)
        patch.setattr(packs, "unsealed", None)
        patch.setattr(module, "carry_out", lambda folder, groups, *_, **__: left.append(groups) or 75)
        assert work(folder, watch=Watch()) == 75
    assert left == [{}]


def test_of_a_group_that_was_recorded_in_parts_the_records_are_read(folder):
    """As where a plan was written again after some of its trials: names then say nothing."""
    (path, *_) = reading.singles(folder)
    path.rename(path.with_name("0" * 32 + ".json"))
    watch = Watch()
    assert work(folder, watch=watch) == 0 and watch.labels() == []


@pytest.mark.ci
def test_the_end_of_a_large_sweep_packs_its_records_and_nothing_changes(tmp_path, monkeypatch):
    folder = tmp_path / "x"
    monkeypatch.setattr(compacting, "LEAST", 3)
    assert sweep(experiment(), folder, watch=Watch()) == 0
    assert len(reading.singles(folder)) == 2, "small runs stay readable files"
    before, text = trials(folder), table(load(folder), "csv")
    monkeypatch.setattr(compacting, "LEAST", 2)
    watch = Watch()
    assert sweep(experiment(), folder, watch=watch) == 0
    assert notes(watch) == ["Packed 2 records into 1 file."] and reading.singles(folder) == []
    assert trials(folder) == before and table(load(folder), "csv") == text
    again = Watch()
    assert sweep(experiment(), folder, watch=again) == 0 and again.labels() == [] and notes(again) == []
    more = Watch()
    assert sweep(experiment(seeds=(0, 1, 2)), folder, watch=more) == 0 and len(more.labels()) == 2
    assert len(trials(folder)) == 6 and len(packs.present(folder)) == 2


def test_a_disk_that_refuses_a_pack_costs_no_result(folder, monkeypatch):
    before = trials(folder)
    monkeypatch.setattr(compacting, "LEAST", 2)

    def full(*_):
        raise store.DiskError(errno.ENOSPC, "'x' cannot be written: the disk is full.")

    monkeypatch.setattr(compacting.disk, "write", full)
    monkeypatch.setattr(store, "ready", lambda folder: folder)
    watch = Watch()
    assert work(folder, watch=watch) == 0 and trials(folder) == before
    assert notes(watch) == ["The records are not packed: 'x' cannot be written: the disk is full."]
