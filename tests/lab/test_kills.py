"""Real processes are killed by real signals, on real disks, and lose nothing: `tests/lab/swept.py` is the process.

Each claim is held in one process by `tests/lab/test_resuming.py` and `test_saving.py` too, which run by day.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from posenc.lab.run.sweep import sweep
from posenc.lab.store import checkpoints, claims
from posenc.lab.store import folder as store
from tests.lab import made
from tests.lab.swept import ROOT, SETTINGS, Swept, experiment, run, small_disk
from tests.lab.test_ray_driver import left
from tests.lab.test_sweep import Watch, trials


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What an uninterrupted sweep records, by the settings that differ."""
    known = {}

    def recorded(**options):
        key = json.dumps(options)
        if key not in known:
            folder = tmp_path_factory.mktemp("runs") / "whole"
            assert sweep(experiment(SETTINGS | options), folder, watch=Watch()) == 0
            known[key] = trials(folder)
        return known[key]

    return recorded


@pytest.mark.ci
def test_a_process_that_is_killed_inside_a_save_or_a_record_loses_neither(whole, tmp_path):
    folder, done, two = tmp_path / "x", {}, {"schemes": ["rope", "nope"]}
    faults = ["kill in a save", "kill in a record", "kill after a record", None]
    for number, fault in enumerate(faults):
        swept = run(folder, **two, fault=fault, every=0.05)
        assert swept.code == (-signal.SIGKILL if fault else 0), (fault, swept.errors)
        assert made.recorded(folder).items() >= done.items(), "what is recorded stays as it is"
        assert len(made.recorded(folder)) == (0, 0, 1, 2)[number]
        done = made.recorded(folder)
        if fault is None:
            assert "rope · even_pairs" not in swept.steps(), "and does not run again"
    assert trials(folder) == whole(**two) and left(folder) == []


@pytest.mark.ci
@pytest.mark.timeout(1500)  # half a minute alone, and ten times that beside other work
def test_workers_whose_parent_is_killed_save_and_end_and_the_same_command_goes_on(tmp_path):
    """No checkpoint is due before the end, so what is there was saved when the parent was gone."""
    runs, folder = tmp_path, tmp_path / "orphans"
    model = "width=8 depth=1 heads=2 hidden=8 batch=4 length=4 steps=12000 segment=20 sizes=4,8 rows=8".split()
    command = [sys.executable, "-m", "posenc", "sweep", "--grid", "scheme=rope,nope", "task=even_pairs"]
    command += ["--set", *model, "--seeds", "1", "--name", folder.name, "--workers", "2", "--save-every", "1e9"]
    how = {"env": {**os.environ, "POSENC_RUNS": str(runs)}, "cwd": ROOT, "stdout": subprocess.DEVNULL, "text": True}
    parent = subprocess.Popen(command, stderr=subprocess.DEVNULL, **how)
    logs = lambda: [path for path in (folder / "events").glob("*") if '"step"' in path.read_text()]  # noqa: E731
    assert within(600, lambda: len(logs()) == 2 or parent.poll() is not None) and parent.poll() is None
    workers = [claim.pid for claim in store.held(folder)]
    parent.kill()
    parent.wait()
    assert len(workers) == 2 and within(300, lambda: not any(map(claims._started, workers)))
    assert made.recorded(folder) == {} and list((folder / "claims").iterdir()) == []
    saved = [
        checkpoints.step_of(path) for group in checkpoints.groups(folder) for path in checkpoints.paths(folder, group)
    ]
    assert len(saved) == 2 and all(0 < step < 12000 for step in saved)
    again = subprocess.run(command, stderr=subprocess.PIPE, **how)
    assert again.returncode == 0 and all(f"goes on from step {step}." in again.stderr for step in saved)
    assert len(made.recorded(folder)) == 2 and left(folder) == []


def within(seconds, holds):
    """Whether this holds before so many seconds are over."""
    end = time.monotonic() + seconds
    while not (true := holds()) and time.monotonic() < end:
        time.sleep(0.05)
    return true


