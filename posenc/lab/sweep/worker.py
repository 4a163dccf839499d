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
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from posenc.lab.models.carry import fresh_parameters
from posenc.lab.spec.run import Knobs
from posenc.lab.store import folder as store
from posenc.lab.store import parameters
from posenc.lab.store.schema import Counts, GroupRecord, PlannedTrial, TaskRecord, TrialRecord, written
from posenc.lab.tasks import spec
from posenc.lab.tasks.floors import floors
from posenc.lab.train import device
from posenc.lab.train.lanes import Arrangement, stack
from posenc.lab.train.shapes import true_model
from posenc.lab.train.training import ResolvedRun, as_arrays, program, pure, stages


class Progress(Protocol):
    """Who is told how far a sweep is."""

    def begin(self, trials: int, done: int, programs: int) -> None:
        """`trials` in all, of which `done` have results; the others need so many `programs`."""

    def group(self, label: str, trials: int) -> None:
        """A group of trials starts."""

    def step(self, label: str, steps: int, total: int, loss: float) -> None:
        """A group has done so many of its steps; `loss` is the mean over its trials."""

    def finished(self, label: str, outcome: str, seconds: float) -> None:
        """A group has ended."""

    def note(self, text: str) -> None:
        """Something worth a line."""


class Stopped(Exception):
    """A signal asked for the end; nothing recorded is lost."""


class Worker:
    """Runs groups in this process."""

    def __init__(
        self, folder: Path, how: Arrangement, stride: int, keep: bool, watch: Progress, check: Callable[[], None]
    ):
        self.folder, self.how, self.stride, self.keep, self.watch, self.check = folder, how, stride, keep, watch, check
        self.failed = 0
        self._floors: dict[tuple, dict] = {}
        self._about = device.describe() | {"lanes": str(how), "host": socket.gethostname()}

    def run(self, group: str, lines: list[PlannedTrial], resolved: ResolvedRun) -> bool:
        """One group: train, evaluate, record; False where another worker holds it.

        An exception is kept with its traceback, and the sweep goes on.
        """
        label, began = f"{lines[0].label} · {lines[0].task}", time.monotonic()
        self.check()
        with store.claim(self.folder, group) as claim:
            if claim is None:
                return False
            recorded = {id for record in store.read_records(self.folder).records for id in record.ids}
            lines = [line for line in lines if line.id not in recorded or self.keep]
            if not lines:
                self.watch.finished(label, "done by another worker", time.monotonic() - began)
                return True
            self.watch.group(label, len(lines))
            store.clear_error(self.folder, group)
            try:
                outcome = self._train(label, lines, resolved)
            except (Stopped, store.DiskError):
                raise
            except Exception as error:  # one group must not end a sweep; its traceback is kept
                self.failed += 1
                outcome = "oom" if "RESOURCE_EXHAUSTED" in str(error) else "failed"
                path = store.write_error(self.folder, group, outcome, traceback.format_exc())
                self.watch.note(f"{label} {outcome}: {type(error).__name__}: {str(error)[:200]} (see {path.name})")
            seconds = time.monotonic() - began
            self._log(outcome, group=group, seconds=round(seconds, 3))
            self.watch.finished(label, outcome, seconds)
        return True

    def _train(self, label: str, lines: list[PlannedTrial], resolved: ResolvedRun) -> str:
        shared = lines[0]  # but for id and knobs
        steps, sizes, rows = shared.steps, shared.sizes, shared.rows
        knobs = [Knobs(**written(line.knobs)) for line in lines]
        whole = stages(resolved, steps)
        clock, stride = _Clock(), math.gcd(self.stride, *(end for _, end in whole))
        lane = stack([as_arrays(k) for k in knobs], self.how)
        state, losses, begin = None, [], 0
        for stage, end in whole:
            run, before = program(stage, stride, rows, self.how), state
            state = jax.block_until_ready(run.init(lane) if before is None else run.init(lane, before))
            if before is not None and (parts := fresh_parameters(before.model, state.model)):
                self.watch.note(f"{label}: after step {begin}, parameters of {', '.join(parts)} start anew.")
                self._log("anew", group=shared.group, step=begin, parts=parts)
            del before  # two states need not fit beside a step
            for first in range(begin, end, stride):
                self.check()
                state, loss = run.segment(state, lane, jnp.int32(first), jnp.int32(steps))
                losses.append(jax.device_get(loss)[: len(lines)])
                clock.lap("compile" if first == begin else "train")
                self.watch.step(label, first + stride, steps, float(losses[-1][:, -1].mean()))
            begin = end
        # evaluated, and kept, is what the last stage left: its program and its state
        trained = [n for n in sizes if resolved.run.shortest <= n <= resolved.run.length] or [resolved.run.length]
        chosen = [False] * len(sizes) + [True] * len(trained)
        sums = run.evaluate(state, lane, [*sizes, *trained], chosen)
        diverged = jax.device_get(state.diverged)
        clock.lap("evaluate")
        trials = [
            _trial(line, n, (sizes, trained), stride, losses, sums, int(diverged[n])) for n, line in enumerate(lines)
        ]
        about = self._about | {"ended": datetime.now(UTC).isoformat(timespec="seconds"), "seconds": clock.seconds}
        task = self._task(resolved, sizes)
        store.write_record(
            self.folder, GroupRecord(shared.run, shared.label, shared.family, task, tuple(trials), about)
        )
        if self.keep:  # after the record: a full disk must not cost results
            models = jax.device_get(pure(true_model(state.model, stage.scheme, stage.shape)))
            for n, line in enumerate(lines):
                parameters.save(self.folder, line.id, jax.tree.map(lambda a, n=n: a[n], models))
        return "diverged" if all(t.outcome == "diverged" for t in trials) else "done"

    def _log(self, event: str, **details: Any) -> None:
        store.log(self.folder, f"{socket.gethostname()}-{os.getpid()}", event, **details)

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
    curve = {"step": [(i + 1) * stride for i in range(len(losses))], "loss": [float(e[n].mean()) for e in losses]}
    head = (line.id, line.knobs, line.steps)
    if diverged >= 0:
        return TrialRecord(*head, "diverged", diverged, {}, {}, curve)
    return TrialRecord(*head, "done", None, evaluations, validation, curve)


def _columns(sums: dict, n: int) -> Any:
    """The sums of one lane, size by size."""
    return zip(*(totals[n] for totals in sums.values()), strict=True)
