"""A real SLURM of two nodes on this machine, from Debian's packages: started in a second, stopped by its pid files."""

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.cluster.sweeps import SIZES, posenc, until

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
HOSTS = Path("/etc/hosts")
MUNGE = Path("/etc/munge/munge.key")
ALONE = Path(tempfile.gettempdir()) / "posenc-slurm.lock"
NODES = {"n1": 26821, "n2": 26822}
CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=26817
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool/%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd-%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmctldParameters=preempt_send_user_signal
KillWait=20
ReturnToService=2
MpiDefault=none
{nodes}
PartitionName=low  Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP PriorityTier=1  PreemptMode=REQUEUE GraceTime=20
PartitionName=high Nodes=n1,n2 MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


class Missing(Exception):
    """Why there can be no SLURM here."""


def install():
    """Have the packages, or say why they cannot be had."""
    if os.getuid() != 0:
        raise Missing("SLURM needs root to start")
    if all(shutil.which(program) for program in ("slurmctld", "slurmd", "sbatch", "munged")):
        return
    if shutil.which("apt-get") is None:
        raise Missing("SLURM is not installed, and this is not Debian")
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "capture_output": True}
    for words in (["update", "-qq"], ["install", "-y", "-qq", *PACKAGES]):
        if subprocess.run(["apt-get", *words], **quiet).returncode:
            raise Missing("the packages of SLURM cannot be installed")


@contextlib.contextmanager
def running(place):
    """The environment of a SLURM that runs while the block does. A machine has one at a time."""
    with open(ALONE, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install()
        with _running(place) as env:
            yield env


@contextlib.contextmanager
def _running(place):
    own = subprocess.run(["id", "-u", "munge"], capture_output=True, text=True, check=True).stdout.strip()
    for folder in ("/run/munge", "/var/log/munge", "/var/lib/munge", MUNGE.parent):
        Path(folder).mkdir(parents=True, exist_ok=True)
        shutil.chown(folder, "munge", "munge")
    if not MUNGE.exists() or not MUNGE.stat().st_size:
        MUNGE.write_bytes(secrets.token_bytes(1024))
    MUNGE.chmod(0o400)
    shutil.chown(MUNGE, "munge", "munge")
    if subprocess.run(["munge", "-n"], capture_output=True).returncode:  # its socket may outlive it
        user = ["setpriv", f"--reuid={own}", "--regid=munge", "--clear-groups"]
        subprocess.run([*user, "munged", "--force"], check=True)
    for name in ("state", "spool/n1", "spool/n2"):
        (place / name).mkdir(parents=True)
    host, before = socket.gethostname(), HOSTS.read_text()
    nodes = "\n".join(
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=2000"
        for name, port in NODES.items()
    )
    config = place / "slurm.conf"
    config.write_text(CONFIG.format(host=host, place=place, nodes=nodes))
    env = {**os.environ, "SLURM_CONF": str(config)}
    HOSTS.write_text(f"{before.rstrip()}\n127.0.0.1 n1 n2\n")
    try:
        subprocess.run(["slurmctld", "-f", str(config)], env=env, check=True)
        for name in NODES:
            subprocess.run(["slurmd", "-f", str(config), "-N", name], env=env, check=True)
        until(lambda: said(env, "sinfo", "-h", "-N", "-p", "low", "-o", "%T").split() == ["idle"] * 2, 200)
        yield env
    finally:
        said(env, "scancel", "-u", "root")
        time.sleep(1)
        for pid in place.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError, ValueError):
                os.kill(int(pid.read_text()), 15)
        HOSTS.write_text(before)


def submit(env, folder, name, *words, sizes=SIZES):
    """Submit the sweep of `tests.cluster.sweeps` to the partition `low`."""
    return posenc(env, folder, "sweep", *sizes, "--name", name, "--engine", "slurm", "--slurm.partition", "low", *words)


def saved(folder, name, groups):
    """Whether so many groups have been saved."""
    return lambda: len(list((folder / name / "ckpt").glob("*/*"))) >= groups


def lose(env, node):
    """A node no longer answers, and SLURM runs its jobs elsewhere; the processes on it go on."""
    os.kill(int(Path(env["SLURM_CONF"]).with_name(f"slurmd-{node}.pid").read_text()), signal.SIGKILL)
    said(env, "scontrol", "update", f"nodename={node}", "state=down", "reason=lost")


def said(env, *words):
    """What one of its commands prints."""
    return subprocess.run(words, env=env, capture_output=True, text=True).stdout


def finish(env, seconds):
    """Wait until the partition `low` is empty, releasing what is held back after it was queued again."""
    end = time.monotonic() + seconds
    while said(env, "squeue", "-h", "-p", "low").strip():
        if time.monotonic() > end:
            raise TimeoutError(said(env, "squeue"))
        for job in said(env, "squeue", "-h", "-p", "low", "-t", "PD", "-o", "%i").split():
            time.sleep(3)  # SLURM revokes the credential of a job that is released at once
            said(env, "scontrol", "update", f"jobid={job}", "StartTime=now")
        time.sleep(1)
