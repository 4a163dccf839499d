"""Groups go on from where they were saved to the same trials, every point of their curves among them.

`tests/lab/test_kills.py` does the same to real processes, by real signals, on real disks.
"""

import os
import shutil
import signal
import time
from importlib.metadata import version

import pytest

from posenc.lab.compiling import count_compilations
from posenc.lab.run import saving
from posenc.lab.run.sweep import sweep
from posenc.lab.spec.run import Run
from posenc.lab.store import checkpoints, claims
from posenc.lab.store import folder as store
from posenc.lab.train import training
from tests.lab.interrupted import STAGED, experiment, found, kept, notes, resumed, send, steps, stopped, until
from tests.lab.test_sweep import BASE, Watch, trials

SIGNALS = {"SIGTERM": 75, "SIGUSR1": 75, "SIGUSR2": 75, "SIGHUP": 75, "SIGINT": 130}


@pytest.fixture
def heeded():
    """No signal is ignored from the start, as SIGHUP is under `nohup`."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGHUP, signal.SIGUSR1)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("name", SIGNALS)
def test_each_signal_saves_and_no_step_is_repeated(uninterrupted, tmp_path, heeded, name):
    watch = until(4, send(getattr(signal, name)))
    assert sweep(experiment(), tmp_path / "x", watch=watch) == SIGNALS[name]
    assert steps(watch) == [2, 4] and kept(tmp_path / "x") == [4] and trials(tmp_path / "x") == {}
    assert notes(watch) == ["saved at step 4."]
    again = resumed(tmp_path / "x")
    assert notes(again) == ["goes on from step 4."] and steps(again) == [6, 8, 10, 12]
    assert trials(tmp_path / "x") == uninterrupted()
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


@pytest.mark.parametrize("step", [4, 6, 8])
def test_training_in_two_stages_goes_on_before_at_and_after_the_change(uninterrupted, tmp_path, step):
    stopped(tmp_path / "x", step, STAGED)
    again = resumed(tmp_path / "x", STAGED)
    assert notes(again)[0] == f"goes on from step {step}." and steps(again)[0] == step + 2
    assert sum("start anew" in note for note in notes(again)) == (step <= 6)
    assert trials(tmp_path / "x") == uninterrupted(STAGED)


@pytest.mark.parametrize("lanes", ["map:1", "map:2", "vmap:1"])
def test_other_devices_go_on_from_a_checkpoint(uninterrupted, tmp_path, lanes):
    stopped(tmp_path / "x", 6, seeds=(0, 1, 2))
    assert steps(resumed(tmp_path / "x", seeds=(0, 1, 2), lanes=lanes)) == [8, 10, 12]
    for id, trial in trials(tmp_path / "x").items():
        if id in uninterrupted() and lanes != "vmap:1":
            assert trial == uninterrupted()[id]


def test_one_seed_goes_on_from_the_checkpoint_of_two_and_the_other_later(uninterrupted, tmp_path):
    stopped(tmp_path / "x", 6)
    for seed in (1, 0):
        again = resumed(tmp_path / "x", seeds=(seed,))
        assert notes(again)[:1] == (["goes on from step 6."] if seed else [])
    assert trials(tmp_path / "x") == uninterrupted()


def test_a_checkpoint_without_all_trials_is_not_used_and_stays_for_its_own(uninterrupted, tmp_path):
    resumed(tmp_path / "plan", seeds=(0, 1))
    (tmp_path / "x").mkdir()
    shutil.copy(tmp_path / "plan" / "plan.jsonl", tmp_path / "x")
    stopped(tmp_path / "x", 6, seeds=(1,))
    again = resumed(tmp_path / "x")
    (why, begun) = notes(again)
    assert "step 6" in why and "1 of the 2 trials" in why and "step 0" in begun
    assert trials(tmp_path / "x") == uninterrupted()


def test_going_on_compiles_nothing_that_training_would_not(tmp_path):
    stopped(tmp_path / "x", 6)
    for f in (training.initial_states, training.train_segment):
        f.clear_cache()
    with count_compilations() as found:
        resumed(tmp_path / "x")
    assert "train_segment" in found.each and "initial_states" not in found.each


def test_seconds_add_up_over_restarts(tmp_path):
    stopped(tmp_path / "x", 6)
    (path,) = found(tmp_path / "x")
    about = checkpoints.manifest(path)
    assert set(about.seconds) == {"compile", "train"}
    longer = vars(about) | {"seconds": {"compile": 1000.0, "train": 500.0}}
    (path / checkpoints.MANIFEST).write_bytes(checkpoints._sealed(longer, checkpoints._sums(path)))
    resumed(tmp_path / "x")
    (record,) = store.read_records(tmp_path / "x").records
    assert record.provenance["seconds"]["compile"] > 1000 and record.provenance["seconds"]["train"] > 500


def other(library):
    """The versions of libraries, but for one."""
    return lambda name: "9.9" if name == library else version(name)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda patch: patch.setattr(saving, "version", other("jax")), "jax was "),
        (lambda patch: patch.setattr(saving, "version", other("optax")), "optax was "),
        (lambda patch: patch.setattr("posenc.lab.train.device.__version__", "9.9"), "posenc was "),
    ],
)
def test_a_checkpoint_of_other_versions_is_not_used(uninterrupted, tmp_path, monkeypatch, change, said):
    stopped(tmp_path / "x", 6)
    change(monkeypatch)
    again = resumed(tmp_path / "x")
    assert "step 6" in notes(again)[0] and f"({said}" in notes(again)[0]
    assert "step 0" in notes(again)[1] and steps(again)[0] == 2
    assert trials(tmp_path / "x") == uninterrupted()


def test_other_revisions_and_sources_are_other_trials_whose_checkpoints_stay(tmp_path, monkeypatch):
    from posenc.schemes.rope import RoPE

    stopped(tmp_path / "x", 6)
    monkeypatch.setattr(RoPE, "revision", RoPE.revision + 1)
    again = resumed(tmp_path / "x")
    assert steps(again)[0] == 2 and kept(tmp_path / "x") == [6]
    assert again.notes()[0].startswith("1 group ") and "ckpt/" in again.notes()[0]


def test_the_length_of_segments_is_that_of_the_plan(tmp_path):
    stopped(tmp_path / "x", 6)
    assert {line.segment for line in store.read_plan(tmp_path / "x")} == {2}
    with pytest.raises(ValueError, match="segment 2.* 4"):
        resumed(tmp_path / "x", segment=4)


def test_every_experiment_that_added_trials_keeps_its_file(tmp_path):
    folder = tmp_path / "x"
    for seeds in ((0,), (1,), (0,), (2,)):
        resumed(folder, seeds=seeds)
    texts = [(folder / name).read_text() for name in ("sweep.toml", "sweep-2.toml", "sweep-3.toml")]
    assert ["seeds = [0]" in texts[0], "seeds = [1]" in texts[1], "seeds = [2]" in texts[2]] == [True] * 3
    assert len(list(folder.glob("sweep*.toml"))) == 3


def test_a_folder_that_was_moved_goes_on(uninterrupted, tmp_path):
    stopped(tmp_path / "x", 6)
    (tmp_path / "x").rename(tmp_path / "moved")
    assert steps(resumed(tmp_path / "moved"))[0] == 8 and trials(tmp_path / "moved") == uninterrupted()


def test_a_clock_one_hour_off_changes_nothing(uninterrupted, tmp_path, monkeypatch):
    stopped(tmp_path / "x", 6)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 3600)
    assert steps(resumed(tmp_path / "x"))[0] == 8 and trials(tmp_path / "x") == uninterrupted()


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