@pytest.mark.ci
@pytest.mark.parametrize("fault", [None, "stop in a save"])
def test_a_stopped_process_whose_claim_was_taken_notices_and_drops_the_group(whole, tmp_path, fault):
    """Stopped in a save it finds its files gone when it goes on, which is no failure of the group."""
    folder, one = tmp_path / "x", {"steps": 2000}
    first = Swept(folder, **one, stale=3.0, fault=fault)
    if fault is None:
        first.step(200)
        first.send(signal.SIGSTOP)
    os.waitpid(first.process.pid, os.WUNTRACED)
    second = Swept(folder, **one, stale=3.0, clock=3600.0)
    assert second.step(1000), second.end()
    first.send(signal.SIGCONT)
    assert (second.end(), first.end()) == (0, 0), first.errors
    assert second.went_on() and max(first.steps()["rope · even_pairs"]) < 1000
    assert any(line.startswith("taken rope") for line in first.lines)
    assert any("done by another worker" in line for line in first.lines)
    assert len(made.recorded(folder)) == 1 and trials(folder) == whole(**one) and left(folder) == []


@pytest.fixture
def disk(tmp_path):
    """`disk(size)`: a real disk that is too small."""
    with contextlib.ExitStack() as mounted:

        def small(size):
            place = mounted.enter_context(small_disk(tmp_path / "disk", size))
            return place or pytest.skip("a small disk is mounted, which only root may do")

        yield small


def fill(place):
    """Take all space that is left."""
    with open(place / "ballast", "ab", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            return


@pytest.mark.ci
def test_a_disk_without_space_for_a_checkpoint_is_reported_once_and_all_is_recorded(whole, disk):
    place = disk("250k")
    (place / "ballast").write_bytes(b"\0" * 140_000)
    swept = run(place / "x", every=0.05)
    assert swept.code == 0 and trials(place / "x") == whole() and left(place / "x") == []
    assert len([line for line in swept.lines if "no checkpoint at step" in line]) == 1
    assert len(swept.errors.splitlines()) < 5


@pytest.mark.ci
def test_a_record_that_finds_no_space_exits_74_and_comes_later(whole, disk):
    place = disk("2m")
    swept = Swept(place / "x", every=1e9)
    swept.step(100)
    fill(place)
    assert swept.end() == 74 and "full" in swept.errors
    assert made.recorded(place / "x") == {} and len(swept.errors.splitlines()) < 5
    (place / "ballast").unlink()
    assert run(place / "x").code == 0
    assert trials(place / "x") == whole()


def test_a_folder_that_cannot_be_written_is_refused_before_jax_starts(disk):
    place = disk("250k")
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    ask = [sys.executable, "-X", "importtime", "-m", "posenc", "run", "--name", "x"]
    said = subprocess.run(ask, env={**os.environ, "POSENC_RUNS": str(place)}, cwd=ROOT, capture_output=True, text=True)
    assert said.returncode == 74 and " jax\n" not in said.stderr
    assert "read-only" in said.stderr.splitlines()[-1]


@pytest.mark.nightly  # kills inside saves and records, and at each signal, in the same file
@pytest.mark.timeout(1500)
def test_fifty_kills_at_random_moments_lose_no_trial_and_repeat_none(whole, tmp_path):
    draw, folder, long = random.Random(0), tmp_path / "x", {"schemes": ["rope", "nope", "t5"], "steps": 12000}
    kills, done, went_on, repeated = 0, {}, 0, set()
    while kills < 50:
        swept = Swept(folder, **long, every=0.1)
        assert swept.until(draw.choice(("begin", "group", "step", "step"))), swept.end()
        time.sleep(draw.uniform(0, 1))
        swept.send(signal.SIGKILL)
        assert swept.end() == -signal.SIGKILL, "the settings must be longer"
        kills, went_on = kills + 1, went_on + bool(swept.went_on())
        finished = {trial.id for record in store.read_records(folder).records for trial in record.trials}
        repeated |= {name for name, at in done.items() if made.recorded(folder).get(name) != at}
        done = made.recorded(folder)
        assert len(finished) == 2 * len(done)
    last = run(folder, **long, pause=0.0)
    assert last.code == 0 and repeated == set() and went_on > 25
    assert trials(folder) == whole(**long) and left(folder) == []
    shutil.rmtree(folder)
