"""A cluster in the process of the tests: it trains a group when it is asked for answers, as a node would."""

import pickle

import pytest

from posenc.lab.sweep import ray
from posenc.lab.sweep.signals import Signals, Stopped


class Inline:
    """`act(parcel, number)` runs before the group of that number is trained; what it returns, if any, is the answer."""

    def __init__(self, act=lambda parcel, number: None, fits=2):
        self.act, self.fitting, self.stopped = act, fits, False
        self.parcels, self._queue, self.events = [], {}, []

    def fits(self):
        return self.fitting

    def send(self, parcel):
        self.parcels.append(pickle.loads(pickle.dumps(parcel)))
        self._queue[len(self.parcels) - 1] = self.parcels[-1]
        return len(self.parcels) - 1

    def receive(self, sent, seconds):
        answers = {}
        if (number := next((n for n in self._queue if n in sent), None)) is not None:
            parcel = self._queue.pop(number)
            cancelled = {"kind": "lost", "why": "TaskCancelledError"} if self.stopped else None
            answer = cancelled or self.act(parcel, number) or self.train(parcel)
            answers[number] = pickle.loads(pickle.dumps(answer))
        events, self.events = self.events, []
        return events, answers

    def train(self, parcel):
        return ray.answer(parcel, lambda *event: self.events.append((parcel["token"], event)))

    def cut(self, parcel):
        """Train a group to its first step, and save it; its node is then lost."""

        def check(signals):
            if any(token == parcel["token"] and event[0] == "step" for token, event in self.events):
                raise Stopped

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Signals, "check", check)
            assert self.train(parcel)["kind"] == "lost"
        return {"kind": "lost", "why": "NodeDiedError"}

    def stop(self, sent):
        self.stopped = True


def orders(folder, **change):
    orders = {"keep": False, "lanes": None, "every": 1e9, "cpus": 1, "gpus": 0, "imports": (), "place": str(folder)}
    return orders | change


def driven(folder, groups, cluster, watch, **change):
    """The exit code of a driver with this cluster."""
    with Signals() as signals:
        return ray.Driver(folder, cluster, orders(folder, **change), watch).drive(groups, signals)
