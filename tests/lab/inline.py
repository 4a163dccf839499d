"""A cluster in the process of the tests: it trains a group when it is asked for answers, as a node would."""

import json
import pickle

import pytest

from posenc.lab.sweep.ray import node
from posenc.lab.sweep.ray.driver import Orders, drive
from posenc.lab.sweep.ray.task import Mailbox
from posenc.lab.sweep.signals import Signals


class Inline:
    """`act(parcel, number)` runs before the group of that number is trained; what it returns, if any, is the answer."""

    def __init__(self, act=lambda parcel, number: None, fits=2):
        self.act, self.fitting, self.mailbox = act, fits, Mailbox()
        self.parcels, self._queue, self.stopped = [], {}, False

    def fits(self):
        return self.fitting

    def send(self, parcel):
        plain = json.loads(json.dumps(parcel))  # nothing but plain data travels
        self.parcels.append(plain)
        self._queue[len(self.parcels) - 1] = plain
        return len(self.parcels) - 1

    def arrived(self, sent, seconds):
        number = next((n for n in self._queue if n in sent), None)
        if number is None:
            return {}
        parcel = self._queue.pop(number)
        answer = self.act(parcel, number) or self.train(parcel)
        return {number: pickle.loads(pickle.dumps(answer))}

    def train(self, parcel):
        return node.answer(parcel, lambda events: self.mailbox.post(parcel["sender"], events))

    def cut(self, parcel):
        """Train a group to its first step, and save it; its node is then lost."""

        class Cut(node.Relay):
            def step(self, *about):
                super().step(*about)
                self.stopping = True

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(node, "Relay", Cut)
            assert self.train(parcel)["kind"] == "stopped"
        return {"kind": "lost", "why": "NodeDiedError"}

    def events(self):
        return self.mailbox.collect()

    def stop(self):
        self.stopped = True
        self.mailbox.stop()


def orders(folder, **change):
    given = {"keep": False, "lanes": None, "every": 1e9, "cpus": 1, "gpus": 0, "imports": (), "place": str(folder)}
    return Orders(**given | change)


def driven(folder, groups, cluster, watch, **change):
    """The exit code of a driver with this cluster."""
    with Signals() as signals:
        return drive(folder, groups, cluster, orders(folder, **change), watch, signals)
