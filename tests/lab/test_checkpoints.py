"""Groups in training are saved, and go on from there to the same trials, every point of their curves among them.

`tests/lab/test_kills.py` does the same to real processes, by real signals, on real disks.
"""

import contextlib
import dataclasses
import errno
import json
import os
import pickle
import shutil
import signal
import threading
import time
from importlib.metadata import version
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.run import Run
from posenc.lab.store import checkpoints, claims
from posenc.lab.store import folder as store
from posenc.lab.sweep import resuming, saving, worker
from posenc.lab.sweep.sweep import sweep
from posenc.lab.train import training
from tests.lab.test_sweep import BASE, PLAN, Watch, trials

STEPS = 12
STAGED = dataclasses.replace(BASE, then="0.5 kerple")


def experiment(*runs, **change):
    return Experiment("tiny", runs or (BASE,), dataclasses.replace(PLAN, steps=STEPS, **change))


def until(step, act, label=""):
    """A watch that acts at a step."""
    return Watch(lambda name, at, *_: act() if at == step and name.startswith(label) else None)


def send(number):
    return lambda: os.kill(os.getpid(), number)


def notes(watch):
    return [said[1].partition(": ")[2] for said in watch.heard if said[0] == "note" and " · " in said[1]]


def steps(watch):
    return [said[2] for said in watch.heard if said[0] == "step"]


def stopped(folder, step, *runs, every=1e9, code=75, **change):
    """A sweep that SIGTERM ended at a step."""
    watch = until(step, send(signal.SIGTERM))
    assert sweep(experiment(*runs, **change), folder, watch=watch, save_every=every) == code
    return watch


def resumed(folder, *runs, **how):
    watch, change = Watch(), {name: how.pop(name) for name in ("seeds", "segment") if name in how}
    assert sweep(experiment(*runs, **change), folder, watch=watch, **how) == 0
    return watch


def kept(folder):
    """The steps of all checkpoints."""
    return sorted(checkpoints.step_of(path) for group in checkpoints.groups(folder) for path in found(folder, group))


def found(folder, group=None):
    return checkpoints.found(folder, group or checkpoints.groups(folder)[0])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What an uninterrupted sweep records, by the texts of its runs."""
    known = {}

    def recorded(*runs):
        if runs not in known:
            folder = tmp_path_factory.mktemp("runs") / "whole"
            resumed(folder, *runs)
            known[runs] = trials(folder)
        return known[runs]

    return recorded


@pytest.fixture
def at_once(monkeypatch):
    """Checkpoints are written before training goes on, so that tests know which there are."""

    class Done(threading.Thread):
        def start(self):
            self.run()

        def join(self, timeout=None):
            pass

        def is_alive(self):
            return False

    monkeypatch.setattr(saving, "threading", SimpleNamespace(Thread=Done))


SIGNALS = {"SIGTERM": 75, "SIGUSR1": 75, "SIGUSR2": 75, "SIGHUP": 75, "SIGINT": 130}


@pytest.fixture
def heeded():
    """No signal is ignored from the start, as SIGHUP is under `nohup`."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGHUP, signal.SIGUSR1)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("name", SIGNALS)
def test_each_signal_saves_and_no_step_is_repeated(whole, tmp_path, heeded, name):
    watch = until(4, send(getattr(signal, name)))
    assert sweep(experiment(), tmp_path / "x", watch=watch) == SIGNALS[name]
    assert steps(watch) == [2, 4] and kept(tmp_path / "x") == [4] and trials(tmp_path / "x") == {}
    assert notes(watch) == ["saved at step 4."]
    again = resumed(tmp_path / "x")
    assert notes(again) == ["goes on from step 4."] and steps(again) == [6, 8, 10, 12]
    assert trials(tmp_path / "x") == whole()
    assert list((tmp_path / "x" / "ckpt").iterdir()) == []


def test_a_second_sigterm_is_like_the_first_and_a_second_sigint_ends_at_once(tmp_path):
    def twice(number):
        return lambda: (os.kill(os.getpid(), number), os.kill(os.getpid(), number))

    assert sweep(experiment(), tmp_path / "x", watch=until(4, twice(signal.SIGTERM))) == 75
    assert kept(tmp_path / "x") == [4]
    with pytest.raises(KeyboardInterrupt):
        sweep(experiment(), tmp_path / "y", watch=until(4, twice(signal.SIGINT)))
    assert kept(tmp_path / "y") == [] and claims.held(tmp_path / "y") == ()


