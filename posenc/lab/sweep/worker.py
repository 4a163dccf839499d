"""One worker: it trains groups of trials, evaluates them, and records what it finished."""

from __future__ import annotations

import math
import os
import socket
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from posenc.lab.models.carry import fresh_parameters
from posenc.lab.spec.run import Knobs
from posenc.lab.store import checkpoints, disk, parameters
from posenc.lab.store import folder as store
from posenc.lab.store.claims import Claim
from posenc.lab.store.schema import Counts, GroupRecord, PlannedTrial, TaskRecord, TrialRecord, written
from posenc.lab.sweep import plan
from posenc.lab.sweep.progress import Progress, Tally
from posenc.lab.sweep.resuming import Point, Source, newest, program_of, restored
from posenc.lab.sweep.saving import Saver
from posenc.lab.sweep.signals import Stopped
from posenc.lab.tasks import spec
from posenc.lab.tasks.floors import floors
from posenc.lab.train import device
from posenc.lab.train.compiling import Compiled, counted
from posenc.lab.train.lanes import Arrangement, placed, stack
from posenc.lab.train.shapes import true_model
from posenc.lab.train.training import ResolvedRun, as_arrays, program, pure, stages


class Taken(Exception):
    """Another worker has the group now, because this one was silent for too long."""


