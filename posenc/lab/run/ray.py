"""A sweep on a Ray cluster: nodes train groups and return their records, the driver writes them into the run folder.

The driver holds the claims of groups that it sent, so that workers beside it take others. It sends a group again if its
node or process was lost. If the driver is lost, the same command does what is left. Importing this imports neither Ray
nor jax, which a node confines to its cores first.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from posenc.lab.run.progress import Events, Progress, Reporter, Tally
from posenc.lab.run.signals import PREEMPTED, Signals, Stopped
from posenc.lab.run.team import MEMORY, failure, outcome
from posenc.lab.spec.modules import load
from posenc.lab.store import folder as store
from posenc.lab.store import places
from posenc.lab.store.schema import PlannedTrial
from posenc.lab.train import device
from posenc.language.echo import plural

LOST_AT_MOST = 5  # how often in a row a group is sent again that goes no further, before it counts as failed
SPARE = 4  # so many groups or more wait at the cluster, so that one that grows by demand sees it


@contextlib.contextmanager
def join(address: str) -> Iterator[Any]:
    """Ray, joined to a cluster while the block runs; what is under way there ends with it."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except SystemExit:  # Ray's own answer to SIGTERM
        raise SystemExit(PREEMPTED) from None
    finally:
        signal.signal(signal.SIGTERM, handler)
    try:
        yield ray
    finally:
        ray.shutdown()


