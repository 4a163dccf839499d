"""The Ray cluster as the driver sees it. Only this file calls Ray in the driver, and nothing imports Ray before it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from posenc.lab.sweep.ray.settings import AUTO, Ray, check_answers, check_installed
from posenc.lab.sweep.signals import Stopped


class RayCluster:
    """A cluster that this process has joined as a driver. `connected` makes one."""

    def __init__(self, ray: Any, how: Ray):
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from posenc.lab.sweep.ray import task

        self._ray, self._how = ray, how
        ray.cloudpickle.register_pickle_by_value(task)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._mailbox = ray.remote(num_cpus=0)(task.Mailbox).options(scheduling_strategy=here).remote()
        # the driver sends a lost group again itself: Ray would do it in silence, and for ever where memory is short
        wanted = {"num_cpus": how.cpus, "num_gpus": how.gpus, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        self._train = ray.remote(**wanted)(task.train)
        self.job = ray.get_runtime_context().get_job_id()

    def fits(self) -> int:
        """How many groups the nodes can train at once."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return sum(_fitting(node, self._how) for node in nodes)

    def send(self, parcel: dict[str, Any]) -> Any:
        """Hand a group over; returns what `arrived` knows it by."""
        return self._train.remote(parcel, self._mailbox)

    def arrived(self, sent: Sequence[Any], seconds: float) -> dict[Any, dict[str, Any]]:
        """The answers that have come, after so many seconds at most; that of a group whose process died is "lost"."""
        first, _ = self._ray.wait(list(sent), num_returns=1, timeout=seconds)
        ready, _ = self._ray.wait(list(sent), num_returns=len(sent), timeout=0) if first else ([], [])
        return {one: self._answer(one) for one in ready}

    def events(self) -> list[tuple[str, tuple]]:
        """What nodes reported since the last time, each with its sender."""
        return self._ray.get(self._mailbox.collect.remote())

    def stop(self) -> None:
        """Ask every node to save and end; those that start later do so at once."""
        self._ray.get(self._mailbox.stop.remote())

    def _answer(self, one: Any) -> dict[str, Any]:
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(one)
        except exceptions.RayTaskError as error:  # of posenc's own code around the training
            why = str(error).strip().splitlines()[-1]
            return {"kind": "failed", "outcome": "failed", "why": why, "text": traceback.format_exc(), "host": ""}
        except exceptions.RayError as error:
            return {"kind": "lost", "why": type(error).__name__}


def check(how: Ray) -> None:
    """Raise `ValueError` where there is no cluster to join, before anything is planned."""
    check_installed()
    check_answers(_address(how.address))


@contextlib.contextmanager
def connected(how: Ray) -> Iterator[RayCluster]:
    """The cluster while the block runs. What is under way there ends with the block, and with this process."""
    ray = _imported()
    address = _address(how.address)
    listening = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except SystemExit:  # Ray's own answer to SIGTERM
        raise Stopped from None
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ValueError(_refusal(address, str(error))) from error
    finally:
        signal.signal(signal.SIGTERM, listening)
    try:
        yield RayCluster(ray, how)
    finally:
        ray.shutdown()


def _imported() -> Any:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    return ray


def _address(text: str) -> str:
    """HOST:PORT of the head. Raises `ValueError` where auto finds none."""
    if text != AUTO:
        return text
    _imported()
    from ray._private.services import canonicalize_bootstrap_address  # the search that `ray.init` does, without joining

    try:
        return canonicalize_bootstrap_address(AUTO)
    except (ConnectionError, ValueError, OSError):
        raise ValueError(
            "No Ray cluster runs on this machine; start one with `ray start --head`, or give --ray.address HOST:PORT."
        ) from None


def _fitting(resources: dict[str, float], how: Ray) -> int:
    """How many groups a node with these resources trains at once."""
    found = [int(resources.get("CPU", 0) // how.cpus)]
    if how.gpus:
        found.append(int(resources.get("GPU", 0) // how.gpus))
    return min(found)


def _refusal(address: str, message: str) -> str:
    """One sentence of what Ray says in many lines."""
    words = " ".join(message.split())
    if "ersion mismatch" in words:
        versions = words.partition(": ")[2].replace("This process", "and this process")
        return f"Ray at {address} is of another version: {versions}; install the same on both."
    here = socket.gethostname()
    return f"Ray at {address} cannot be joined from {here}: {words[:300]}; run the driver on a node of the cluster."
