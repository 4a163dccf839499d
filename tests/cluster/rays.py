"""A real Ray cluster on this machine, in a process of its own: a head without cores, and three nodes of one core.

`python -m tests.cluster.rays` is that process; it reads "remove" and "add" from its standard input.
"""

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

SMALL = {"object_store_memory": 80_000_000}
NODES = 3


class Missing(Exception):
    """Why there can be no cluster here."""


class Rays:
    """The cluster, as a test sees it."""

    def __init__(self, process):
        self.process = process
        self.address = self._answer()

    def remove(self):
        """Take a node away, with all that runs there, and give the cluster another."""
        self._order("remove")

    def _order(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        assert self._answer() == "done"

    def _answer(self):
        for line in self.process.stdout:
            if line.startswith("> "):
                return line.removeprefix("> ").strip()
        raise EOFError("the cluster has ended")


@contextlib.contextmanager
def running(folder):
    """A cluster while the block runs; what its processes print is kept below the folder."""
    if importlib.util.find_spec("ray") is None:
        raise Missing("Ray is not installed: pip install 'posenc[ray]'")
    with open(folder / "cluster.log", "w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.rays"],
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            yield Rays(process)
        finally:
            process.stdin.close()
            process.wait(60)
            process.stdout.close()


def training():
    """The ids of processes that train a group for Ray."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if re.match(rb"ray::.*train", (place / "cmdline").read_bytes()):
                found.append(int(place.name))
    return sorted(found)


def main():
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, **SMALL}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.add_node(num_cpus=1, **SMALL) for _ in range(NODES)]
    print(f"> {cluster.address}", flush=True)
    for line in sys.stdin:
        assert line == "remove\n"
        cluster.remove_node(nodes.pop(0), allow_graceful=False)
        nodes.append(cluster.add_node(num_cpus=1, **SMALL))
        print("> done", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
