"""The driver of a cluster: it claims groups, sends them to nodes, and writes the records that come back.

Nodes need neither claims nor the run folder. The driver holds the claim of each group that it sent, so that workers
beside it take others, and sends a group again whose node or process was lost. Were the driver lost, the same command
does what is left.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from posenc.lab.store import checkpoints, parameters, places
from posenc.lab.store import folder as store
from posenc.lab.store.records import canonical
from posenc.lab.store.running import STEP
from posenc.lab.store.schema import GroupRecord, PlannedTrial, read, written
from posenc.lab.sweep.progress import Events, Pace, Progress, Tally
from posenc.lab.sweep.ray import same
from posenc.lab.sweep.saving import drop_recorded
from posenc.lab.sweep.signals import Signals, Stopped
from posenc.lab.sweep.team import DONE, FAILED, PAUSES
from posenc.language.echo import plural

LOST_AT_MOST = 5
"""How often in a row a group is sent again without having gone further, before it counts as failed."""
SPARE = 4


class Cluster(Protocol):
    """What trains groups elsewhere."""

    def fits(self) -> int: ...

    def send(self, parcel: dict[str, Any]) -> Any: ...

    def arrived(self, sent: Sequence[Any], seconds: float) -> dict[Any, dict[str, Any]]: ...

    def events(self) -> list[tuple[str, tuple]]: ...

    def stop(self) -> None: ...


class Orders(NamedTuple):
    """What is the same for all groups of a sweep."""

    keep: bool
    lanes: str | None
    every: float
    """Seconds between two checkpoints."""
    cpus: int
    gpus: float
    imports: Sequence[str]
    """Modules of the user's classes."""
    place: str
    """Where checkpoints outlive a node."""


@dataclass
class Sent:
    """A group that is with the cluster."""

    name: str
    lines: Sequence[PlannedTrial]
    claim: Any
    release: contextlib.ExitStack
    attempts: int = 0
    lost: int = 0
    """How often it was lost since it last went further."""
    host: str = ""
    """Where it trains; empty while it waits."""
    began: float = 0.0
    step: int = 0
    """The most that it has done in any attempt."""
    pace: Pace = field(default_factory=Pace)

    @property
    def label(self) -> str:
        return f"{self.lines[0].label} · {self.lines[0].task}"

    @property
    def token(self) -> str:
        """That of this attempt: a lost one may still be writing checkpoints."""
        return hashlib.sha256(f"{self.claim.token} {self.attempts}".encode()).hexdigest()[:16]


def room(fits: int) -> int:
    """How many groups may be with a cluster that trains so many at once. Some wait there, so that a cluster which grows
    by demand sees it."""
    return fits + max(fits, SPARE)


class RefusedByNode(ValueError):
    """A node computes otherwise than the driver's machine."""


def drive(
    folder: Path,
    groups: Mapping[str, Sequence[PlannedTrial]],
    cluster: Cluster,
    orders: Orders,
    watch: Progress,
    signals: Signals,
) -> int:
    """Have a cluster train these groups and record them; returns the exit code.

    Raises `ValueError` where a node refuses, and `DiskError` where a record cannot be written; before that, as at a
    signal, all nodes save what they train.
    """
    sign = secrets.token_hex(8)
    places.offer(orders.place, sign)
    driver = Driver(folder, cluster, orders, sign, watch)
    try:
        driver.clear()
        driver.run(groups, signals.check)
    except Stopped:
        driver.stop()
        watch.note("Stopped; what is recorded is safe, and the same command goes on.")
        return signals.code
    except (RefusedByNode, store.DiskError):
        driver.stop()
        raise
    finally:
        driver.release()
        places.withdraw(orders.place, sign)
    return FAILED if driver.failed else DONE


