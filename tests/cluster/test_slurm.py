"""A sweep on a real SLURM: every trial is equal to that of an undisturbed sweep, none is lost, none is done twice."""

import os

import pytest

from tests.cluster import slurm
from tests.cluster.sweeps import SIZES, posenc, trials, until
from tests.lab import made

pytestmark = pytest.mark.cluster
LONGER = [word.replace("steps=4000", "steps=20000") for word in SIZES]


@pytest.mark.timeout(1500)
def test_a_job_that_another_displaces_goes_on_from_its_step(nodes, folder, whole):
    assert "Job " in slurm.submit(
        nodes, folder, "moved", "--slurm.workers", "2", "--slurm.cpus", "1", "--slurm.time", "30"
    )
    until(slurm.saved(folder, "moved", 2), 400)
    node = slurm.said(nodes, "squeue", "-h", "-t", "R", "-o", "%N").split()[0]
    urgent = ["sbatch", "-p", "high", "-w", node, "--exclusive", "-o", "/dev/null", "--wrap", "sleep 3"]
    assert "Submitted" in slurm.said(nodes, *urgent)
    until(lambda: "75" in slurm.said(nodes, "squeue", "-h", "-p", "low", "-t", "PD", "-o", "75"), 400)
    slurm.finish(nodes, 400)
    found, most = trials(folder / "moved")
    assert found == whole and most == 1
    logs = "".join(path.read_text() for path in (folder / "moved").glob("slurm-*.log"))
    assert "saved at step" in logs and "goes on from step" in logs
    assert not list((folder / "moved" / "claims").iterdir()) and not list((folder / "moved" / "ckpt").glob("*/*"))


@pytest.mark.timeout(1500)
def test_a_cancelled_sweep_is_submitted_again_and_repeats_nothing(nodes, folder, whole):
    slurm.submit(nodes, folder, "again", "--slurm.workers", "2", "--slurm.cpus", "1")
    until(lambda: made.recorded(folder / "again"), 400)
    slurm.said(nodes, "scancel", "-u", "root")
    until(lambda: not slurm.said(nodes, "squeue", "-h").strip(), 400)
    before = made.recorded(folder / "again")
    slurm.submit(nodes, folder, "again", "--slurm.workers", "1", "--slurm.cpus", "2")
    slurm.finish(nodes, 400)
    found, most = trials(folder / "again")
    assert found == whole and most == 1
    assert before.items() <= made.recorded(folder / "again").items()


@pytest.mark.nightly
@pytest.mark.timeout(1500)
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


@pytest.mark.nightly
@pytest.mark.timeout(1500)
def test_a_node_that_is_down_while_its_processes_live_doubles_nothing(nodes, folder, whole):
    slurm.submit(nodes, folder, "down", *"--slurm.workers 2 --slurm.cpus 1 --slurm.time 30".split())
    until(slurm.saved(folder, "down", 2), 400)
    slurm.lose(nodes, "n1")
    slurm.finish(nodes, 300)
    found, most = trials(folder / "down")
    assert found == whole and most == 1
