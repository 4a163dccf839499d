"""Slow events of a real SLURM: the end of a job's time, and a node that is down while its processes live."""

import os

import pytest

from tests.cluster import slurm
from tests.cluster.sweeps import SIZES, posenc, trials, until

pytestmark = [pytest.mark.cluster, pytest.mark.nightly]
LONGER = [word.replace("steps=4000", "steps=20000") for word in SIZES]


@pytest.mark.timeout(900)
def test_a_job_whose_time_ends_is_queued_again_and_goes_on(nodes, folder):
    posenc(os.environ, folder, "sweep", *LONGER, "--name", "longer")
    words = "--slurm.workers 2 --slurm.cpus 1 --slurm.time 1".split()
    slurm.submit(nodes, folder, "timed", *words, sizes=LONGER)
    slurm.finish(nodes, 600)
    found, most = trials(folder / "timed")
    assert found == trials(folder / "longer")[0] and most == 1
    logs = "".join(path.read_text() for path in (folder / "timed").glob("slurm-*.log"))
    assert "saved at step" in logs and "goes on from step" in logs
    assert "TIME LIMIT" not in logs, "a worker outlived its notice"


@pytest.mark.timeout(600)
def test_a_node_that_is_down_while_its_processes_live_doubles_nothing(nodes, folder, whole):
    slurm.submit(nodes, folder, "down", *"--slurm.workers 2 --slurm.cpus 1 --slurm.time 30".split())
    until(slurm.saved(folder, "down", 2), 120)
    slurm.lose(nodes, "n1")
    slurm.finish(nodes, 300)
    found, most = trials(folder / "down")
    assert found == whole and most == 1
