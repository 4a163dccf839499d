"""Groups in training are saved while training goes on, whatever disks and other workers do.

`tests/lab/test_kills.py` does the same to real processes, by real signals, on real disks.
"""

import contextlib
import dataclasses
import errno
import json
import os
import shutil
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from posenc.lab.run import trainer
from posenc.lab.run.sweep import sweep
from posenc.lab.store import checkpoints, claims
from posenc.lab.store import folder as store
from tests.lab.interrupted import (
    ABOUT,
    ROWS,
    STAGED,
    STEPS,
    TOKEN,
    experiment,
    found,
    kept,
    notes,
    resumed,
    send,
    steps,
    stopped,
    until,
)
from tests.lab.test_sweep import BASE, Watch, trials


def test_two_checkpoints_are_kept_and_none_once_the_group_is_recorded(tmp_path, at_once):
    seen = []
    watch = Watch(lambda *_: seen.append(kept(tmp_path / "x")))
    assert sweep(experiment(), tmp_path / "x", watch=watch, save_every=1e-9) == 0
    assert seen == [[], [2], [2, 4], [4, 6], [6, 8], [8, 10]] and kept(tmp_path / "x") == []


def test_a_step_is_not_saved_again_by_the_process_that_goes_on_from_it(tmp_path, at_once, monkeypatch):
    stopped(tmp_path / "x", 4)
    seen, save = [], checkpoints.save
    monkeypatch.setattr(checkpoints, "save", lambda *given: (seen.append(given[3].step), save(*given))[1])
    resumed(tmp_path / "x", save_every=1e-9)
    assert seen == [6, 8, 10, 12]


def test_nothing_is_saved_before_it_is_time(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "save", lambda *_: pytest.fail("saved"))
    assert sweep(experiment(), tmp_path / "x", watch=Watch()) == 0


def test_training_goes_on_while_a_checkpoint_is_written(uninterrupted, tmp_path, monkeypatch):
    """The writer waits for a later step; a segment takes the memory of its state, so that a copy must be written."""
    later, save = threading.Event(), checkpoints.save

    def slow(*given):
        assert later.wait(20)
        return save(*given)

    monkeypatch.setattr(checkpoints, "save", slow)
    watch = until(8, lambda: (later.set(), send(signal.SIGTERM)()))
    assert sweep(experiment(), tmp_path / "x", watch=watch, save_every=1e-9) == 75
    assert kept(tmp_path / "x") == [2, 8]
    shutil.rmtree(found(tmp_path / "x")[1])
    assert steps(resumed(tmp_path / "x"))[0] == 4
    assert trials(tmp_path / "x") == uninterrupted()


def test_a_group_that_fails_twice_after_the_same_checkpoint_drops_it(uninterrupted, tmp_path, monkeypatch, at_once):
    stopped(tmp_path / "x", 6, every=1e-9)

    def attempt():
        with monkeypatch.context() as patch:
            patch.setattr(trainer, "_trial", lambda *_: 1 / 0)
            watch = Watch()
            assert sweep(experiment(), tmp_path / "x", watch=watch, save_every=1e9) == 1
        return notes(watch)

    first, second = attempt(), attempt()
    assert first[0] == second[0] == "goes on from step 6."
    assert "step 6" in second[1] and "dropped" in second[1] and len(first) == 2
    assert kept(tmp_path / "x") == [4]
    assert notes(resumed(tmp_path / "x")) == ["goes on from step 4."] and trials(tmp_path / "x") == uninterrupted()


def little_space(monkeypatch):
    monkeypatch.setattr(checkpoints, "free", lambda _: 20_000)


def fills_meanwhile(monkeypatch):
    import orbax.checkpoint as ocp

    def full(*_, **__):
        raise ValueError("RESOURCE_EXHAUSTED: No space left on device")

    monkeypatch.setattr(ocp.PyTreeCheckpointer, "save", full)


@pytest.mark.parametrize("disk", [little_space, fills_meanwhile])
def test_a_full_disk_is_reported_once_and_training_goes_on(uninterrupted, tmp_path, monkeypatch, at_once, disk):
    """It is full before a checkpoint is written, or fills meanwhile; of two groups the first says so."""
    disk(monkeypatch)
    watch, both = Watch(), experiment(BASE, dataclasses.replace(BASE, scheme="nope"))
    assert sweep(both, tmp_path / "x", watch=watch, save_every=1e-9) == 0
    note, advice = notes(watch)
    assert "step 2" in note and "disk" in note
    assert advice.startswith("nothing was learned, ") and advice.endswith("the sweep goes on.")
    assert uninterrupted().items() <= trials(tmp_path / "x").items()
    (said,) = notes(stopped(tmp_path / "y", 6))
    assert "step 6" in said and "disk" in said and "step 0" in said