def test_a_signal_that_nohup_has_ignored_stays_ignored(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert sweep(experiment(), tmp_path / "x", watch=until(4, send(signal.SIGHUP))) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


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


def test_training_goes_on_while_a_checkpoint_is_written(whole, tmp_path, monkeypatch):
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
    assert trials(tmp_path / "x") == whole()


@pytest.mark.parametrize("step", [4, 6, 8])
def test_training_in_two_stages_goes_on_before_at_and_after_the_change(whole, tmp_path, step):
    stopped(tmp_path / "x", step, STAGED)
    again = resumed(tmp_path / "x", STAGED)
    assert notes(again)[0] == f"goes on from step {step}." and steps(again)[0] == step + 2
    assert sum("start anew" in note for note in notes(again)) == (step <= 6)
    assert trials(tmp_path / "x") == whole(STAGED)


@pytest.mark.parametrize("lanes", ["map:1", "map:2", "vmap:1"])
def test_other_devices_go_on_from_a_checkpoint(whole, tmp_path, lanes):
    stopped(tmp_path / "x", 6, seeds=(0, 1, 2))
    assert steps(resumed(tmp_path / "x", seeds=(0, 1, 2), lanes=lanes)) == [8, 10, 12]
    for id, trial in trials(tmp_path / "x").items():
        if id in whole() and lanes != "vmap:1":
            assert trial == whole()[id]


def test_one_seed_goes_on_from_the_checkpoint_of_two_and_the_other_later(whole, tmp_path):
    stopped(tmp_path / "x", 6)
    for seed in (1, 0):
        again = resumed(tmp_path / "x", seeds=(seed,))
        assert notes(again)[:1] == (["goes on from step 6."] if seed else [])
    assert trials(tmp_path / "x") == whole()


def test_a_checkpoint_without_all_trials_is_not_used_and_stays_for_its_own(whole, tmp_path):
    resumed(tmp_path / "plan", seeds=(0, 1))
    (tmp_path / "x").mkdir()
    shutil.copy(tmp_path / "plan" / "plan.jsonl", tmp_path / "x")
    stopped(tmp_path / "x", 6, seeds=(1,))
    again = resumed(tmp_path / "x")
    assert notes(again) == [
        "the checkpoint at step 6 is not used: it lacks 1 of the 2 trials.",
        "begins again at step 0.",
    ]
    assert trials(tmp_path / "x") == whole()


def test_going_on_compiles_nothing_that_training_would_not(tmp_path):
    stopped(tmp_path / "x", 6)
    kinds = training.initial_states, training.train_segment
    for f in kinds:
        f.clear_cache()
    resumed(tmp_path / "x")
    assert [f._cache_size() for f in kinds] == [0, 1]


def test_seconds_add_up_over_restarts(tmp_path):
    stopped(tmp_path / "x", 6)
    (path,) = found(tmp_path / "x")
    about = checkpoints.manifest(path)
    rewritten(path, seconds={"compile": 1000.0, "train": 500.0})
    assert set(about.seconds) == {"compile", "train"}
    resumed(tmp_path / "x")
    (record,) = store.read_records(tmp_path / "x").records
    assert record.provenance["seconds"]["compile"] > 1000 and record.provenance["seconds"]["train"] > 500


def rewritten(path, **change):
    """Another manifest, sealed again."""
    about = dataclasses.replace(checkpoints.manifest(path), **change)
    (path / checkpoints.MANIFEST).write_bytes(checkpoints._sealed(about, checkpoints._sums(path)))


def test_a_state_of_any_types_is_packed_and_unpacked_to_the_bit():
    draw = np.random.default_rng(0).integers
    state = {
        "float": draw(0, 2**32, (4, 3, 2), dtype=np.uint32).view(np.float32),  # NaNs of all kinds among them
        "half": jnp.asarray(draw(0, 9, (4, 5)), jnp.bfloat16),
        "count": np.arange(4, dtype=np.int32),
        "none": np.zeros((4, 0, 2), np.float32),
        "flag": np.array([True, False, True, True]),
    }
    rows = resuming.packed(state, 3)
    assert rows.shape == (3, 24 + 10 + 4 + 0 + 1) == (3, resuming.row_size(state, 3))
    template = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, state))
    found = resuming.unpacked(rows[[2, 0, 0]], template)
    for name, array in state.items():
        assert found[name].dtype == array.dtype and found[name].tobytes() == np.asarray(array)[[2, 0, 0]].tobytes()