class Assigned(NamedTuple):
    """A group that this worker trains now."""

    label: str
    lines: list[PlannedTrial]
    resolved: ResolvedRun
    stride: int
    """Steps of a segment."""
    claim: Claim
    saver: Saver
    source: Source | None
    """The checkpoint that it goes on from."""
    compiled: Compiled
    """What it has compiled so far."""


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
        self.folder, self.how, self.keep, self.watch, self.tally, self.check = folder, how, keep, watch, tally, check
        self.every = every
        """Seconds between two checkpoints."""
        self.failed = 0
        self._floors: dict[tuple, dict] = {}
        self._about = device.describe() | {"lanes": str(how), "host": socket.gethostname()}
        self._full = self._unlogged = False  # what the user knows already

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
            recorded = {id for name in names for id in store.recorded_ids(self.folder, name)}
            lines = [line for line in lines if line.id not in recorded or self.keep]
            if not lines:
                self._finished(label, "done by another worker", began)
                return True
            self.tally.ours(group)
            self.watch.group(label, len(lines))
            store.clear_error(self.folder, group)
            try:
                outcome = self._saved(label, lines, resolved, claim)
            except (Stopped, store.DiskError):
                raise
            except Taken:
                self.watch.taken(label)
                self._log("taken", group=group)
                return False
            except Exception as error:  # one group must not end a sweep; its traceback is kept
                self.failed += 1
                outcome = "oom" if "RESOURCE_EXHAUSTED" in str(error) else "failed"
                path = store.write_error(self.folder, group, outcome, traceback.format_exc())
                self.watch.note(f"{label} {outcome}: {type(error).__name__}: {str(error)[:200]} (see {path.name})")
            self._log(outcome, group=group, seconds=round(time.monotonic() - began, 3))
            self._finished(label, outcome, began)
        return True

    def _finished(self, label: str, outcome: str, began: float) -> None:
        self.watch.others(self.tally.others())
        self.watch.finished(label, outcome, time.monotonic() - began)

    def _saved(self, label: str, lines: list[PlannedTrial], resolved: ResolvedRun, claim: Claim) -> str:
        """Train a group from its newest checkpoint, or from the start, and keep new ones until it is recorded."""
        shared, group = lines[0], claim.group
        stride = math.gcd(plan.segment(shared), *(end for _, end in stages(resolved, shared.steps)))
        say = lambda text: self.watch.note(f"{label}: {text}.")  # noqa: E731
        ids, facts = [line.id for line in lines], program_of(shared, stride, self._about)
        checkpoints.tidy(self.folder, group)
        places = checkpoints.found(self.folder, group)
        source, unusable = newest(places, ids, facts, say)
        if places and source is None:
            say("begins again at step 0")
        places = unusable[::-1] + [path for path in places if path not in unusable]
        reserve = 2**14 + len(lines) * (40 * shared.steps // stride + 600 * len(shared.sizes))
        saver = Saver(self.folder, group, claim.token, ids, facts, self.every, reserve, say, places, self._full)
        with saver, counted() as compiled:
            try:
                return self._train(Assigned(label, lines, resolved, stride, claim, saver, source, compiled))
            except (Stopped, Taken, store.DiskError):
                raise
            except Exception:
                saver.failed()
                raise
            finally:
                self._full = saver.silent

    def _train(self, group: Assigned) -> str:
        label, lines, resolved, stride, claim, saver, source, compiled = group
        shared = lines[0]  # but for id and knobs
        steps, sizes, rows = shared.steps, shared.sizes, shared.rows
        knobs = [Knobs(**written(line.knobs)) for line in lines]
        whole = stages(resolved, steps)
        clock = _Clock()
        lane = stack([as_arrays(k) for k in knobs], self.how)
        state, losses, begin = None, [], 0
        for n, (stage, end) in enumerate(whole):
            if source is not None and n < source.about.stage:
                begin = end
                continue
            run, before = program(stage, stride, rows, self.how), state
            if source is not None and n == source.about.stage:
                point = restored(source, saver.ids, self.how, jax.eval_shape(run.init, lane))
                state, losses, begin = placed(point.state, self.how), point.losses, point.step
                clock.seconds = dict(point.seconds)
                saver.went_on(source.path)
                self.watch.note(f"{label}: goes on from step {begin}.")
                self._log("goes on", group=shared.group, step=begin)
                del point
            else:
                state = jax.block_until_ready(run.init(lane) if before is None else run.init(lane, before))
            if before is not None and (parts := fresh_parameters(before.model, state.model)):
                self.watch.note(f"{label}: after step {begin}, parameters of {', '.join(parts)} start anew.")
                self._log("anew", group=shared.group, step=begin, parts=parts)
            del before  # two states need not fit beside a step
            self._between(Point(n, begin, state, losses, dict(clock.seconds)), group)
            for first in range(begin, end, stride):
                state, loss = run.segment(state, lane, jnp.int32(first), jnp.int32(steps))
                loss = jax.device_get(loss)[: len(lines)]
                losses.append([float(row.mean()) for row in loss])
                clock.lap("compile" if first == begin else "train")
                self.watch.step(label, first + stride, steps, float(loss[:, -1].mean()))
                self._between(Point(n, first + stride, state, losses, dict(clock.seconds)), group)
            begin = end
        # evaluated, and kept, is what the last stage left: its program and its state
        trained = [n for n in sizes if resolved.run.shortest <= n <= resolved.run.length] or [resolved.run.length]
        chosen = [False] * len(sizes) + [True] * len(trained)
        sums = run.evaluate(state, lane, [*sizes, *trained], chosen)
        diverged = jax.device_get(state.diverged)
        clock.lap("evaluate")
        if claim.taken():
            raise Taken
        trials = [
            _trial(line, n, (sizes, trained), stride, losses, sums, int(diverged[n])) for n, line in enumerate(lines)
        ]
        task = self._task(resolved, sizes)
        about = self._about | {"seconds": clock.seconds, "compiled": compiled.as_record()}
        about["ended"] = datetime.now(UTC).isoformat(timespec="seconds")
        record = GroupRecord(shared.run, shared.label, shared.family, task, tuple(trials), about)
        end = Point(len(whole) - 1, steps, state, losses, dict(clock.seconds))
        self._stored(lambda: store.write_record(self.folder, record), end, saver)
        if self.keep:  # after the record: a full disk must not cost results
            models = jax.device_get(pure(true_model(state.model, stage.scheme, stage.shape)))
            for n, line in enumerate(lines):
                kept = jax.tree.map(lambda a, n=n: a[n], models)
                self._stored(lambda id=line.id, kept=kept: parameters.save(self.folder, id, kept), end, saver)
        saver.drop()
        return "diverged" if all(t.outcome == "diverged" for t in trials) else "done"

    def _between(self, point: Point, group: Assigned) -> None:
        """Between two segments: stop where the group was taken or a signal was heard, and save."""
        if group.claim.taken():
            raise Taken
        try:
            self.check()
        except Stopped:
            if point.step:
                group.saver.stop_at(point)
            raise
        if point.step:
            group.saver.passed(point)

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

    def _log(self, event: str, **details: Any) -> None:
        """Add a line to the log of this worker. Nothing is decided by what it says, so training goes on without it."""
        try:
            store.log(self.folder, f"{socket.gethostname()}-{os.getpid()}", event, **details)
        except OSError as error:
            if not self._unlogged:
                self.watch.note(f"The log cannot be written ({disk.reason(error)}); training goes on without it.")
            self._unlogged = True

    def _task(self, resolved: ResolvedRun, sizes: tuple[int, ...]) -> TaskRecord:
        """The task with its floors, which are estimated once in a sweep."""
        key = (resolved.task, sizes)
        if key not in self._floors:
            found = floors(resolved.task, sizes)
            self._floors[key] = {n: found[n] for n in sizes}
        trained = (resolved.run.shortest, resolved.run.length)
        return TaskRecord(spec(resolved.task), resolved.task.metric, trained, self._floors[key])


class _Clock:
    """Seconds of each phase, for provenance."""

    def __init__(self):
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, phase: str) -> None:
        now = time.monotonic()
        self.seconds[phase] = round(self.seconds.get(phase, 0.0) + now - self._last, 3)
        self._last = now


def _trial(
    line: PlannedTrial, n: int, sizes: tuple, stride: int, losses: list, sums: dict, diverged: int
) -> TrialRecord:
    """What is recorded of the n-th lane; `sizes` are those reported and those on which a rate is chosen."""
    reported, trained = sizes
    found = [{name: int(total) for name, total in zip(sums, values, strict=True)} for values in _columns(sums, n)]
    evaluations: dict[int, Counts] = dict(zip(reported, found, strict=False))
    validation: dict[int, Counts] = dict(zip(trained, found[len(reported) :], strict=True))
    curve = {"step": [(i + 1) * stride for i in range(len(losses))], "loss": [each[n] for each in losses]}
    head = (line.id, line.knobs, line.steps)
    if diverged >= 0:
        return TrialRecord(*head, "diverged", diverged, {}, {}, curve)
    return TrialRecord(*head, "done", None, evaluations, validation, curve)


def _columns(sums: dict, n: int) -> Any:
    """The sums of one lane, size by size."""
    return zip(*(totals[n] for totals in sums.values()), strict=True)
