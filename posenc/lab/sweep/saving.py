"""When a group in training is saved: every so many seconds, at a signal, and while training goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from posenc.lab.store import checkpoints, disk
from posenc.lab.sweep.resuming import Point, names, packed, row_size

KEPT = 2
"""Checkpoints of a group that stay: one may be damaged."""


@dataclass
class Saver:
    """The checkpoints of one group that is being trained here. One thread writes at a time."""

    folder: Path
    group: str
    token: str
    ids: Sequence[str]
    program: Mapping[str, Any]
    every: float
    reserve: int
    """Bytes on disk that stay free, for the record."""
    say: Callable[[str], None]
    changed: Callable[[], None] = lambda: None
    """Called after checkpoints were made or removed."""
    places: list[Path] = field(default_factory=list)
    """The checkpoints of the group that this worker found and made, the next to be removed first. Those that another
    worker makes meanwhile are not ours to remove."""
    silent: bool = False
    """Whether the user knows already that the disk is full."""

    def __post_init__(self):
        self._started, self._thread = time.monotonic(), None
        self._problem: BaseException | None = None
        self._source: Path | None = None
        self._saved = self._requested = 0

    def __enter__(self) -> Saver:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if kind is None or issubclass(kind, Exception):  # a second Ctrl-C does not wait
            self.wait()

    def went_on(self, source: Path) -> None:
        """Training goes on from this checkpoint."""
        self._source, self._saved = source, checkpoints.step_of(source)

    def passed(self, point: Point) -> None:
        """Start to save this point if it is time, and the one before is written."""
        early = point.step == self._saved or time.monotonic() - self._started < self.every
        if early or (self._thread is not None and self._thread.is_alive()):
            return
        self.wait()
        self._started = time.monotonic()
        if job := self._copied(point):
            self._thread = threading.Thread(target=self._write, args=job, name=f"save-{self.group}", daemon=True)
            self._thread.start()

    def stop_at(self, point: Point) -> None:
        """Save this point before the process ends; returns when it is on disk, or says why it is not."""
        self.wait()
        self.silent = True
        if self._saved != point.step and (job := self._copied(point)):
            self._write(*job)
            self.wait()
        if self._saved == point.step:
            self.say(f"saved at step {point.step}")
        else:
            self.say(f"no checkpoint at step {point.step}: {self._why}; the last one is of step {self._saved}")

    def wait(self) -> None:
        """Wait until nothing is being written, and report what the disk refused."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        problem, self._problem = self._problem, None
        if isinstance(problem, OSError):
            self._complain(disk.reason(problem))
        elif problem is not None:
            raise problem

    def drop(self) -> None:
        """Remove every checkpoint of the group: it is recorded, or its record needs the space."""
        self.wait()
        checkpoints.drop_group(self.folder, self.group)
        self.places, self._saved = [], 0
        self.changed()

    def failed(self) -> None:
        """The group failed; the second time after the same checkpoint, that one is dropped."""
        self.wait()
        if self._source is not None and self.places[-1:] == [self._source]:
            if checkpoints.failed(self._source):
                self.say(f"failed twice after the checkpoint at step {self._saved}, which is dropped")
            self.changed()

    def _copied(self, point: Point) -> tuple[checkpoints.Manifest, np.ndarray] | None:
        """The job of the writer: the state is copied, since the next segment takes its memory. None if it is too
        large for the disk."""
        trials = len(self.ids)
        need = trials * (row_size(point.state, trials) + 40 * len(point.losses)) + checkpoints.BESIDE + self.reserve
        self._requested = point.step
        if checkpoints.free(self.folder) < need:
            self._complain(f"the disk has less than {-(-need // 1000):,} kB left")
            return None
        losses = {id: [each[n] for each in point.losses] for n, id in enumerate(self.ids)}
        about = checkpoints.Manifest(
            point.step, point.stage, self.program, tuple(self.ids), tuple(names(point.state)), losses, point.seconds
        )
        return about, packed(point.state, trials)

    def _write(self, about: checkpoints.Manifest, rows: np.ndarray) -> None:
        try:
            self.places.append(checkpoints.save(self.folder, self.group, self.token, about, rows))
            while len(self.places) > KEPT:
                checkpoints.drop(self.places.pop(0))
            self.changed()
            self._saved, self.silent = about.step, False
        except Exception as problem:  # `wait` reports it in the thread that trains
            self._problem = problem

    def _complain(self, why: str) -> None:
        self._why = why
        if not self.silent:
            self.say(f"no checkpoint at step {self._requested}: {why}; training goes on")
        self.silent = True


@dataclass
class Unsaved:
    """In the place of a `Saver` where no checkpoint would outlive the machine."""

    ids: Sequence[str]
    say: Callable[[str], None]
    silent: bool = False

    def __enter__(self) -> Unsaved:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def went_on(self, source: Path) -> None:
        """Without checkpoints no training goes on."""

    def passed(self, point: Point) -> None:
        """Nothing is saved between two segments."""

    def stop_at(self, point: Point) -> None:
        self.say(f"not saved at step {point.step}; it begins again at step 0")

    def wait(self) -> None:
        """Nothing is being written."""

    def drop(self) -> None:
        """There is nothing to remove."""

    def failed(self) -> None:
        """There is no checkpoint that could be the cause."""