def test_a_large_state_is_saved_in_pieces(tmp_path):
    """Orbax cuts by a divisor: a prime number of bytes would be as many pieces."""
    assert checkpoints.width(2**25, 2) == 2**25 and checkpoints.width(2**25 + 1, 2) == 2**25 + 2**20
    rows = np.zeros((2, checkpoints.width(2**25 + 1, 2)), np.uint8)
    rows[:, :: 2**20] = 7
    path = checkpoints.save(tmp_path, "g", TOKEN, ABOUT, rows)
    assert np.array_equal(checkpoints.rows(path), rows)
    assert len([p for p in path.rglob("*") if p.is_file()]) < 20


# Damage


ROWS = np.random.default_rng(0).integers(0, 256, (2, 500), dtype=np.uint8)
ABOUT = checkpoints.Manifest(
    **{"step": 40, "stage": 0, "program": {"jax": "1"}, "ids": ("a", "b"), "leaves": ("x float32[3]", "y int32[]")},
    **{"losses": {"a": [0.1 + 0.2, None], "b": [1e-30, 2.5]}, "seconds": {"train": 1.5}},
)
TOKEN = "0123456789abcdef"


@pytest.fixture
def saved(tmp_path):
    return checkpoints.save(tmp_path, "g", TOKEN, ABOUT, ROWS)


def test_what_is_saved_comes_back_bit_for_bit_and_executes_nothing(tmp_path, saved, monkeypatch):
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, lambda *_, **__: pytest.fail("unpickled"))
    assert checkpoints.manifest(saved) == ABOUT and found(tmp_path, "g") == [saved]
    np.testing.assert_array_equal(checkpoints.rows(saved), ROWS)
    assert str(tmp_path).encode() not in b"".join(p.read_bytes() for p in saved.rglob("*") if p.is_file())


def flip(path):
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


HURT = {
    "flip": flip,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "delete": lambda path: path.unlink(),
}


@pytest.mark.parametrize("hurt", HURT)
def test_each_damaged_file_is_named(saved, hurt):
    every = sorted(path for path in saved.rglob("*") if path.is_file() and path.stat().st_size)
    assert len(every) >= 8
    for path in every:
        content = path.read_bytes()
        HURT[hurt](path)
        with pytest.raises(ValueError, match=path.name):
            checkpoints.manifest(saved)
        path.write_bytes(content)
    checkpoints.manifest(saved)


def test_a_file_more_and_a_link_are_named(saved, tmp_path):
    (saved / "state" / "more").write_text("")
    with pytest.raises(ValueError, match="state/more does not match"):
        checkpoints.manifest(saved)
    (saved / "state" / "more").unlink()
    (tmp_path / "outside").write_bytes((saved / "state" / "_METADATA").read_bytes())
    (saved / "state" / "_METADATA").unlink()
    (saved / "state" / "_METADATA").symlink_to(tmp_path / "outside")
    with pytest.raises(ValueError, match="_METADATA is a link"):
        checkpoints.manifest(saved)
    saved.rename(tmp_path / "moved")
    saved.symlink_to(tmp_path / "moved")
    with pytest.raises(ValueError, match="it is a link"):
        checkpoints.manifest(saved)


def test_paths_in_a_manifest_lead_nowhere(saved, tmp_path):
    (tmp_path / "outside").write_text("x")
    files = checkpoints._sums(saved) | {"../../../outside": checkpoints._sum(b"x")}
    (saved / checkpoints.MANIFEST).write_bytes(checkpoints._sealed(ABOUT, files))
    with pytest.raises(ValueError, match="outside is missing"):
        checkpoints.manifest(saved)


