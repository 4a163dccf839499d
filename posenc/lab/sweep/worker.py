"""One worker: it claims groups of trials, has them trained, and records what is finished."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from posenc.lab.store import checkpoints, parameters
from posenc.lab.store import folder as store
from posenc.lab.store.schema import PlannedTrial
from posenc.lab.sweep.events import Events
from posenc.lab.sweep.progress import Progress, Reported, Tally
from posenc.lab.sweep.saving import Home, Point, Saver
from posenc.lab.sweep.signals import Stopped
from posenc.lab.sweep.trainer import Assigned, Taken, Trained, Trainer
from posenc.lab.train.lanes import Arrangement
from posenc.lab.train.training import ResolvedRun


class Worker:
    """Runs groups in this process."""

    def __init__(
        self,
        folder: Path,
        how: Arrangement,
        keep: bool,
        watch: Progress,
        tally: Tally,
        check: Callable[[], None],
        every: float = checkpoints.EVERY,
    ):
        self._log = Events(folder, watch.note)
        watch = self.reported = Reported(watch, self._log)
        self.folder, self.keep, self.watch, self.tally, self.check = folder, keep, watch, tally, check
        self.trainer = Trainer(how, keep, every, watch, check, self._log)
        self.failed = 0

    def run(self, group: str, lines: list[PlannedTrial], resolved: ResolvedRun) -> bool:
        """One group: train, evaluate, record; False where another worker holds it.

        An exception is kept with its traceback, and the sweep goes on.
        """
        label, began = f"{lines[0].label} · {lines[0].task}", time.monotonic()
        self.check()
        with store.claim(self.folder, group) as claim:
            if claim is None:
                return False
            # another worker may have recorded the group, or what is left of it, since this one read all records
            names = {group, store.digest([line.id for line in lines])}
            recorded = {id for name in names for id in self.tally.recorded.ids(name)}
            lines = [line for line in lines if line.id not in recorded or self.keep]
            if not lines:
                self._finished(label, "done by another worker", began)
                return True
            self.tally.ours(group)
            self.reported.of(group)
            self.watch.group(label, len(lines))
            store.clear_error(self.folder, group)
            try:
                assigned = Assigned(group, lines, resolved, claim.token, claim.taken)
                outcome = self.trainer.train(assigned, Home(self.folder), self._record)
            except (Stopped, store.DiskError):
                raise
            except Taken:
                self.watch.taken(label)
                self._log("taken", group=group)
                return False
            except Exception as error:  # one group must not end a sweep; its traceback is kept
                self.failed += 1
                outcome = failure(error)
                path = store.write_error(self.folder, group, outcome, traceback.format_exc())
                self.watch.note(f"{label} {outcome}: {type(error).__name__}: {str(error)[:200]} (see {path.name})")
            self._log(outcome, group=group, seconds=round(time.monotonic() - began, 3))
            self._finished(label, outcome, began)
        return True

    def _finished(self, label: str, outcome: str, began: float) -> None:
        self.watch.others(self.tally.others())
        self.watch.finished(label, outcome, time.monotonic() - began)

    def _record(self, trained: Trained, saver: Saver) -> str:
        """Store what a group leaves; returns its outcome."""
        self._stored(lambda: store.write_record(self.folder, trained.record), trained.end, saver)
        for id, model in trained.models.items():  # after the record: a full disk must not cost results
            self._stored(lambda id=id, model=model: parameters.save(self.folder, id, model), trained.end, saver)
        saver.drop()
        return trained.outcome

    def _stored(self, write: Callable[[], Any], end: Point, saver: Saver) -> None:
        """Write what a group leaves. A full disk gets its checkpoints' space; training is not lost even so."""
        try:
            write()
        except store.DiskError as error:
            try:
                if error.errno not in checkpoints.FULL:
                    raise
                saver.say("the disk is full, so its checkpoints are dropped")
                saver.drop()
                write()
            except store.DiskError:
                saver.stop_at(end)
                raise


def failure(error: Exception) -> str:
    """The outcome of a group that raised this."""
    return "oom" if "RESOURCE_EXHAUSTED" in str(error) else "failed"