def remote_parts(ray: Any, cpus: int, gpus: float) -> tuple[Any, Any]:
    """Return the remote function that trains a group on a node, and the mailbox beside the driver. Ray carries local
    names by value, and posenc may be missing on a node or be another. So both need Python and Ray alone."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    class Mailbox(list):
        def post(self, token, event):
            self.append((token, event))

        def collect(self):
            events, self[:] = self[:], []
            return events

    def train(parcel: Mapping[str, Any], mailbox: Any) -> dict[str, Any]:
        import ray

        posts = []

        def post(*event: Any) -> None:  # without waiting: Ray lends out the cores of a task that waits
            posts[:] = [mailbox.post.remote(parcel["token"], event)]

        post("started", socket.gethostname())
        try:
            from posenc.lab.run.ray import answer

            return answer(parcel, post)
        except ImportError as error:
            return {"kind": "refused", "why": f"cannot import posenc ({error}); install it there, as on this machine"}
        finally:
            ray.wait(posts, timeout=5)  # else the answer might overtake what was reported before

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    # the driver sends a lost group again itself: Ray would do it in silence, and for ever where memory is short
    remote = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=0, scheduling_strategy="SPREAD")
    return remote(train), ray.remote(num_cpus=0, scheduling_strategy=here)(Mailbox).remote()


@dataclass
class Sent:
    """A group that is with the cluster. A lost attempt may still write checkpoints, so each has its `token`. `step` is
    the most that any did, and `lost` counts the losses since."""

    name: str
    label: str
    lines: Sequence[PlannedTrial]
    claim: Any
    release: contextlib.ExitStack
    reported: Reporter
    token: str = ""
    host: str = "a node"
    began: float = 0.0
    step: int = 0
    lost: int = 0


class Refused(ValueError):
    """Why a node does not train."""


class Driver:
    """Sends groups and receives their records. `orders` are the same for all groups: `keep`, `lanes`, `cpus`, `gpus`,
    seconds between checkpoints (`every`), modules of the user's (`imports`), the `place` of checkpoints."""

    def __init__(self, folder: Path, ray: Any, orders: Mapping[str, Any], watch: Progress):
        self.folder, self.watch, self.place = folder, watch, orders["place"]
        self.ray, (self.train, self.mailbox) = ray, remote_parts(ray, orders["cpus"], orders["gpus"])
        self.orders = {**orders, "software": device.software(), "sign": secrets.token_hex(8)}
        self.sent, self.stopping, self._notes = dict[Any, Sent](), False, set[str]()
        self._log, self._recorded = Events(folder, watch.note), store.Recorded(folder)

    def drive(self, check: Callable[[], None]) -> None:
        """Have the cluster train what is left of the plan, and record it. All nodes save where one refuses (`Refused`),
        no record can be written (`DiskError`), or `check` raises `Stopped`, as it does at a signal."""
        from posenc.lab.run import tuning
        from posenc.lab.run.saving import drop_recorded
        from posenc.lab.run.worker import waiting

        places.offer(self.place, self.orders["sign"])
        try:
            left = {claim.group for claim in store.held(self.folder)}.union(places.groups(self.place))
            left &= store.finished(self.folder)  # what a kill after their record left
            drop_recorded(self.folder, left, partial(places.drop, self.place))
            for plan, lines, total in tuning.stages(self.folder):
                groups = waiting(self.folder, lines, store.survey(self.folder).outcomes, self.orders["keep"])
                self.watch.begin(total, len(plan) - sum(map(len, groups.values())), None)
                self._run(groups, check)
        except (Stopped, Refused, store.DiskError):
            self._stop()
            raise
        finally:
            for group in self.sent.values():
                group.release.close()
            places.withdraw(self.place, self.orders["sign"])

    def _run(self, groups: Mapping[str, Sequence[PlannedTrial]], check: Callable[[], None]) -> None:
        waiting, before = deque(groups.items()), store.error_files(self.folder).keys()
        tally = Tally(self._recorded, groups)
        cpus, gpus = self.orders["cpus"], self.orders["gpus"]
        while waiting or self.sent:
            check()
            if not (fits := capacity(self.ray.nodes(), cpus, gpus)):
                need = f"{plural(cpus, 'CPU')} and {gpus:g} GPUs for a group"
                self._note(f"No node of the cluster has {need}; groups wait until one has.")
            elsewhere = store.error_files(self.folder).keys() - before  # failed by another worker: not tried again
            for _ in range(min(len(waiting), fits + max(fits, SPARE) - len(self.sent))):
                name, lines = waiting.popleft()
                if name not in elsewhere and not self._take(name, lines, tally):
                    waiting.append((name, lines))
            if waiting and not self.sent:
                self._note("Other workers hold the groups that are left; waiting for them.")
            self._receive()
            self.watch.others(tally.others())

    def _stop(self) -> None:
        """Have nodes save and end, as by Ctrl-C there, and record what is finished; what waits is not begun."""
        self.stopping = True
        for ref in self.sent:
            self.ray.cancel(ref, recursive=False)
        while self.sent:
            with contextlib.suppress(store.DiskError):  # the others still save
                self._receive()

    def _take(self, name: str, lines: Sequence[PlannedTrial], tally: Tally) -> bool:
        """Claim a group and send it; False where another worker holds it."""
        from posenc.lab.run.worker import waiting

        with contextlib.ExitStack() as stack:
            claim, finished = stack.enter_context(store.claim(self.folder, name)), self._recorded.ids()
            if claim and (left := waiting(self.folder, lines, finished, self.orders["keep"]).get(name)):
                label = f"{left[0].label} · {left[0].task}"
                tally.ours(left)
                store.clear_error(self.folder, name)
                self._send(Sent(name, label, left, claim, stack.pop_all(), Reporter(self.watch, self._log)))
            return claim is not None

    def _send(self, group: Sent) -> None:
        group.token = secrets.token_hex(8)
        group.reported.of(group.name)
        parcel = {**self.orders, "token": group.token, "lines": pickle.dumps(group.lines)}
        self.sent[self.train.remote(parcel, self.mailbox)] = group

    def _receive(self) -> None:
        """Handle what is answered within a second, after what was reported before."""
        if not self.sent:
            return time.sleep(1)
        answers = {}
        for ref in self.ray.wait(list(self.sent), timeout=1)[0]:
            try:
                answers[ref] = self.ray.get(ref)
            except self.ray.exceptions.RayError as error:
                answers[ref] = {"kind": "lost", "why": type(error).__name__}
        senders = {group.token: group for group in self.sent.values()}
        for token, event in self.ray.get(self.mailbox.collect.remote()):
            if token in senders:  # else of an attempt that was given up
                self._hear(senders[token], *event)
        for ref, answer in answers.items():
            self._handle(self.sent.pop(ref), answer)

    def _hear(self, group: Sent, kind: str, *what: Any) -> None:
        match kind, what:
            case "started", (host,):
                group.host, group.began = host, time.monotonic()
                self.watch.group(group.label, len(group.lines))
                self.watch.note(f"{group.label}: on {host}")
                group.claim.name_job(f"ray on {host}")
                self._log("started", group=group.name, host=host)
            case "step", (steps, total, loss):
                group.lost, group.step = 0 if steps > group.step else group.lost, max(group.step, steps)
                group.reported.step(group.label, steps, total, loss)
            case "log", (event, details):
                self._log(event, **details, host=group.host)
            case "note", (text,):
                self._note(text)

    def _handle(self, group: Sent, answer: Mapping[str, Any]) -> None:
        kind, why, result = answer["kind"], answer.get("why", ""), answer.get("outcome", "failed")
        if kind == "lost" and not self.stopping:
            group.lost += 1
            if group.lost < LOST_AT_MOST:
                self.watch.note(f"{group.label}: lost on {group.host} ({why}); sent again.")
                self._log("lost", group=group.name, host=group.host, why=why)
                return self._send(group)
            why = f"its processes ended {group.lost} times near step {group.step} ({why}); memory may be short"
        with group.release:
            if kind in ("lost", "refused") and self.stopping:
                return
            if kind == "refused":
                raise Refused(f"The node {group.host} {why}.")
            if kind == "trained" and group.claim.taken():
                return self.watch.taken(group.label)
            if kind == "trained":
                self._record(group, answer)
            else:
                path = store.write_error(self.folder, group.name, result, answer.get("text", why))
                self.watch.note(f"{group.label} {result}: {why} (see {path.name})")
            seconds = time.monotonic() - group.began
            self._log(result, group=group.name, seconds=round(seconds, 3), host=group.host)
            self.watch.finished(group.label, result, seconds)

    def _record(self, group: Sent, answer: Mapping[str, Any]) -> None:
        from posenc.lab.run.saving import write_results

        def make_room() -> None:
            self.watch.note(f"{group.label}: the disk is full, so its checkpoints are dropped.")
            places.drop(self.place, group.name)

        write_results(self.folder, answer["record"], answer["models"], make_room)
        places.drop(self.place, group.name)

    def _note(self, text: str) -> None:
        if text not in self._notes:  # else many nodes say the same
            self._notes.add(text)
            self.watch.note(text)


