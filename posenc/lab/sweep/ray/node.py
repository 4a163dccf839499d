"""What a node does with a parcel: check that it computes as the driver would, train the group, return its record.

jax is imported only once the process has its cores, and a process may train several groups. Settings that come too late
for jax are the same for all groups of a sweep.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from posenc.lab.store import places
from posenc.lab.store.records import plain
from posenc.lab.store.schema import PlannedTrial, planned, written
from posenc.lab.sweep.ray import pinning, same
from posenc.lab.sweep.signals import Signals, Stopped
from posenc.lab.sweep.team import MEMORY

PAUSE = 0.5
"""Seconds between two looks into the mailbox."""
Post = Callable[[list[tuple]], bool]
"""Leaves events with the driver; true where it wants this node to stop."""


class Refused(Exception):
    """Why this node does not train."""


class Relay:
    """What is reported of training, sent to the driver: the newest step alone, since there may be many in a second."""

    def __init__(self, post: Post, heard: Signals):
        self._post, self._heard = post, heard
        self._events: list[tuple] = []
        self._step: tuple | None = None
        self._lock, self._greeted, self._over = threading.Lock(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._keep, name="relay", daemon=True)
        self.stopping = False

    def __enter__(self) -> Relay:
        self._add(("started", socket.gethostname()))
        self._thread.start()
        self._greeted.wait()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Raise where the driver asked for the end, or a signal did that this process got."""
        self._heard.check()
        if self.stopping:
            raise Stopped

    def note(self, text: str) -> None:
        self._add(("note", text))

    def once(self, text: str) -> None:
        """A line that the user reads once, however many nodes send it."""
        self._add(("once", text))

    def log(self, event: str, **details: Any) -> None:
        self._add(("log", event, details))

    def step(self, label: str, steps: int, total: int, loss: float) -> None:
        self._step = ("step", steps, total, loss)

    def _add(self, event: tuple) -> None:
        with self._lock:
            self._events.append(event)

    def _keep(self) -> None:
        """In a thread of its own: Ray lends out the cores of a task whose main thread waits for an answer."""
        try:
            self._exchange()
            self._greeted.set()
            while not self._over.wait(PAUSE):
                self._exchange()
            self._exchange()
        finally:
            self._greeted.set()

    def _exchange(self) -> None:
        with self._lock:
            events, self._events = self._events, []
        step, self._step = self._step, None
        self.stopping = self._post(events + ([step] if step else [])) or self.stopping


def answer(parcel: dict[str, Any], post: Post) -> dict[str, Any]:
    """Train the group of a parcel; returns its record, or why there is none."""
    head = {"host": socket.gethostname()}
    with Signals() as heard, Relay(post, heard) as relay:
        try:
            relay.check()
            if why := same.difference(parcel["facts"], same.facts()):
                raise Refused(f"{why}; install the same there")
            _settle(parcel, relay)
            return head | _trained(parcel, relay)
        except Refused as why:
            return head | {"kind": "refused", "why": str(why)}
        except Stopped:
            if heard.code:  # the node is about to go, and the driver sends the group to another
                raise SystemExit(heard.code) from None
            return head | {"kind": "stopped"}
        except Exception as error:  # one group must not end a sweep; the driver keeps its traceback
            return head | failed(error)


def failed(error: Exception) -> dict[str, Any]:
    """The answer for a group that raised this."""
    outcome = "oom" if "RESOURCE_EXHAUSTED" in str(error) else "failed"
    why = f"{type(error).__name__}: {str(error)[:200]}"
    return {"kind": "failed", "outcome": outcome, "why": why, "text": traceback.format_exc()}


def _settle(parcel: dict[str, Any], relay: Relay) -> None:
    """Cores, GPUs and jax, for the first group that this process trains."""
    if "jax" not in sys.modules:
        if not parcel["gpus"]:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        elif parcel["gpus"] < 1:
            os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{MEMORY * parcel['gpus']:.3f}"
        from posenc.lab.train import device

        if warning := device.prepare(pinning.pin(parcel["cpus"])):
            relay.once(warning)
    import jax

    if parcel["gpus"] and jax.default_backend() == "cpu":
        raise Refused("has a GPU for the group, but its jax finds none; install jax[cuda13] there")


def _trained(parcel: dict[str, Any], relay: Relay) -> dict[str, Any]:
    from posenc.lab.sweep import plan
    from posenc.lab.sweep.trainer import Assigned, Home, Trained, Trainer
    from posenc.lab.train.lanes import arrangement

    def answered(trained: Trained, saver: Any) -> dict[str, Any]:
        saver.wait()
        record = json.dumps(plain(written(trained.record)), allow_nan=False)
        return {"kind": "trained", "outcome": trained.outcome, "record": record, "models": trained.models}

    try:
        _imported(parcel["imports"])
        lines = [planned(PlannedTrial, json.loads(text), "a line of the parcel", "") for text in parcel["lines"]]
        resolved = plan.planned_run(lines[0].run)
        how = arrangement(parcel["lanes"])
    except ValueError as error:
        raise Refused(f"cannot train it: {str(error).removesuffix('.')}") from error
    group = Assigned(lines[0].group, lines, resolved, parcel["token"], lambda: False)
    trainer = Trainer(how, parcel["keep"], parcel["every"], relay, relay.check, relay.log)
    with _home(parcel, group.name, relay) as at:
        return trainer.train(group, at and Home(*at), answered)


@contextlib.contextmanager
def _home(parcel: dict[str, Any], group: str, relay: Relay) -> Iterator[tuple | None]:
    """Where checkpoints go, or None where they would not outlive this node."""
    if why := places.unseen(parcel["place"], parcel["sign"]):
        relay.once(f"No checkpoints: {why}; give --checkpoints a folder or URL that all nodes see.")
        yield None
        return
    with places.home(parcel["place"], group) as at:
        yield at


def _imported(modules: list[str]) -> None:
    """Import the modules of the user's classes, as the driver did."""
    from posenc.lab.cli.modules import load

    for module in modules:
        load(module)