class Driver:
    """Sends groups and receives their records."""

    def __init__(self, folder: Path, cluster: Cluster, orders: Orders, sign: str, watch: Progress):
        self.folder, self.cluster, self.orders, self.sign, self.watch = folder, cluster, orders, sign, watch
        self._log, self.failed = Events(folder, watch.note), 0
        self.sent: dict[Any, Sent] = {}
        self._facts = same.facts()
        self._noted: set[str] = set()
        self._recorded = store.Recorded(folder)

    def run(self, groups: Mapping[str, Sequence[PlannedTrial]], check: Callable[[], None]) -> None:
        """Send every group, and receive its record or see it recorded by others."""
        waiting, held, pause, look = dict(groups), dict[str, Sequence[PlannedTrial]](), PAUSES[0], 0.0
        tally = Tally(self.folder, {name: len(lines) for name, lines in groups.items()})
        before = store.error_files(self.folder).keys()
        while waiting or held or self.sent:
            check()
            for name in list(waiting)[: room(self._fits()) - len(self.sent)]:
                lines = waiting.pop(name)
                if self._take(name, lines):
                    tally.ours(name)
                else:
                    held[name] = lines
            if not waiting and held and time.monotonic() > look:
                elsewhere = store.error_files(self.folder).keys() - before  # failed by another worker: not tried again
                waiting, held = {name: lines for name, lines in held.items() if name not in elsewhere}, {}
                look, pause = time.monotonic() + pause, min(1.5 * pause, PAUSES[1])
                if waiting and not self.sent:
                    self._once("Other workers hold the groups that are left; waiting for them.")
            for one, answer in self._received(1.0).items():
                self._handle(one, answer)
            self.watch.others(tally.others())

    def stop(self) -> None:
        """Have every node save, and receive what is finished. Groups that have not begun are left. Raises `DiskError`
        where a record cannot be written, once all have come."""
        problem: store.DiskError | None = None
        self.cluster.stop()
        answers = self._received(0.0)
        while answers or any(group.host for group in self.sent.values()):
            for one, answer in answers.items():
                try:
                    self._handle(one, answer, stopping=True)
                except store.DiskError as error:
                    problem = error
            answers = self._received(1.0)
        if problem is not None:
            raise problem

    def release(self) -> None:
        """Give back all claims."""
        for one in self.sent.values():
            one.release.close()

    def clear(self) -> None:
        """Remove the checkpoints and claims that a kill after their record left."""
        saved, held = places.groups(self.orders.place), {claim.group for claim in store.held(self.folder)}
        left = store.finished(self.folder) & held.union(saved)
        drop_recorded(self.folder, left, functools.partial(places.drop, self.orders.place))

    def _take(self, name: str, lines: Sequence[PlannedTrial]) -> bool:
        """Claim a group and send it; False where another worker holds it."""
        release = contextlib.ExitStack()
        claim = release.enter_context(store.claim(self.folder, name))
        if claim is None:
            return False
        recorded = set(self._recorded.ids(name))
        left = [line for line in lines if line.id not in recorded or self.orders.keep]
        if not left:
            release.close()
            self.watch.finished(f"{lines[0].label} · {lines[0].task}", "done by another worker", 0.0)
            return True
        store.clear_error(self.folder, name)
        self._send(Sent(name, left, claim, release))
        return True

    def _fits(self) -> int:
        found = self.cluster.fits()
        if not found:
            need = f"{plural(self.orders.cpus, 'CPU')} and {self.orders.gpus:g} GPUs for a group"
            self._once(f"No node of the cluster has {need}; groups wait until one has.")
        return found

    def _send(self, group: Sent) -> None:
        group.attempts, group.host, group.pace = group.attempts + 1, "", Pace()
        common = {name: value for name, value in self.orders._asdict().items() if name != "imports"}
        parcel = common | {
            "imports": list(self.orders.imports),
            "sender": group.token,
            "token": group.token,
            "lines": [canonical(written(line)) for line in group.lines],
            "facts": self._facts,
            "sign": self.sign,
        }
        self.sent[self.cluster.send(parcel)] = group

    def _received(self, seconds: float) -> dict[Any, dict[str, Any]]:
        """The answers that came within so many seconds, once all is reported that happened before them."""
        if not self.sent:
            time.sleep(seconds)
            return {}
        answers = self.cluster.arrived(list(self.sent), seconds)
        senders = {group.token: group for group in self.sent.values()}
        for sender, event in self.cluster.events():
            if sender in senders:  # else of an attempt that was given up
                self._heard(senders[sender], *event)
        return answers

    def _handle(self, one: Any, answer: Mapping[str, Any], stopping: bool = False) -> None:
        group, kind = self.sent.pop(one), answer["kind"]
        if kind == "lost" and not stopping and not self._given_up(group, answer["why"]):
            self._send(group)
            return
        with group.release:
            if kind == "trained":
                self._record(group, answer)
            elif kind == "failed":
                self._fail(group, answer["outcome"], answer["why"], answer["text"])
            elif kind == "refused" and not stopping:
                raise RefusedByNode(f"The node {answer['host']} {answer['why']}.")

    def _heard(self, group: Sent, kind: str, *what: Any) -> None:
        match kind:
            case "started":
                group.host, group.began = what[0], time.monotonic()
                self.watch.group(group.label, len(group.lines))
                self.watch.note(f"{group.label}: on {group.host}")
                group.claim.name_job(f"ray on {group.host}")
                self._log("started", group=group.name, host=group.host)
            case "step":
                steps, total, loss = what
                group.lost = 0 if steps > group.step else group.lost
                group.step = max(group.step, steps)
                self.watch.step(group.label, steps, total, loss)
                if line := group.pace.line(steps, total, loss):
                    self._log(STEP, group=group.name, **line)
            case "note":
                self.watch.note(what[0])
            case "once":
                self._once(what[0])
            case "log":
                self._log(what[0], **what[1], host=group.host)

    def _given_up(self, group: Sent, why: str) -> bool:
        """Whether a group whose node or process is gone is not worth another try, as it never comes further."""
        group.lost += 1
        where = f"on {group.host} " if group.host else ""
        if group.lost < LOST_AT_MOST:
            self.watch.note(f"{group.label}: lost {where}({why}); sent again.")
            self._log("lost", group=group.name, host=group.host, why=why)
            return False
        text = f"The process {where}ended {group.lost} times near step {group.step} ({why}); its memory may be short."
        self._fail(group, "failed", text, text)
        return True

    def _fail(self, group: Sent, outcome: str, why: str, text: str) -> None:
        self.failed += 1
        path = store.write_error(self.folder, group.name, outcome, text)
        self.watch.note(f"{group.label} {outcome}: {why} (see {path.name})")
        self._over(group, outcome)

    def _record(self, group: Sent, answer: Mapping[str, Any]) -> None:
        """Write what a node trained, unless another worker has the group now."""
        if group.claim.taken():
            self.watch.taken(group.label)
            return
        record = read(GroupRecord, json.loads(answer["record"]))
        self._stored(lambda: store.write_record(self.folder, record), group)
        for id, model in answer["models"].items():  # after the record: a full disk must not cost results
            self._stored(lambda id=id, model=model: parameters.save(self.folder, id, model), group)
        places.drop(self.orders.place, group.name)
        self._over(group, answer["outcome"])

    def _stored(self, write: Callable[[], Any], group: Sent) -> None:
        """Write what a group leaves; a full disk gets its checkpoints' space."""
        try:
            write()
        except store.DiskError as error:
            if error.errno not in checkpoints.FULL:
                raise
            self.watch.note(f"{group.label}: the disk is full, so its checkpoints are dropped.")
            places.drop(self.orders.place, group.name)
            write()

    def _over(self, group: Sent, outcome: str) -> None:
        seconds = time.monotonic() - group.began
        self._log(outcome, group=group.name, seconds=round(seconds, 3), host=group.host)
        self.watch.finished(group.label, outcome, seconds)

    def _once(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self.watch.note(text)