def capacity(nodes: Sequence[Mapping[str, Any]], cpus: int, gpus: float) -> int:
    """Return how many groups of this many cores and GPUs the nodes train at once."""
    needs = {"CPU": cpus} | ({"GPU": gpus} if gpus else {})
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    return sum(min(int(node.get(name, 0) // need) for name, need in needs.items()) for node in alive)


def run_on_cluster(folder: Path, address: str, orders: Mapping[str, Any], watch: Progress) -> int:
    """Have a cluster train what is left of the plan, by `orders` (see `Driver`); returns the exit code."""
    store.ready(folder)
    with join(address) as ray, Signals() as signals:
        try:
            Driver(folder, ray, orders, watch).drive(signals.check)
        except Stopped:
            watch.note("Stopped; what is recorded is safe, and the same command goes on.")
            return signals.code
    return outcome(folder)


def answer(parcel: Mapping[str, Any], post: Callable[..., None]) -> dict[str, Any]:
    """Train the group of a parcel on this node; returns its record, or why there is none."""
    with Signals() as signals:
        try:
            return train(parcel, post, signals.check)
        except Refused as error:
            return {"kind": "refused", "why": str(error)}
        except Stopped:  # by the driver, which expects it, or since the node is about to go
            return {"kind": "lost", "why": "stopped by a signal"}
        except Exception as error:  # one group must not end a sweep; the driver keeps its traceback
            from posenc.lab.spec.own import failed  # it imports jax, which a node may only do once it is confined

            why, text = failed(error)
            return {"kind": "failed", "outcome": failure(error), "why": why, "text": text}


def train(parcel: Mapping[str, Any], post: Callable[..., None], check: Callable[[], None]) -> dict[str, Any]:
    """Train from the newest checkpoint, where this node sees any. Raises `Refused` before that."""
    for name, value in sorted(device.software().items() - parcel["software"].items()):
        raise Refused(f"has {name} {value}, and the driver has {parcel['software'].get(name)}; install the same there")
    if "jax" not in sys.modules:  # the first group of this process
        share = parcel["gpus"] * MEMORY if 0 < parcel["gpus"] < 1 else None
        if warning := device.confine(parcel["cpus"], bool(parcel["gpus"]), share):
            post("note", warning)
    from posenc.lab.run.plan import planned_run
    from posenc.lab.run.saving import Home
    from posenc.lab.run.trainer import Assigned, Trained, Trainer
    from posenc.lab.train.lanes import arrangement

    def finish(trained: Trained, saver: Any) -> dict[str, Any]:
        saver.wait()
        return {"kind": "trained", "outcome": trained.outcome, "record": trained.record, "models": trained.models}

    if parcel["gpus"] and device.describe()["platform"] == "cpu":
        raise Refused("has a GPU for the group, but its jax finds none; install jax[cuda13] there")
    lines: list[PlannedTrial] = pickle.loads(parcel["lines"])
    try:
        for module in parcel["imports"]:
            load(module)
        resolved, lanes = planned_run(lines[0].run), arrangement(parcel["lanes"])
    except ValueError as error:
        raise Refused(f"cannot train it: {str(error).removesuffix('.')}") from error
    watch: Any = SimpleNamespace(note=partial(post, "note"), step=lambda label, *step: post("step", *step))
    trainer = Trainer(lanes, parcel["keep"], parcel["every"], watch, check, lambda event, **d: post("log", event, d))
    group = Assigned(lines[0].group, lines, resolved, parcel["token"], lambda: False)
    if why := places.unseen(parcel["place"], parcel["sign"]):
        post("note", f"No checkpoints: {why}; give --checkpoints a folder or URL that all nodes see.")
        return trainer.train(group, None, finish)
    with places.home(parcel["place"], group.name) as home:
        return trainer.train(group, Home(*home), finish)
