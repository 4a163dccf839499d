"""The training of one group: from its newest checkpoint, or from the start, to the record of its trials.

Where the record goes is left to the caller, as are claims: a worker writes it into its run folder, and a node of a
cluster sends it to the driver.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from posenc.lab.models.carry import fresh_parameters
from posenc.lab.spec.run import Knobs
from posenc.lab.store import disk
from posenc.lab.store.schema import TUNING, Counts, GroupRecord, PlannedTrial, TrialRecord, written
from posenc.lab.sweep import plan
from posenc.lab.sweep.beginnings import Beginnings
from posenc.lab.sweep.described import described, places_of
from posenc.lab.sweep.overdue import SegmentTimer
from posenc.lab.sweep.progress import Progress
from posenc.lab.sweep.saving import Home, Point, Saver, Source, loss_points, program_facts, read_point
from posenc.lab.sweep.signals import Stopped
from posenc.lab.tasks.floors import Table, floors_by_metric
from posenc.lab.train import device
from posenc.lab.train.compiling import Compiled, count_compilations
from posenc.lab.train.exact import SizeLosses, size_losses, with_gain
from posenc.lab.train.lanes import Arrangement, placed, stack
from posenc.lab.train.shapes import StepShape, true_model
from posenc.lab.train.training import ResolvedRun, as_arrays, forget_programs, program, pure, stages

T = TypeVar("T")
POINTS = 50
"""A loss curve has so many points or more, where there are as many steps."""


class Taken(Exception):
    """Another worker has the group now, because this one was silent for too long."""


class Assigned(NamedTuple):
    """A group that this process trains now."""

    name: str
    lines: Sequence[PlannedTrial]
    resolved: ResolvedRun
    token: str
    """That of its claim, which tells its checkpoints from those of others."""
    taken: Callable[[], bool]
    """Whether another worker has it now."""

    @property
    def label(self) -> str:
        return f"{self.lines[0].label} · {self.lines[0].task}"

    @property
    def stride(self) -> int:
        """Steps of a segment."""
        shared = self.lines[0]
        return math.gcd(plan.segment(shared), *(end for _, end in stages(self.resolved, shared.steps)))

    @property
    def spacing(self) -> int:
        """Steps between two points of the loss curve."""
        enough = max(1, self.lines[0].steps // POINTS)
        return max(n for n in range(1, self.stride + 1) if self.stride % n == 0 and n <= enough)


class Trained(NamedTuple):
    """What the training of a group leaves."""

    record: GroupRecord
    models: Mapping[str, PyTree]
    """Trial to its parameters, where they are to be kept."""
    end: Point

    @property
    def outcome(self) -> str:
        return "diverged" if all(trial.outcome == "diverged" for trial in self.record.trials) else "done"


class Log(Protocol):
    """Who keeps the events of a worker."""

    def __call__(self, event: str, **details: Any) -> None: ...


class Trainer:
    """Trains groups in this process, one after another."""

    def __init__(
        self, how: Arrangement, keep: bool, every: float, watch: Progress, check: Callable[[], None], log: Log
    ):
        self.how, self.keep, self.watch, self.check, self.log = how, keep, watch, check, log
        self.every = every
        """Seconds between two checkpoints."""
        self._floors: dict[tuple, dict[str, Table]] = {}
        self._about = device.describe() | {"lanes": str(how), "host": socket.gethostname()}
        self._beginnings = Beginnings()
        self._full = False  # what the user knows already
        self._steps: set[StepShape] = set()  # of the group before

    def train(self, group: Assigned, home: Home | None, finish: Callable[[Trained, Saver], T]) -> T:
        """Train a group from its newest checkpoint, or from the start, and keep new ones until `finish`, which stores
        what came of it, returns. Without a home for checkpoints none are kept."""
        shared, ids = group.lines[0], [line.id for line in group.lines]
        steps = {stage.step for stage, _ in stages(group.resolved, shared.steps)}
        if self._steps and self._steps.isdisjoint(steps):  # else memory would grow with each scheme of a sweep
            forget_programs()
        self._steps = steps
        say = lambda text: self.watch.note(f"{group.label}: {text}.")  # noqa: E731
        facts = program_facts(shared, group.stride, self._about)
        reserve = 2**14 + len(ids) * (40 * shared.steps // group.spacing + 900 * len(shared.sizes))
        saver = Saver(home, group.name, group.token, ids, facts, self.every, reserve, say, silent=self._full)
        source = saver.find_source()
        with saver, count_compilations() as compiled:
            try:
                return finish(self._trained(group, saver, source, compiled), saver)
            except (Stopped, Taken, disk.DiskError):
                raise
            except Exception:
                saver.note_failure()
                raise
            finally:
                self._full = saver.silent

    def _trained(self, group: Assigned, saver: Saver, source: Source | None, compiled: Compiled) -> Trained:
        lines, resolved, stride, label = group.lines, group.resolved, group.stride, group.label
        shared = lines[0]  # but for id and knobs
        steps, sizes, rows, spacing = shared.steps, shared.sizes, shared.rows, group.spacing
        knobs = [Knobs(**written(line.knobs)) for line in lines]
        whole = stages(resolved, steps)
        clock, timer = _Clock(), SegmentTimer(lambda text: self.watch.note(f"{label}: {text}."))
        lane = stack([as_arrays(k) for k in knobs], self.how)
        state, losses, begin = None, [], 0
        for n, (stage, end) in enumerate(whole):
            if source is not None and n < source.manifest.stage:
                begin = end
                continue
            first_of = Beginnings.key(stage, end, steps, stride, knobs) if n == 0 < len(whole) - 1 else None
            if source is None and (known := self._beginnings.get(first_of)) is not None:
                state, losses, begin = placed(known.state, self.how), list(known.losses), end
                self.watch.step(label, end, steps, float(np.mean(losses[-1])))
                self.log("shares", group=shared.group, step=end)
                continue
            run, before = program(stage, stride, rows, self.how), state
            if source is not None and n == source.manifest.stage:
                point = read_point(source, saver.ids, self.how, jax.eval_shape(run.init, lane))
                state, losses, begin = placed(point.state, self.how), loss_points(point, spacing), point.step
                clock.seconds = dict(point.seconds)
                saver.go_on(source)
                self.watch.note(f"{label}: goes on from step {begin}.")
                self.log("goes on", group=shared.group, step=begin)
                del point
            else:
                state = jax.block_until_ready(run.init(lane) if before is None else run.init(lane, before))
            if before is not None and (parts := fresh_parameters(before.model, state.model)):
                self.watch.note(f"{label}: after step {begin}, parameters of {', '.join(parts)} start anew.")
                self.log("anew", group=shared.group, step=begin, parts=parts)
            del before  # two states need not fit beside a step
            self._between(Point(n, begin, state, losses, dict(clock.seconds)), group, saver)
            for first in range(begin, end, stride):
                with timer.time(compiles=first == begin):
                    state, loss = run.segment(state, lane, jnp.int32(first), jnp.int32(steps))
                    loss = jax.device_get(loss)[: len(lines)]
                losses += _points(loss, spacing)
                clock.lap("compile" if first == begin else "train")
                self.watch.step(label, first + stride, steps, float(loss[:, -1].mean()))
                self._between(Point(n, first + stride, state, losses, dict(clock.seconds)), group, saver)
            begin = end
            if first_of is not None:
                self._beginnings.put(first_of, state, losses)
        # evaluated, and kept, is what the last stage left: its program and its state
        last = resolved.run.trained_to
        trained = [n for n in sizes if resolved.run.shortest <= n <= last] or [last]
        chosen = [False] * len(sizes) + [True] * len(trained)
        sums = run.evaluate(state, lane, [*sizes, *trained], chosen)
        at = tuple(zip([*sizes, *trained], chosen, strict=True))
        exact = [size_losses(resolved.task, rows, (*sizes, *trained), n, last, choosing) for n, choosing in at]
        diverged = jax.device_get(state.diverged)
        clock.lap("evaluate")
        if group.taken():
            raise Taken
        places = [places_of(resolved, sizes, sums.places, n) for n in range(len(lines))]
        trials = [
            _trial(line, n, (sizes, trained), spacing, losses, (sums.rows, exact), places[n], int(diverged[n]))
            for n, line in enumerate(lines)
        ]
        task = described(resolved, sizes, rows, self._counted(resolved, sizes), sums.places["scored"][0], exact)
        about = self._about | {"seconds": clock.seconds, "compiled": compiled.as_record()}
        about["ended"] = datetime.now(UTC).isoformat(timespec="seconds")
        record = GroupRecord(shared.run, shared.label, shared.family, task, tuple(trials), about)
        models = {}
        if self.keep:
            every = jax.device_get(pure(true_model(state.model, stage.scheme, stage.shape)))
            models = {line.id: jax.tree.map(lambda a, n=n: a[n], every) for n, line in enumerate(lines)}
        return Trained(record, models, Point(len(whole) - 1, steps, state, losses, dict(clock.seconds)))

    def _between(self, point: Point, group: Assigned, saver: Saver) -> None:
        """Between two segments: stop where the group was taken or a signal was heard, and save."""
        if group.taken():
            raise Taken
        try:
            self.check()
        except Stopped:
            if point.step:
                saver.stop_at(point)
            raise
        if point.step:
            saver.offer(point)

    def _counted(self, resolved: ResolvedRun, sizes: tuple[int, ...]) -> dict[str, Table]:
        """The floors of a task, which are counted once in a sweep."""
        key = (resolved.task, sizes, resolved.run.trained_to)
        if key not in self._floors:
            self._floors[key] = floors_by_metric(*key)
        return self._floors[key]


class _Clock:
    """Seconds of each phase, for provenance."""

    def __init__(self):
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, phase: str) -> None:
        now = time.monotonic()
        self.seconds[phase] = round(self.seconds.get(phase, 0.0) + now - self._last, 3)
        self._last = now


def _points(loss: Float[np.ndarray, "lanes stride"], spacing: int) -> list[list[float]]:
    """The mean loss of each lane over so many steps at a time, in six digits, which are more than a batch knows."""
    means = loss.reshape(len(loss), -1, spacing).mean(-1).T
    return [[float(f"{mean:.6g}") for mean in point] for point in means]


def _trial(
    line: PlannedTrial,
    n: int,
    sizes: tuple,
    spacing: int,
    losses: list,
    evaluated: tuple[dict, Sequence[SizeLosses | None]],
    places: Mapping[int, Mapping[str, Any]] | None,
    diverged: int,
) -> TrialRecord:
    """What is recorded of the n-th lane; `sizes` are those reported and those on which a rate is chosen, `evaluated`
    its sums, and at each of these sizes the exact losses, where they are known."""
    (reported, trained), (sums, exact) = sizes, evaluated
    found = [{name: int(total) for name, total in zip(sums, values, strict=True)} for values in _columns(sums, n)]
    found = [with_gain(counts, losses) for counts, losses in zip(found, exact, strict=True)]
    evaluations: dict[int, Counts] = dict(zip(reported, found, strict=False))
    validation: dict[int, Counts] = dict(zip(trained, found[len(reported) :], strict=True))
    curve = {"step": [(i + 1) * spacing for i in range(len(losses))], "loss": [each[n] for each in losses]}
    head, role = (line.id, line.knobs, line.steps), TUNING if line.tuning else None
    if diverged >= 0:
        return TrialRecord(*head, "diverged", diverged, {}, {}, curve, role=role)
    return TrialRecord(*head, "done", None, evaluations, validation, curve, places, role)


def _columns(sums: dict, n: int) -> Any:
    """The sums of one lane, size by size."""
    return zip(*(totals[n] for totals in sums.values()), strict=True)