def refusing(times, real, code=errno.ENOSPC):
    """A writer that the disk refuses so many times."""
    left = [times]

    def write(*given, **more):
        left[0] -= 1
        if left[0] >= 0:
            raise store.DiskError(code, os.strerror(code))
        return real(*given, **more)

    return write


@pytest.mark.parametrize("place", ["record", "parameters"])
def test_a_record_that_meets_a_full_disk_gets_the_space_of_the_checkpoints(
    uninterrupted, tmp_path, monkeypatch, at_once, place
):
    thing, name = (store, "write_record") if place == "record" else (checkpoints, "save_parameters")
    monkeypatch.setattr(thing, name, refusing(1, getattr(thing, name)))
    watch = Watch()
    assert sweep(experiment(), tmp_path / "x", watch=watch, save_every=1e-9, keep=True) == 0
    assert any("full" in note and "dropped" in note for note in notes(watch))
    assert trials(tmp_path / "x") == uninterrupted() and len(checkpoints.kept(tmp_path / "x")) == 2


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_record_that_cannot_be_written_at_all_costs_no_training(uninterrupted, tmp_path, monkeypatch, code):
    with monkeypatch.context() as patch, pytest.raises(store.DiskError):
        patch.setattr(store, "write_record", refusing(2, store.write_record, code))
        sweep(experiment(), tmp_path / "x", watch=Watch())
    assert kept(tmp_path / "x") == [STEPS]
    assert steps(resumed(tmp_path / "x")) == [] and trials(tmp_path / "x") == uninterrupted()


def test_a_log_that_cannot_be_written_ends_nothing(uninterrupted, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "log", refusing(10**6, None))
    watch = Watch()
    assert sweep(experiment(STAGED, BASE), tmp_path / "x", watch=watch) == 0
    said = [note for note in watch.notes() if "log" in note]
    assert ["full" in note for note in said] == [True]


def test_a_worker_whose_claim_was_taken_stops_and_waits_for_the_record_of_the_other(
    uninterrupted, tmp_path, monkeypatch
):
    """Stopped with its heart for a minute, as by SIGSTOP: its claim is taken, and the thief finishes the group."""
    folder = tmp_path / "x"
    monkeypatch.setattr("posenc.lab.run.worker.PAUSES", (0.0, 0.0))

    def silence():
        (path,) = (p for p in (folder / "claims").iterdir() if not p.name.startswith("."))
        content = json.loads(path.read_text())
        path.write_text(json.dumps({**content, "token": "thief"}))
        now = time.monotonic
        monkeypatch.setattr(claims, "time", SimpleNamespace(monotonic=lambda: now() + 61))

    watch = until(4, silence)
    real, tries = store.claim, []

    @contextlib.contextmanager
    def claim(place, group):
        tries.append(group)
        if tries.count(group) == 2 and group != "planning":  # the thief ends
            for path in (folder / "claims").iterdir():
                path.unlink()
            other = tmp_path / "other"
            resumed(other)
            for path in (other / "records").iterdir():
                shutil.copy(path, folder / "records")
        with real(place, group) as own:
            yield own

    monkeypatch.setattr(store, "claim", claim)
    assert sweep(experiment(), folder, watch=watch, save_every=1e-9) == 0
    heard = [said[0] for said in watch.heard]
    assert "taken" in heard and steps(watch) == [2, 4]
    assert [said[1:3] for said in watch.heard if said[0] == "finished"] == [
        ("rope · even_pairs", "done by another worker")
    ]
    assert len(list((folder / "records").iterdir())) == 1 and trials(folder) == uninterrupted()


def test_a_worker_never_removes_the_checkpoints_that_another_made_meanwhile(tmp_path, at_once):
    folder, seen = tmp_path / "x", []

    def look(label, step, *_):
        (group,) = checkpoints.groups(folder) or [None]
        if step == 4:
            checkpoints.save(folder, group, TOKEN, ABOUT, ROWS)
        seen.append([path.name.endswith(TOKEN) for path in found(folder, group)] if group else [])

    assert sweep(experiment(), folder, watch=Watch(look), save_every=1e-9) == 0
    assert [any(theirs) for theirs in seen] == [False] + [True] * 5 and len(seen[-1]) == 3