@pytest.mark.parametrize(
    "content", [b"[]", b"7", b"{}", b"[" * 10**5, pickle.dumps({"step": 40}), b'{"step": 40}'], ids=range(6)
)
def test_a_manifest_that_is_something_else_is_named(saved, content):
    (saved / checkpoints.MANIFEST).write_bytes(content)
    with pytest.raises(ValueError, match="manifest.json"):
        checkpoints.manifest(saved)


def test_a_checkpoint_under_another_name_is_named(saved):
    with pytest.raises(ValueError, match="is of step 40"):
        checkpoints.manifest(saved.rename(saved.with_name(f"80.{TOKEN}")))


@pytest.mark.parametrize("damaged", [1, 2])
def test_the_older_checkpoint_or_step_0_is_taken_instead_of_a_damaged_one(whole, tmp_path, at_once, damaged):
    stopped(tmp_path / "x", 6, every=1e-9)
    assert kept(tmp_path / "x") == [4, 6]
    for path in found(tmp_path / "x")[-damaged:]:
        flip(next(path.glob("state/d/*")))
    again = resumed(tmp_path / "x")
    assert [note.split(" is left out: state/d/")[0] for note in notes(again)[:damaged]] == [
        f"the checkpoint at step {step}" for step in (6, 4)[:damaged]
    ]
    assert notes(again)[damaged:] == ["goes on from step 4." if damaged == 1 else "begins again at step 0."]
    assert steps(again)[0] == (6 if damaged == 1 else 2) and trials(tmp_path / "x") == whole()


def test_a_damaged_checkpoint_is_the_first_to_be_removed(tmp_path, at_once):
    stopped(tmp_path / "x", 6, every=1e-9)
    flip(next(found(tmp_path / "x")[-1].glob("state/d/*")))
    assert [p.name for p in (tmp_path / "x" / "ckpt").glob("*/.*")] == []
    stopped(tmp_path / "x", 6)
    assert [checkpoints.manifest(path).step for path in found(tmp_path / "x")] == [4, 6]


def test_what_a_kill_left_half_written_is_removed(tmp_path):
    stopped(tmp_path / "x", 6)
    (group,) = checkpoints.groups(tmp_path / "x")
    half = tmp_path / "x" / "ckpt" / group / f".8.{TOKEN}.tmp"
    gone = tmp_path / "x" / "ckpt" / ".gone.tmp"
    for place in (half, gone):
        (place / "state").mkdir(parents=True)
    stopped(tmp_path / "x", 8)
    assert not half.exists() and not gone.exists()


def test_checkpoints_of_a_recorded_group_are_removed_by_the_next_sweep(tmp_path, monkeypatch):
    """As a kill between the record and the removal leaves them."""
    stopped(tmp_path / "x", 6)
    with monkeypatch.context() as patch:
        patch.setattr(saving.Saver, "drop", lambda self: None)
        resumed(tmp_path / "x")
    assert kept(tmp_path / "x") == [6]
    assert resumed(tmp_path / "x").labels() == [] and kept(tmp_path / "x") == []


# Other programs


def other(library):
    """The versions of libraries, but for one."""
    return lambda name: "9.9" if name == library else version(name)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda patch: patch.setattr(resuming, "version", other("jax")), "jax was "),
        (lambda patch: patch.setattr(resuming, "version", other("optax")), "optax was "),
        (lambda patch: patch.setattr("posenc.lab.train.device.__version__", "9.9"), "posenc was "),
    ],
)
def test_a_checkpoint_of_other_versions_is_not_used(whole, tmp_path, monkeypatch, change, said):
    stopped(tmp_path / "x", 6)
    change(monkeypatch)
    again = resumed(tmp_path / "x")
    assert notes(again)[0].startswith(f"the checkpoint at step 6 is not used: it is of another run ({said}")
    assert notes(again)[1] == "begins again at step 0." and steps(again)[0] == 2
    assert trials(tmp_path / "x") == whole()


def test_other_revisions_and_sources_are_other_trials_whose_checkpoints_stay(tmp_path, monkeypatch):
    from posenc.schemes.rope import RoPE

    stopped(tmp_path / "x", 6)
    monkeypatch.setattr(RoPE, "revision", RoPE.revision + 1)
    again = resumed(tmp_path / "x")
    assert steps(again)[0] == 2 and kept(tmp_path / "x") == [6]
    assert [said[1] for said in again.heard if said[0] == "note"][0] == (
        "1 group of trials with checkpoints in ckpt/ are not part of this sweep: their settings, revisions or sources "
        "differ. They stay."
    )


