"""A sweep on a real Ray cluster: every trial is equal to that of an undisturbed sweep, and recorded once."""

import os
import re
import signal
import subprocess
import sys

import pytest

from posenc.lab.store import checkpoints
from tests.cluster import rays
from tests.cluster.sweeps import SIZES, trials, until
from tests.lab import made

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    try:
        with rays.running(tmp_path_factory.mktemp("ray")) as running:
            yield running
    except rays.Missing as why:
        pytest.skip(str(why))


@pytest.fixture
def driver(cluster, folder):
    """`driver(name)`: a sweep on the cluster, as a process."""
    started = []

    def start(name):
        words = ["sweep", *SIZES, "--name", name, "--engine", "ray", "--ray.address", cluster.address]
        process = subprocess.Popen(
            [sys.executable, "-m", "posenc", *words],
            env={**os.environ, "POSENC_RUNS": str(folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


def saved(run, groups=1):
    """Whether so many groups have been saved."""
    return lambda: sum(1 for group in checkpoints.groups(run) if checkpoints.paths(run, group)) >= groups


def went_on(lines):
    """The steps from which groups went on."""
    return [int(step) for step in re.findall(r"goes on from step (\d+)", lines)]


def clean(run):
    return not checkpoints.groups(run) and not list((run / "claims").iterdir())


@pytest.mark.timeout(1500)
def test_groups_whose_node_or_process_is_lost_go_on_from_their_steps(cluster, folder, whole, driver):
    run = folder / "ray-moved"
    process = driver("ray-moved")
    until(saved(run, 3), 400)
    os.kill(rays.training()[0], signal.SIGKILL)
    cluster.remove()
    _, lines = process.communicate(timeout=400)
    assert process.returncode == 0, lines
    found, most = trials(run)
    assert found == whole and most == 1
    assert "lost on" in lines and "sent again" in lines and went_on(lines), lines
    assert clean(run), "neither checkpoints nor claims are left"


@pytest.mark.timeout(1500)
def test_a_driver_that_is_stopped_and_one_that_is_killed_leave_the_rest_to_the_same_command(folder, whole, driver):
    run = folder / "ray-again"
    first = driver("ray-again")
    until(saved(run), 400)
    first.send_signal(signal.SIGTERM)
    _, lines = first.communicate(timeout=200)
    assert first.returncode == 75 and "saved at step" in lines, lines
    until(lambda: not rays.training(), 100)
    before = made.recorded(run)

    second = driver("ray-again")
    until(lambda: len(made.recorded(run)) > len(before), 400)
    second.kill()
    until(lambda: not rays.training(), 100)

    third = driver("ray-again")
    _, lines = third.communicate(timeout=400)
    assert third.returncode == 0, lines
    found, most = trials(run)
    assert found == whole and most == 1 and clean(run)
    assert before.items() <= made.recorded(run).items()


def test_a_cluster_is_needed_and_its_address_must_answer(cluster, folder):
    words = ["sweep", *SIZES, "--name", "none", "--engine", "ray", "--ray.address"]
    for address, why in (("127.0.0.1:1", "does not answer"), ("here", "give auto or HOST:PORT")):
        done = subprocess.run([sys.executable, "-m", "posenc", *words, address], capture_output=True, text=True)
        assert done.returncode == 2 and why in done.stderr and done.stderr.count("\n") == 1, done.stderr
