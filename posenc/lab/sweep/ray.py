"""A sweep on a Ray cluster: nodes train groups and return their records, the driver writes them into the run folder.

The driver holds the claim of each group that it sent, so that workers beside it take others, and sends a group again
whose node or process was lost; were the driver lost, the same command does what is left. Nodes need neither claims nor
the run folder. Nothing imports Ray before `join` does, and a node imports jax once its processes and GPUs are settled.
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
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from posenc.lab.spec.modules import load
from posenc.lab.store import checkpoints, parameters, places
from posenc.lab.store import folder as store
from posenc.lab.store.schema import PlannedTrial
from posenc.lab.sweep.events import Events
from posenc.lab.sweep.progress import Progress, Reported, Tally
from posenc.lab.sweep.saving import drop_recorded
from posenc.lab.sweep.signals import PREEMPTED, Signals, Stopped
from posenc.lab.sweep.team import DONE, FAILED, MEMORY, outcome
from posenc.lab.train import device
from posenc.language.echo import plural

LOST_AT_MOST = 5
"""How often in a row a group is sent again without having gone further, before it counts as failed."""
SPARE = 4
"""So many groups or more wait at the cluster, so that one that grows by demand sees it."""


@contextlib.contextmanager
def join(address: str, cpus: int, gpus: float) -> Iterator[Cluster]:
    """The cluster while the block runs. What is under way there ends with the block, and with this process.

    Raises `ValueError` where it cannot be joined.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except SystemExit:  # Ray's own answer to SIGTERM
        raise SystemExit(PREEMPTED) from None
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ValueError(refusal(address, str(error))) from error
    finally:
        signal.signal(signal.SIGTERM, handler)
    try:
        yield Cluster(ray, cpus, gpus)
    finally:
        ray.shutdown()


def refusal(address: str, message: str) -> str:
    """One sentence of what Ray says in many lines."""
    words = " ".join(message.split())
    if "ersion mismatch" in words:
        versions = words.partition(": ")[2].replace("This process", "and this process")
        return f"Ray at {address} is of another version: {versions}; install the same on both."
    if "ould not find any running" in words:
        return (
            "No Ray cluster runs on this machine; start one with `ray start --head`, or give --ray.address HOST:PORT."
        )
    here = socket.gethostname()
    return f"Ray at {address} cannot be joined from {here}: {words[:300]}; run the driver on a node of the cluster."


class Cluster:
    """The cluster as the driver sees it; each group has so many cores and GPUs."""

    def __init__(self, ray: Any, cpus: int, gpus: float):
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self._needs = ray, {"CPU": cpus, "GPU": gpus}
        mailbox, train = remote_parts()
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._mailbox = ray.remote(num_cpus=0, scheduling_strategy=here)(mailbox).remote()
        # the driver sends a lost group again itself: Ray would do it in silence, and for ever where memory is short
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        self._train = ray.remote(**options)(train).options(name="train")

    def fits(self) -> int:
        """How many groups the nodes can train at once."""
        return sum(capacity(node["Resources"], self._needs) for node in self._ray.nodes() if node["Alive"])

    def send(self, parcel: Mapping[str, Any]) -> Any:
        """Hand a group over; returns the reference of its answer."""
        return self._train.remote(parcel, self._mailbox)

    def receive(self, sent: Sequence[Any], seconds: float) -> tuple[list[tuple[str, tuple]], dict[Any, dict[str, Any]]]:
        """The answers that come within so many seconds, after what nodes reported before, each with its token."""
        answers = {ref: self._answer(ref) for ref in self._ray.wait(sent, timeout=seconds)[0]}
        return self._ray.get(self._mailbox.collect.remote()), answers

    def stop(self, sent: Sequence[Any]) -> None:
        """Have nodes save and end, as by Ctrl-C there; what waits is not begun."""
        for ref in sent:
            self._ray.cancel(ref, recursive=False)

    def _answer(self, ref: Any) -> dict[str, Any]:
        try:
            return self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            return {"kind": "lost", "why": type(error).__name__}


