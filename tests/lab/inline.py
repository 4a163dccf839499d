"""Ray in the process of the tests: it trains a group when it is asked for answers, as a node would."""

import contextlib
import pickle
import socket
from types import SimpleNamespace

import pytest

from posenc.lab.run import ray
from posenc.lab.run.signals import Signals, Stopped


class NodeDiedError(Exception):
    """What Ray says of a group whose node is gone."""


class Inline:
    """`act(parcel, number)` runs before the group of that number is trained; what it returns, if any, is the answer."""

    exceptions = SimpleNamespace(RayError=NodeDiedError)

    def __init__(self, act=lambda parcel, number: None, cores=2):
        self.act, self.cores, self.stopped = act, cores, False
        self.parcels, self._waiting, self.events = [], [], []
        self.collect = SimpleNamespace(remote=self._collect)

    def nodes(self):
        return [{"Alive": True, "Resources": {"CPU": self.cores}}, {"Alive": False, "Resources": {"CPU": 9}}]

    def remote(self, parcel, mailbox):
        self.parcels.append(pickle.loads(pickle.dumps(parcel)))
        self._waiting.append(len(self.parcels) - 1)
        return self._waiting[-1]

    def wait(self, refs, timeout):
        return [ref for ref in self._waiting if ref in refs][:1], []

    def get(self, ref):
        if not isinstance(ref, int):
            return ref
        self._waiting.remove(ref)
        if self.stopped:
            raise NodeDiedError
        return pickle.loads(pickle.dumps(self.act(self.parcels[ref], ref) or self.answer(self.parcels[ref])))

    def answer(self, parcel):
        post = lambda *event: self.events.append((parcel["token"], event))  # noqa: E731
        post("started", socket.gethostname())
        return ray.answer(parcel, post)

    def cut(self, parcel):
        """Train a group to its first step, and save it; its node is then lost."""

        def check(signals):
            if any(token == parcel["token"] and event[0] == "step" for token, event in self.events):
                raise Stopped

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Signals, "check", check)
            assert self.answer(parcel)["kind"] == "lost"
        raise NodeDiedError

    def cancel(self, ref, recursive):
        self.stopped = True

    def _collect(self):
        events, self.events = self.events, []
        return events


def orders(folder, **change):
    orders = {"keep": False, "lanes": None, "every": 1e9, "cpus": 1, "gpus": 0, "imports": (), "place": str(folder)}
    return orders | change


def driven(folder, cluster, watch, **change):
    """The exit code of a driver with this cluster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray, "join", lambda address: contextlib.nullcontext(cluster))
        patch.setattr(ray, "remote_parts", lambda *_: (cluster, cluster))
        return ray.run_on_cluster(folder, "auto", orders(folder, **change), watch)