# Failures, full disks, other workers


def test_a_group_that_fails_twice_after_the_same_checkpoint_drops_it(whole, tmp_path, monkeypatch, at_once):
    stopped(tmp_path / "x", 6, every=1e-9)

    def attempt():
        with monkeypatch.context() as patch:
            patch.setattr(worker, "_trial", lambda *_: 1 / 0)
            watch = Watch()
            assert sweep(experiment(), tmp_path / "x", watch=watch, save_every=1e9) == 1
        return notes(watch)

    first, second = attempt(), attempt()
    assert first[0] == second[0] == "goes on from step 6."
    assert second[1] == "failed twice after the checkpoint at step 6, which is dropped." and len(first) == 2
    assert kept(tmp_path / "x") == [4]
    assert notes(resumed(tmp_path / "x")) == ["goes on from step 4."] and trials(tmp_path / "x") == whole()


def test_a_full_disk_is_reported_once_and_training_goes_on(whole, tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(checkpoints, "free", lambda _: 20_000)
    watch, both = Watch(), experiment(BASE, dataclasses.replace(BASE, scheme="nope"))
    assert sweep(both, tmp_path / "x", watch=watch, save_every=1e-9) == 0
    (note,) = notes(watch)
    assert note.startswith("no checkpoint at step 2: the disk has less than ") and note.endswith("; training goes on.")
    assert whole().items() <= trials(tmp_path / "x").items()
    watch = stopped(tmp_path / "y", 6)
    assert notes(watch)[-1].startswith("no checkpoint at step 6: ") and notes(watch)[-1].endswith("is of step 0.")


def test_a_disk_that_fills_while_a_checkpoint_is_written_is_reported_once(whole, tmp_path, monkeypatch, at_once):
    import orbax.checkpoint as ocp

    def full(*_, **__):
        raise ValueError("RESOURCE_EXHAUSTED: No space left on device")

    monkeypatch.setattr(ocp.PyTreeCheckpointer, "save", full)
    watch = Watch()
    assert sweep(experiment(), tmp_path / "x", watch=watch, save_every=1e-9) == 0
    assert notes(watch) == ["no checkpoint at step 2: the disk is full; training goes on."]
    assert trials(tmp_path / "x") == whole()
    watch = stopped(tmp_path / "y", 6)
    assert notes(watch) == ["no checkpoint at step 6: the disk is full; the last one is of step 0."]


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
    whole, tmp_path, monkeypatch, at_once, place
):
    thing, name = (store, "write_record") if place == "record" else (worker.parameters, "save")
    monkeypatch.setattr(thing, name, refusing(1, getattr(thing, name)))
    watch = Watch()
    assert sweep(experiment(), tmp_path / "x", watch=watch, save_every=1e-9, keep=True) == 0
    assert "the disk is full, so its checkpoints are dropped." in notes(watch)
    assert trials(tmp_path / "x") == whole() and len(worker.parameters.kept(tmp_path / "x")) == 2


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_record_that_cannot_be_written_at_all_costs_no_training(whole, tmp_path, monkeypatch, code):
    with monkeypatch.context() as patch, pytest.raises(store.DiskError):
        patch.setattr(store, "write_record", refusing(2, store.write_record, code))
        sweep(experiment(), tmp_path / "x", watch=Watch())
    assert kept(tmp_path / "x") == [STEPS]
    assert steps(resumed(tmp_path / "x")) == [] and trials(tmp_path / "x") == whole()


def test_a_log_that_cannot_be_written_ends_nothing(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "log", refusing(10**6, None))
    watch = Watch()
    assert sweep(experiment(STAGED, BASE), tmp_path / "x", watch=watch) == 0
    said = [said[1] for said in watch.heard if said[0] == "note" and "log" in said[1]]
    assert said == ["The log cannot be written (the disk is full); training goes on without it."]


def test_a_worker_whose_claim_was_taken_stops_and_waits_for_the_record_of_the_other(whole, tmp_path, monkeypatch):
    """Stopped with its heart for a minute, as by SIGSTOP: its claim is taken, and the thief finishes the group."""
    folder = tmp_path / "x"
    monkeypatch.setattr("posenc.lab.sweep.loop.PAUSES", (0.0, 0.0))

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
    assert len(list((folder / "records").iterdir())) == 1 and trials(folder) == whole()


