"""Listeners to the progress of a sweep: its user, and the log of its worker. Trials that other workers finish count
too."""

from __future__ import annotations

import contextlib
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from posenc.lab.store import disk
from posenc.lab.store import folder as store
from posenc.lab.store.folder import STEP, worker
from posenc.lab.store.schema import PlannedTrial
from posenc.language.echo import lasting, plural

EVERY = 10.0
"""Seconds between two lines that say how far a group is, of a log or for the user."""
TIMES = 20
"""A segment is overdue after this multiple of its expected time, the mean of those before it."""
LEAST = 60.0
"""Seconds before which nothing is said: a machine may be busy for a while."""
COMPILING = 600.0
"""Seconds after which a segment that compiles first is overdue; no segment before it shows its time."""


class Progress:
    """Listener to the progress of a sweep: it counts, and says a line for each event by `note`.

    The time left follows from all that was done since the sweep began, by whomever, compiling and evaluation included.
    Until the first trials finish, the speed of their steps is all that is known, and the estimate is marked as rough.
    """

    def __init__(self):
        self.total = self.before = self.finished_trials = self.by_others = 0
        self.sizes: dict[str, int] = {}
        self.parts: dict[str, float] = {}
        """Group to the part of its steps that is done."""
        self.first: dict[str, tuple[float, float]] = {}
        """Group to the time and the part of its first report, after which its program is compiled."""
        self.started = self.spoken = time.monotonic()

    def begin(self, trials: int, done: int, programs: int | None) -> None:
        """Start a sweep or its next stage. `done` of its trials have results, and the others need `programs` programs,
        if that is known."""
        self.total, self.before, self.started = trials, done, time.monotonic()
        self.finished_trials = self.by_others = 0
        earlier = f", {done} of them done earlier" if done else ""
        left = "" if programs is None else f"; {plural(programs, 'program')} to compile"
        self.note(f"{plural(trials, 'trial')}{earlier}{left}")

    def group(self, label: str, trials: int) -> None:
        """Some trials of one run start."""
        self._start(label, trials)
        self.note(f"{label}: {trials} trial{'s' * (trials != 1)}")

    def step(self, label: str, steps: int, total: int, loss: float) -> None:
        """Trials of one run reached a step; `loss` is the mean over them."""
        self._reach(label, steps / max(total, 1))
        if time.monotonic() - self.spoken >= EVERY and steps < total:
            self.note(f"{label}: step {steps} of {total}, loss {loss:.3g}{self.left()}")

    def finished(self, label: str, outcome: str, seconds: float) -> None:
        """Trials of one run ended: done, diverged, failed, ..."""
        self.finished_trials += self.sizes.get(label, 0)
        self._forget(label)
        count = f"{self.before + self.finished_trials + self.by_others} of {self.total} trials"
        self.note(f"{label}: {outcome} after {lasting(seconds)}; {count}{self.left()}")

    def taken(self, label: str) -> None:
        """Another worker took the trials of a run that had started here."""
        self._forget(label)
        self.note(f"{label}: taken by another worker while this one was silent; stopped here")

    def others(self, trials: int) -> None:
        """Hear how many trials other workers have finished since the sweep began."""
        self.by_others = trials

    def note(self, text: str) -> None:
        """Something worth a line."""
        self.spoken = time.monotonic()

    def left(self) -> str:
        """The time left, as the end of a line; empty until it is known or if nothing is left."""
        now, part = time.monotonic(), sum(self.sizes[label] * part for label, part in self.parts.items())
        done = self.finished_trials + self.by_others + part
        rest = self.total - self.before - done
        if rest <= 0:
            return ""
        if self.finished_trials or self.by_others:
            return f"; about {lasting(max((now - self.started) * rest / done, 1))} left"
        since = {k: (now - at, self.parts[k] - before) for k, (at, before) in self.first.items() if now > at}
        speed = sum(self.sizes[k] * gained / seconds for k, (seconds, gained) in since.items())
        return f"; roughly {lasting(rest / speed)} left, and then evaluation" if speed else ""

    def _forget(self, label: str) -> None:
        for kept in (self.sizes, self.first, self.parts):
            kept.pop(label, None)

    def _start(self, label: str, trials: int) -> None:
        self.sizes[label], self.parts[label] = trials, 0.0

    def _reach(self, label: str, part: float) -> None:
        self.parts[label] = part
        self.first.setdefault(label, (time.monotonic(), part))