def capacity(resources: Mapping[str, float], needs: Mapping[str, float]) -> int:
    """How many groups of these needs a node trains at once."""
    return min(int(resources.get(name, 0) // need) for name, need in needs.items() if need)


def remote_parts() -> tuple[type, Callable[[Mapping[str, Any], Any], dict[str, Any]]]:
    """The mailbox of the driver, and what a node does. Ray carries local names by value, and posenc may be missing
    or be another: they need Python and Ray alone."""

    class Mailbox:
        def __init__(self):
            self.events = []

        def post(self, token, event):
            self.events.append((token, event))

        def collect(self):
            events, self.events = self.events, []
            return events

    def train(parcel: Mapping[str, Any], mailbox: Any) -> dict[str, Any]:
        import socket

        import ray

        try:
            from posenc.lab.sweep.ray import answer
        except Exception as error:
            why = f"cannot import posenc ({error}); install it there, as on the driver's machine"
            return {"kind": "refused", "host": socket.gethostname(), "why": why}
        posts = []

        def post(*event: Any) -> None:  # without waiting: Ray lends out the cores of a task that waits
            posts[:] = [mailbox.post.remote(parcel["token"], event)]

        result = answer(parcel, post)
        ray.wait(posts, timeout=5)  # else the result might overtake what was reported before
        return result

    return Mailbox, train


@dataclass
class Sent:
    """A group that is with the cluster."""

    name: str
    lines: Sequence[PlannedTrial]
    claim: Any
    release: contextlib.ExitStack
    reported: Reported
    token: str = ""
    """That of this attempt: a lost one may still be writing checkpoints."""
    host: str = ""
    began: float = field(default_factory=time.monotonic)
    step: int = 0
    """The most that it has done in any attempt."""
    lost: int = 0
    """How often it was lost since it last went further."""

    @property
    def label(self) -> str:
        return f"{self.lines[0].label} · {self.lines[0].task}"


class Refused(ValueError):
    """Why a node does not train."""


class Driver:
    """Sends groups and receives their records. `orders` are what is the same for all groups: `keep`, `lanes`, `cpus`,
    `gpus`, seconds between checkpoints (`every`), modules of the user's (`imports`), the `place` of checkpoints."""

    def __init__(self, folder: Path, cluster: Cluster, orders: Mapping[str, Any], watch: Progress):
        self.folder, self.cluster, self.watch, self.place = folder, cluster, watch, orders["place"]
        self.orders = {**orders, "software": device.software(), "sign": secrets.token_hex(8)}
        self.sent: dict[Any, Sent] = {}
        self.failed, self._notes = 0, set[str]()
        self._log, self._recorded = Events(folder, watch.note), store.Recorded(folder)

    def drive(self, groups: Mapping[str, Sequence[PlannedTrial]], signals: Signals) -> int:
        """Have the cluster train these groups and record them; returns the exit code.

        Raises `Refused` where a node refuses, and `DiskError` where a record cannot be written; before that, as at a
        signal, all nodes save what they train.
        """
        places.offer(self.place, self.orders["sign"])
        try:
            left = {claim.group for claim in store.held(self.folder)}.union(places.groups(self.place))
            drop = partial(places.drop, self.place)  # what a kill after their record left
            drop_recorded(self.folder, store.finished(self.folder) & left, drop)
            self._run(groups, signals.check)
        except Stopped:
            self._stop()
            self.watch.note("Stopped; what is recorded is safe, and the same command goes on.")
            return signals.code
        except (Refused, store.DiskError):
            self._stop()
            raise
        finally:
            for group in self.sent.values():
                group.release.close()
            places.withdraw(self.place, self.orders["sign"])
        return FAILED if self.failed else DONE

    def _run(self, groups: Mapping[str, Sequence[PlannedTrial]], check: Callable[[], None]) -> None:
        waiting, before = deque(groups.items()), store.error_files(self.folder).keys()
        tally = Tally(self.folder, {name: len(lines) for name, lines in groups.items()})
        while waiting or self.sent:
            check()
            if not (fits := self.cluster.fits()):
                need = f"{plural(self.orders['cpus'], 'CPU')} and {self.orders['gpus']:g} GPUs for a group"
                self._note(f"No node of the cluster has {need}; groups wait until one has.")
            elsewhere = store.error_files(self.folder).keys() - before  # failed by another worker: not tried again
            for _ in range(min(len(waiting), fits + max(fits, SPARE) - len(self.sent))):
                name, lines = waiting.popleft()
                if name not in elsewhere and not self._take(name, lines, tally):
                    waiting.append((name, lines))
            if waiting and not self.sent:
                self._note("Other workers hold the groups that are left; waiting for them.")
            for group, answer in self._receive():
                self._handle(group, answer)
            self.watch.others(tally.others())

    def _stop(self) -> None:
        """Have every node save, and record what is finished. Raises `DiskError` once all have answered."""
        problem: store.DiskError | None = None
        self.cluster.stop(list(self.sent))
        while self.sent:
            for group, answer in self._receive():
                try:
                    with group.release:
                        if answer["kind"] in ("trained", "failed"):
                            self._handle(group, answer)
                except store.DiskError as error:
                    problem = error
        if problem is not None:
            raise problem

    def _take(self, name: str, lines: Sequence[PlannedTrial], tally: Tally) -> bool:
        """Claim a group and send it; False where another worker holds it."""
        release = contextlib.ExitStack()
        claim = release.enter_context(store.claim(self.folder, name))
        if claim is None:
            return False
        recorded = () if self.orders["keep"] else set(self._recorded.ids(name))
        left = [line for line in lines if line.id not in recorded]
        group = Sent(name, left or lines, claim, release, Reported(self.watch, self._log))
        if left:
            tally.ours(name)
            store.clear_error(self.folder, name)
            self._send(group)
        else:
            release.close()
        return True

    def _send(self, group: Sent) -> None:
        group.token, group.host = secrets.token_hex(8), ""
        group.reported.of(group.name)
        parcel = {**self.orders, "token": group.token, "lines": pickle.dumps(group.lines)}
        self.sent[self.cluster.send(parcel)] = group

    def _receive(self) -> list[tuple[Sent, Mapping[str, Any]]]:
        """The answers that come within a second, once all is heard that was reported before them."""
        if not self.sent:
            time.sleep(1)
            return []
        events, answers = self.cluster.receive(list(self.sent), 1.0)
        senders = {group.token: group for group in self.sent.values()}
        for token, event in events:
            if token in senders:  # else of an attempt that was given up
                self._hear(senders[token], *event)
        return [(self.sent.pop(ref), answer) for ref, answer in answers.items()]

    def _hear(self, group: Sent, kind: str, *what: Any) -> None:
        match kind, what:
            case "started", (host,):
                group.host, group.began = host, time.monotonic()
                self.watch.group(group.label, len(group.lines))
                self.watch.note(f"{group.label}: on {host}")
                group.claim.name_job(f"ray on {host}")
                self._log("started", group=group.name, host=host)
            case "step", (steps, total, loss):
                group.lost = 0 if steps > group.step else group.lost
                group.step = max(group.step, steps)
                group.reported.step(group.label, steps, total, loss)
            case "log", (event, details):
                self._log(event, **details, host=group.host)
            case "note", (text,):
                self._note(text)

    def _handle(self, group: Sent, answer: Mapping[str, Any]) -> None:
        kind, why, where = answer["kind"], answer.get("why", ""), f"on {group.host} " if group.host else ""
        if kind == "lost":
            group.lost += 1
            if group.lost < LOST_AT_MOST:
                self.watch.note(f"{group.label}: lost {where}({why}); sent again.")
                self._log("lost", group=group.name, host=group.host, why=why)
                return self._send(group)
            why = (
                f"The process {where}ended {group.lost} times near step {group.step} ({why}); its memory may be short."
            )
            answer = {"outcome": "failed", "text": why}
        with group.release:
            if kind == "refused":
                raise Refused(f"The node {answer['host']} {why}.")
            if kind != "trained":
                self.failed += 1
                path = store.write_error(self.folder, group.name, answer["outcome"], answer["text"])
                self.watch.note(f"{group.label} {answer['outcome']}: {why} (see {path.name})")
            elif group.claim.taken():
                return self.watch.taken(group.label)
            else:
                self._record(group, answer)
            seconds = time.monotonic() - group.began
            self._log(answer["outcome"], group=group.name, seconds=round(seconds, 3), host=group.host)
            self.watch.finished(group.label, answer["outcome"], seconds)

    def _record(self, group: Sent, answer: Mapping[str, Any]) -> None:
        """Write what a node trained; a full disk gets the space of its checkpoints."""
        writes = [partial(store.write_record, self.folder, answer["record"])]
        for id, model in answer["models"].items():  # after the record: a full disk must not cost results
            writes.append(partial(parameters.save, self.folder, id, model))
        for write in writes:
            try:
                write()
            except store.DiskError as error:
                if error.errno not in checkpoints.FULL:
                    raise
                self.watch.note(f"{group.label}: the disk is full, so its checkpoints are dropped.")
                places.drop(self.place, group.name)
                write()
        places.drop(self.place, group.name)

    def _note(self, text: str) -> None:
        """A line that the user reads once, however many nodes send it."""
        if text not in self._notes:
            self._notes.add(text)
            self.watch.note(text)


def run_on_cluster(folder: Path, address: str, orders: Mapping[str, Any], watch: Progress) -> int:
    """Have a cluster train what is left of the plan, by the orders of `Driver`; returns the exit code.

    Raises `ValueError` where the cluster or a node refuses.
    """
    from posenc.lab.sweep import tuning
    from posenc.lab.sweep.loop import waiting

    for lines_of_plan, lines, total in tuning.stages(folder):
        store.ready(folder)
        groups = waiting(folder, lines, store.survey(folder).outcomes, orders["keep"])
        watch.begin(total, len(lines_of_plan) - sum(map(len, groups.values())), None)
        code = drive(folder, groups, address, orders, watch) if groups else DONE
        if code not in (DONE, FAILED):
            return code
    return outcome(folder)


def drive(
    folder: Path, groups: Mapping[str, Sequence[PlannedTrial]], address: str, orders: Mapping[str, Any], watch: Progress
) -> int:
    """Join the cluster and have it train these groups; returns the exit code."""
    with join(address, orders["cpus"], orders["gpus"]) as cluster, Signals() as signals:
        return Driver(folder, cluster, orders, watch).drive(groups, signals)


def answer(parcel: Mapping[str, Any], post: Callable[..., None]) -> dict[str, Any]:
    """Train the group of a parcel on this node and post what happens; returns its record, or why there is none."""
    head = {"host": socket.gethostname()}
    with Signals() as signals:
        post("started", head["host"])
        try:
            return head | train(parcel, post, signals.check)
        except Refused as why:
            return head | {"kind": "refused", "why": str(why)}
        except Stopped:  # by the driver, which expects it, or since the node is about to go
            return head | {"kind": "lost", "why": "stopped by a signal"}
        except Exception as error:  # one group must not end a sweep; the driver keeps its traceback
            why = f"{type(error).__name__}: {str(error)[:200]}"
            result = "oom" if "RESOURCE_EXHAUSTED" in why else "failed"
            return head | {"kind": "failed", "outcome": result, "why": why, "text": traceback.format_exc()}


def train(parcel: Mapping[str, Any], post: Callable[..., None], check: Callable[[], None]) -> dict[str, Any]:
    """Train from the newest checkpoint, where this node sees any. Raises `Refused` before that."""
    driver, node = parcel["software"], device.software()
    for name in sorted(driver.keys() | node.keys()):
        mine, other = driver.get(name, "none"), node.get(name, "missing")
        if mine != other:
            raise Refused(f"has {name} {other}, and the driver has {mine}; install the same there")
    prepare(parcel["cpus"], parcel["gpus"], post)
    from posenc.lab.sweep.plan import planned_run
    from posenc.lab.sweep.saving import Home
    from posenc.lab.sweep.trainer import Assigned, Trained, Trainer
    from posenc.lab.train.lanes import arrangement

    def finish(trained: Trained, saver: Any) -> dict[str, Any]:
        saver.wait()
        return {"kind": "trained", "outcome": trained.outcome, "record": trained.record, "models": trained.models}

    lines: list[PlannedTrial] = pickle.loads(parcel["lines"])
    try:
        for module in parcel["imports"]:
            load(module)
        resolved, lanes = planned_run(lines[0].run), arrangement(parcel["lanes"])
    except ValueError as error:
        raise Refused(f"cannot train it: {str(error).removesuffix('.')}") from error
    watch: Any = SimpleNamespace(note=partial(post, "note"), step=lambda label, *step: post("step", *step))
    log = lambda event, **details: post("log", event, details)  # noqa: E731
    trainer = Trainer(lanes, parcel["keep"], parcel["every"], watch, check, log)
    group = Assigned(lines[0].group, lines, resolved, parcel["token"], lambda: False)
    if why := places.unseen(parcel["place"], parcel["sign"]):
        post("note", f"No checkpoints: {why}; give --checkpoints a folder or URL that all nodes see.")
        return trainer.train(group, None, finish)
    with places.home(parcel["place"], group.name) as home:
        return trainer.train(group, Home(*home), finish)


def prepare(cpus: int, gpus: float, post: Callable[..., None]) -> None:
    """Settle GPUs, cores and jax for the first group of this process; all groups of a sweep have as many."""
    if "jax" not in sys.modules:
        if not gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        elif gpus < 1:
            os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{MEMORY * gpus:.3f}"
        os.environ["NPROC"] = str(cpus)  # the threads of XLA, which takes all cores else
        if warning := device.prepare(cpus):
            post("note", warning)
    import jax

    if gpus and jax.default_backend() == "cpu":
        raise Refused("has a GPU for the group, but its jax finds none; install jax[cuda13] there")