def test_a_worker_never_removes_the_checkpoints_that_another_made_meanwhile(tmp_path, at_once):
    folder, seen = tmp_path / "x", []

    def look(label, step, *_):
        (group,) = checkpoints.groups(folder) or [None]
        if step == 4:
            checkpoints.save(folder, group, TOKEN, ABOUT, ROWS)
        seen.append([path.name.endswith(TOKEN) for path in found(folder, group)] if group else [])

    assert sweep(experiment(), folder, watch=Watch(look), save_every=1e-9) == 0
    assert [any(theirs) for theirs in seen] == [False] + [True] * 5 and len(seen[-1]) == 3


# Plans, files, folders


def test_the_length_of_segments_is_that_of_the_plan(tmp_path):
    stopped(tmp_path / "x", 6)
    assert {line.segment for line in store.read_plan(tmp_path / "x")} == {2}
    with pytest.raises(ValueError, match="is planned here with segment 2, not 4; use a new --name"):
        resumed(tmp_path / "x", segment=4)


def test_an_older_plan_takes_the_default_length_of_segments_and_says_so(tmp_path):
    stopped(tmp_path / "x", 6)
    plan = tmp_path / "x" / "plan.jsonl"
    lines = [json.loads(line) for line in plan.read_text().splitlines()]
    plan.write_text("".join(json.dumps({k: v for k, v in line.items() if k != "segment"}) + "\n" for line in lines))
    again = resumed(tmp_path / "x")
    assert again.heard[0] == (
        "note",
        "An older posenc planned trials here without the length of segments; it is the default, 12.",
    )
    assert "segment was 2 and is 12" in notes(again)[0]
    assert {tuple(t.curve["step"]) for t in trials(tmp_path / "x").values()} == {(12,)}


@pytest.mark.parametrize("segment", [0, -2, 5])
def test_a_plan_whose_segments_do_not_divide_is_refused(tmp_path, segment):
    stopped(tmp_path / "x", 6)
    plan = tmp_path / "x" / "plan.jsonl"
    plan.write_text(plan.read_text().replace('"segment":2', f'"segment":{segment}'))
    with pytest.raises(ValueError, match="'segment' as a divisor of its 12 steps; restore the file"):
        store.read_plan(tmp_path / "x")


def test_every_experiment_that_added_trials_keeps_its_file(tmp_path):
    folder = tmp_path / "x"
    for seeds in ((0,), (1,), (0,), (2,)):
        resumed(folder, seeds=seeds)
    texts = [(folder / name).read_text() for name in ("sweep.toml", "sweep-2.toml", "sweep-3.toml")]
    assert ["seeds = [0]" in texts[0], "seeds = [1]" in texts[1], "seeds = [2]" in texts[2]] == [True] * 3
    assert len(list(folder.glob("sweep*.toml"))) == 3


def test_a_folder_that_was_moved_goes_on(whole, tmp_path):
    stopped(tmp_path / "x", 6)
    (tmp_path / "x").rename(tmp_path / "moved")
    assert steps(resumed(tmp_path / "moved"))[0] == 8 and trials(tmp_path / "moved") == whole()


def test_a_clock_one_hour_off_changes_nothing(whole, tmp_path, monkeypatch):
    stopped(tmp_path / "x", 6)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 3600)
    assert steps(resumed(tmp_path / "x"))[0] == 8 and trials(tmp_path / "x") == whole()


def test_a_run_that_diverged_goes_on_with_its_curve(tmp_path):
    """Losses that are not finite are null in a manifest, as they are in a record."""
    wild = Run(**{**vars(BASE), "depth": 1})
    change = {"lr": (1e30,), "clip": 1e30}
    for name in ("whole", "cut"):
        if name == "cut":
            stopped(tmp_path / name, 6, wild, **change)
        assert sweep(experiment(wild, **change), tmp_path / name, watch=Watch()) == 0
    assert {t.outcome for t in trials(tmp_path / "cut").values()} == {"diverged"}
    assert trials(tmp_path / "cut") == trials(tmp_path / "whole")