class Reporter:
    """Passes progress on. Every few seconds it adds the steps of the group in training to the log of its worker. The
    line has the rate since the line before, and `posenc status` reads it."""

    def __init__(self, watch: Progress, log: Callable[..., None]):
        self._watch, self.log = watch, log
        self.of("")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._watch, name)

    def of(self, group: str) -> None:
        """The group that trains from now on."""
        self._group, self._time, self._step = group, -math.inf, 0

    def step(self, label: str, steps: int, total: int, loss: float) -> None:
        """Report that the group has done `steps` of its steps."""
        self._watch.step(label, steps, total, loss)
        now = time.monotonic()
        if now - self._time < EVERY:
            return
        rate = round((steps - self._step) / (now - self._time), 3) if self._step else None  # at first it compiles
        self._time, self._step, mean = now, steps, round(loss, 6) if math.isfinite(loss) else None
        self.log(STEP, group=self._group, step=steps, steps=total, rate=rate, loss=mean)


class Tally:
    """Counts the trials of these groups that other workers finished, by what is recorded."""

    def __init__(self, recorded: store.Recorded, groups: Mapping[str, Collection[PlannedTrial]]):
        self.recorded = recorded
        self._left = {line.id for lines in groups.values() for line in lines} - recorded.ids()
        self._others = 0

    def ours(self, lines: Collection[PlannedTrial]) -> None:
        """This worker trains these."""
        self._left.difference_update(line.id for line in lines)

    def more(self) -> bool:
        """Return whether any trial is still to be trained, by whomever."""
        return bool(self._left)

    def others(self) -> int:
        """The trials that others have finished so far."""
        done = self._left & self.recorded.ids()
        self._left -= done
        self._others += len(done)
        return self._others


class Events:
    """Adds lines to the log of this process. Training goes on without it where it cannot be written."""

    def __init__(self, folder: Path, note: Callable[[str], None]):
        self.folder, self.note, self._noted = folder, note, False

    def __call__(self, event: str, **details: Any) -> None:
        """Add a line; what keeps it from being written is noted once."""
        try:
            store.log(self.folder, worker(socket.gethostname(), os.getpid()), event, **details)
        except OSError as error:
            if not self._noted:
                self.note(f"The log cannot be written ({disk.reason(error)}); training goes on without it.")
            self._noted = True


class SegmentTimer:
    """The segments of one group in this process, each timed while it runs. One that does not end is named, once: a
    device or a library may hang, and a sweep would be silent for ever."""

    def __init__(self, say: Callable[[str], None]):
        self._say, self._count, self._seconds = say, 0, 0.0

    @contextlib.contextmanager
    def time(self, compiles: bool) -> Iterator[None]:
        """Time one segment. Another thread reports what is overdue, since the main one waits for the device."""
        if compiles or not self._count:
            limit, expected = COMPILING, "some minutes at most, compiling included,"
        else:
            mean = self._seconds / self._count
            limit, expected = max(LEAST, TIMES * mean), f"{mean:.2f} s, as those before took,"
        timer = threading.Timer(limit, self._overdue, (limit, expected))
        timer.daemon = True
        began = time.monotonic()
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        if not compiles:
            self._count, self._seconds = self._count + 1, self._seconds + time.monotonic() - began

    def _overdue(self, seconds: float, expected: str) -> None:
        self._say(
            f"a segment has not ended in {seconds:.0f} s, and {expected} were expected; if no step follows, run"
            f" `kill -9 {os.getpid()}` on {socket.gethostname()}, since Ctrl-C waits for the segment, and repeat the"
            " command, which goes on from the newest checkpoint"
        )
