"""Workers of one machine: where each runs, what becomes of signals and deaths, and that their work is a sweep's."""

import json
import os
import signal
import sys
import time

import pytest

from posenc.lab.run import team
from posenc.lab.run.signals import Signals, Stopped
from posenc.lab.run.sweep import plan_experiment, sweep
from posenc.lab.run.team import places, together
from posenc.lab.run.worker import begin_anywhere, work
from posenc.lab.store import folder as store
from tests.lab import made
from tests.lab.test_sweep import Watch, experiment


@pytest.mark.parametrize(
    ("workers", "cores", "gpus", "wanted"),
    [
        (1, 4, 0, [((0, 1, 2, 3), None, None)]),
        (1, 1, 0, [((0,), None, None)]),
        (2, 4, 0, [((0, 1), None, None), ((2, 3), None, None)]),
        (3, 2, 0, [((0,), None, None), ((0,), None, None), ((1,), None, None)]),
        (None, 5, 0, [((0, 1), None, None), ((2, 3, 4), None, None)]),
        (None, 1, 0, [((0,), None, None)]),
        (None, 4, 2, [((0, 1), "a", None), ((2, 3), "b", None)]),
        (3, 3, 2, [((0,), "a", "0.450"), ((1,), "b", "0.450"), ((2,), "a", "0.450")]),
    ],
)
def test_each_worker_has_cores_or_a_gpu_of_its_own(workers, cores, gpus, wanted):
    found = places(workers, range(cores), "ab"[:gpus])
    names = "CUDA_VISIBLE_DEVICES", "XLA_PYTHON_CLIENT_MEM_FRACTION"
    assert [(p.cores, *map(p.environment.get, names)) for p in found] == wanted


def test_gpus_are_those_of_the_variable_or_of_the_driver(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1, GPU-2")
    assert team.gpus() == ("GPU-1", "GPU-2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert team.gpus() == ()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    driver = tmp_path / "nvidia-smi"
    driver.write_text("#!/bin/sh\necho GPU-3; echo GPU-4\n")
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert team.gpus() == ("GPU-3", "GPU-4")
    driver.write_text("#!/bin/sh\nexit 9\n")
    assert team.gpus() == ()


@pytest.fixture
def run(tmp_path):
    """`run(script, workers)`: the exit code of workers that run a Python script instead of posenc, and their lines.
    `ready` is called once all workers have said that they are."""
    folder = tmp_path / "planned"
    plan_experiment(experiment(steps=0), folder)

    def go(script, workers=2, ready=lambda: None):
        said = []

        def say(line):
            said.append(line)
            if "ready" in line and sum("ready" in one for one in said) == workers:
                ready()

        where = places(workers, sorted(os.sched_getaffinity(0)), ())
        return together([sys.executable, "-c", script, str(folder)], where, folder, say), said

    go.folder = folder
    return go


CORES = "import os, sys; print(*sorted(os.sched_getaffinity(0)), file=sys.stderr)"
WAITS = """
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, lambda number, _: (print("heard", number, file=sys.stderr, flush=True), sys.exit(75)))
print("ready", file=sys.stderr, flush=True)
time.sleep(30)
"""


def test_workers_are_pinned_before_they_start_and_this_process_is_not(run):
    before = os.sched_getaffinity(0)
    _, said = run(CORES)
    own = [{int(core) for core in line.split()[1:]} for line in sorted(said) if line.startswith("[")]
    assert os.sched_getaffinity(0) == before and len(own) == 2
    assert set.union(*own) == before and (len(before) < 2 or not own[0] & own[1])


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 75), (signal.SIGUSR1, 75), (signal.SIGINT, 130)])
def test_a_signal_reaches_every_worker_once_and_decides_the_exit_code(run, sent, code):
    began = time.monotonic()
    found, said = run(WAITS, ready=lambda: os.kill(os.getpid(), sent))
    assert found == code and time.monotonic() - began < 20
    assert sorted(line for line in said if "heard" in line) == [f"[{n}] heard {int(sent)}" for n in (1, 2)]


def test_a_worker_is_told_its_parent_and_one_without_that_parent_stops(run, monkeypatch):
    """The whole thing, with a parent that is killed, is in tests/lab/test_kills.py."""
    told = "import os, sys; print(os.environ['POSENC_PARENT'] == str(os.getppid()), file=sys.stderr)"
    assert sorted(run(told)[1]) == ["[1] True", "[2] True"]
    signals = Signals()
    for parent in (None, os.getppid()):  # started by hand, and by a team that lives
        monkeypatch.delenv("POSENC_PARENT", raising=False)
        if parent is not None:
            monkeypatch.setenv("POSENC_PARENT", str(parent))
        signals.check()
    monkeypatch.setenv("POSENC_PARENT", str(os.getpid()))
    with pytest.raises(Stopped):
        signals.check()
    assert signals.code == 75


def test_the_exit_code_says_what_came_of_the_run_and_a_killed_worker_is_named(run):
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    code, (note,) = run(killed, 1)
    assert code == 1 and "Worker 1 " in note and "signal 9" in note
    assert run("raise SystemExit(74)", 1)[0] == 74, "work is left, and this is why"
    assert sweep(experiment(steps=0), run.folder, watch=Watch()) == 0
    assert run("raise SystemExit(1)", 1)[0] == 0, "every trial has a result"


def test_what_another_worker_fails_at_is_not_waited_for(tmp_path, monkeypatch):
    from posenc.lab.run.worker import Worker

    folder = tmp_path / "busy"
    plan_experiment(experiment(), folder)
    seen = []

    def elsewhere(worker, group, lines, following=None):
        seen.append(group)
        store.write_error(folder, group, "failed", "elsewhere")
        return False

    monkeypatch.setattr(Worker, "run", elsewhere)
    assert work(folder, watch=Watch()) == 1 and len(seen) == 2


def test_workers_begin_at_different_groups_and_keep_the_order():
    groups = {name: [] for name in "abcdef"}
    orders = {"".join(begin_anywhere(groups)) for _ in range(200)}
    assert orders == {"abcdef"[n:] + "abcdef"[:n] for n in range(6)}
    assert begin_anywhere({}) == {}


def test_a_plan_of_another_version_is_refused(tmp_path):
    folder = tmp_path / "other"
    plan_experiment(experiment(), folder)
    made.replanned(folder, lambda line: json.loads(json.dumps(line).replace('"training": 1', '"training": 99')))
    with pytest.raises(ValueError, match="was written by another version; use a new --name"):
        work(folder, watch=Watch())
