"""Training of one group: from its newest checkpoint, or from the start, to the record of its trials.

The caller decides about records and claims. A worker writes the record into its run folder; a node of a cluster sends
it to the driver.
"""

from __future__ import annotations

import functools
import math
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import Float, PyTree

from posenc.lab.compiling import Compiled, count_compilations
from posenc.lab.models.carry import fresh_parameters
from posenc.lab.run.progress import Progress, SegmentTimer
from posenc.lab.run.saving import Home, Point, Saver, Source, program_facts, read_point
from posenc.lab.run.signals import COMPILES, Stopped
from posenc.lab.spec import own
from posenc.lab.spec.run import Knobs
from posenc.lab.store import disk
from posenc.lab.store.schema import TUNING, Counts, GroupRecord, PlannedTrial, TrialRecord, written
from posenc.lab.tasks.floors import Table, floors_by_metric
from posenc.lab.train import device
from posenc.lab.train.ahead import Ahead, Compiler
from posenc.lab.train.exact import SizeLosses, size_losses, with_gain
from posenc.lab.train.lanes import Arrangement, placed, stack
from posenc.lab.train.shapes import StepShape, true_model
from posenc.lab.train.task_record import places_of, task_record
from posenc.lab.train.training import ROUNDING, Program, ResolvedRun, as_arrays, forget_programs, program, pure, stages

T = TypeVar("T")
POINTS = 50
"""The least number of points of a loss curve, if there are as many steps."""
COUNTED_AHEAD = 512
"""Tokens of an example up to which floors are counted while a group trains; those of longer ones take much memory."""
BYTES = 2**28
"""Bytes of the beginnings that are kept on the host; the oldest go first, and one that is larger is not kept."""


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
    """Tells whether another worker has it now."""

    @property
    def label(self) -> str:
        return f"{self.lines[0].label} · {self.lines[0].task}"

    @property
    def stride(self) -> int:
        """Steps of a segment."""
        shared = self.lines[0]
        return math.gcd(shared.segment, *(end for _, end in stages(self.resolved, shared.steps)))

    @property
    def evaluated(self) -> tuple[tuple[int, bool], ...]:
        """The sizes that are evaluated, each with whether it is to choose a learning rate."""
        sizes, run = self.lines[0].sizes, self.resolved.run
        trained = [n for n in sizes if run.shortest <= n <= run.trained_to] or [run.trained_to]
        return (*((n, False) for n in sizes), *((n, True) for n in trained))

    def lane(self, lanes: Arrangement) -> Knobs:
        """The knobs of all lanes, as arrays."""
        return stack([as_arrays(Knobs(**written(line.knobs))) for line in self.lines], lanes)

    @property
    def spacing(self) -> int:
        """Steps between two points of the loss curve."""
        enough = max(1, self.lines[0].steps // POINTS)
        return max(n for n in range(1, self.stride + 1) if self.stride % n == 0 and n <= enough)


class Trained(NamedTuple):
    """Result of the training of a group."""

    record: GroupRecord
    models: Mapping[str, PyTree]
    """Trial to its parameters, where they are to be kept."""
    end: Point

    @property
    def outcome(self) -> str:
        return "diverged" if all(trial.outcome == "diverged" for trial in self.record.trials) else "done"


class _End(NamedTuple):
    """A group after its last step."""

    stage: ResolvedRun
    program: Program
    lane: Knobs
    """The knobs of each lane, as arrays."""
    point: Point


class Trainer:
    """Trains groups in this process, one after another."""

    def __init__(
        self,
        lanes: Arrangement,
        keep: bool,
        save_every: float,
        watch: Progress,
        check: Callable[[], None],
        log: Callable[..., None],
    ):
        self.lanes, self.keep, self.watch, self.check, self.log = lanes, keep, watch, check, log
        self.save_every = save_every
        """Seconds between two checkpoints."""
        self._floors: dict[tuple, dict[str, Table]] = {}
        self._process = device.describe() | {"rounding": ROUNDING, "lanes": str(lanes), "host": socket.gethostname()}
        self._beginnings = Beginnings()
        self._full = False  # what the user knows already
        self._steps: set[StepShape] = set()  # of the group before
        self._compiler = Compiler(COMPILES)

    def compile_ahead(self, group: Assigned, *parts: str) -> None:
        """Compile the programs of a group and count its floors in a thread, or only these parts; one that goes on under
        another scheme compiles its own."""
        if len(stages(group.resolved, group.lines[0].steps)) > 1:
            return
        rows, knobs, sizes = group.lines[0].rows, group.lane(self.lanes), [n for n, _ in group.evaluated]
        ahead = Ahead(group.resolved, group.stride, rows, self.lanes, knobs, sizes).parts
        if group.resolved.task.tokens(max(sizes)) <= COUNTED_AHEAD:
            ahead |= {"floors": functools.partial(self._floors_of, group)}
        self._compiler.begin(group.name, {part: ahead[part] for part in parts or ahead if part in ahead})

    def close(self) -> None:
        """Compile nothing more."""
        self._compiler.close()

    def train(self, group: Assigned, home: Home | None, finish: Callable[[Trained, Saver], T]) -> T:
        """Train a group from its newest checkpoint, or from the start. Keep new ones until `finish`, which stores the
        result, returns. Without a home for checkpoints no checkpoint is kept."""
        shared, ids = group.lines[0], [line.id for line in group.lines]
        steps = {stage.step for stage, _ in stages(group.resolved, shared.steps)}
        forget_programs(self._steps, steps)  # else memory would grow with each scheme of a sweep
        self._steps = steps
        say = lambda text: self.watch.note(f"{group.label}: {text}.")  # noqa: E731
        facts = program_facts(shared, group.stride, self._process)
        reserve = 2**14 + len(ids) * (40 * shared.steps // group.spacing + 900 * len(shared.sizes))
        saver = Saver(home, group.name, group.token, ids, facts, self.save_every, reserve, say, silent=self._full)
        source = saver.find_source()
        with saver, count_compilations() as compiled:
            try:
                run = group.resolved.run
                own.check_task(group.resolved.task, (run.shortest, run.length, *shared.sizes))
                clock = _Clock()
                end = self._train_stages(group, saver, source, clock)
                return finish(self._record(group, end, clock, compiled), saver)
            except (Stopped, Taken, disk.DiskError):
                raise
            except Exception:
                saver.note_failure()
                raise
            finally:
                self._full = saver.silent

    def _train_stages(self, group: Assigned, saver: Saver, source: Source | None, clock: _Clock) -> _End:
        """All steps of a group, stage after stage."""
        resolved, stride, label = group.resolved, group.stride, group.label
        shared = group.lines[0]  # but for id and knobs
        knobs = [Knobs(**written(line.knobs)) for line in group.lines]
        lane = group.lane(self.lanes)
        timer = SegmentTimer(lambda text: self.watch.note(f"{label}: {text}."))
        state, losses, begin = None, [], 0
        all_stages = stages(resolved, shared.steps)
        for n, (stage, end) in enumerate(all_stages):
            if source is not None and n < source.manifest.stage:
                begin = end
                continue
            shares = n == 0 < len(all_stages) - 1
            key = Beginnings.key(stage, end, shared.steps, stride, knobs) if shares else None
            if source is None and (beginning := self._beginnings.get(key)) is not None:
                state, losses, begin = placed(beginning.state, self.lanes), list(beginning.losses), end
                self.watch.step(label, end, shared.steps, float(np.mean(losses[-1])))
                self.log("shares", group=shared.group, step=end)
                continue
            run, before = program(stage, stride, shared.rows, self.lanes), state
            self._compiler.settle(group.name, "train")
            if source is not None and n == source.manifest.stage:
                point = read_point(source, saver.ids, self.lanes, jax.eval_shape(run.init, lane))
                state, losses, begin = placed(point.state, self.lanes), point.losses, point.step
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
                    state, loss = run.segment(state, lane, first, shared.steps)
                    loss = jax.device_get(loss)[: len(group.lines)]
                losses += _points(loss, group.spacing)
                clock.lap("compile" if first == begin else "train")
                self.watch.step(label, first + stride, shared.steps, float(loss[:, -1].mean()))
                self._between(Point(n, first + stride, state, losses, dict(clock.seconds)), group, saver)
            begin = end
            if key is not None:
                self._beginnings.put(key, state, losses)
        point = Point(len(all_stages) - 1, shared.steps, state, losses, dict(clock.seconds))
        return _End(stage, run, lane, point)

    def _record(self, group: Assigned, end: _End, clock: _Clock, compiled: Compiled) -> Trained:
        """Evaluate what the last stage left, by its program, and write the record of the group."""
        resolved, sizes, point = group.resolved, group.lines[0].sizes, end.point
        last, rows, at = resolved.run.trained_to, group.lines[0].rows, group.evaluated
        all_sizes, validates = zip(*at, strict=True)
        trained = [n for n, choosing in at if choosing]
        self._compiler.settle(group.name, "evaluate")
        sums = end.program.evaluate(point.state, end.lane, all_sizes, validates)
        exact = [size_losses(resolved.task, rows, all_sizes, n, last, choosing) for n, choosing in at]
        diverged = jax.device_get(point.state.diverged)
        clock.lap("evaluate")
        if group.taken():
            raise Taken
        places = [places_of(resolved, sizes, sums.places, n) for n in range(len(group.lines))]
        evaluated = sums.rows, exact
        trials = [
            _trial(line, n, (sizes, trained), group.spacing, point.losses, evaluated, places[n], int(diverged[n]))
            for n, line in enumerate(group.lines)
        ]
        self._compiler.settle(group.name, "floors")
        task = task_record(resolved, sizes, rows, self._floors_of(group), sums.places["scored"][0], exact)
        provenance = self._process | {"seconds": clock.seconds, "compiled": compiled.as_record()}
        provenance["ended"] = datetime.now(UTC).isoformat(timespec="seconds")
        shared, models = group.lines[0], {}
        if self.keep:
            lanes = jax.device_get(pure(true_model(point.state.model, end.stage.scheme, end.stage.shape)))
            models = {line.id: jax.tree.map(lambda a, n=n: a[n], lanes) for n, line in enumerate(group.lines)}
        record = GroupRecord(shared.run, shared.label, shared.family, task, tuple(trials), provenance)
        return Trained(record, models, point._replace(seconds=dict(clock.seconds)))

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

    def _floors_of(self, group: Assigned) -> dict[str, Table]:
        """The floors of a group's task, which are counted once in a sweep."""
        key = (group.resolved.task, group.lines[0].sizes, group.resolved.run.trained_to)
        if key not in self._floors:
            self._floors[key] = floors_by_metric(*key)
        return self._floors[key]


class Beginning(NamedTuple):
    """The trials of a group where another scheme goes on."""

    state: PyTree
    """On the host, with a leading axis of lanes."""
    losses: list[list[float]]
    """For each segment, the mean loss of each trial."""

    @property
    def size(self) -> int:
        return sum(a.nbytes for a in jax.tree.leaves(self.state))


class Beginnings(dict[Any, Beginning]):
    """The beginnings that this process has trained.

    A run with `then` trains under its first scheme as the run without does. Runs that differ in what follows alone have
    one beginning, bit for bit, so that its state is kept until there are too many.
    """

    @staticmethod
    def key(stage: ResolvedRun, end: int, steps: int, stride: int, knobs: Sequence[Knobs]) -> Any:
        """Return the facts that decide the numbers of a first stage, which ends at step `end` of `steps`."""
        symbols = stage.task.vocab, stage.task.classes
        return stage.step, stage.batching, symbols, end, steps, stride, tuple(knobs)

    def put(self, key: Any, state: PyTree, losses: list[list[float]]) -> None:
        """Keep a copy of a state, and of the losses so far."""
        self[key] = Beginning(jax.device_get(state), list(losses))
        while sum(beginning.size for beginning in self.values()) > BYTES:
            del self[next(iter(self))]


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
    """Return the mean loss of each lane over every `spacing` steps, in six digits, which are more than a batch
    knows."""
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
    """Return the record of the n-th lane. `sizes` are those reported and those on which a rate is chosen, and
    `evaluated` has its sums. Sizes with known exact losses have them."""
    (reported, trained), (sums, exact) = sizes, evaluated
    columns = zip(*(totals[n] for totals in sums.values()), strict=True)  # size by size
    counts = [dict(zip(sums, map(int, values), strict=True)) for values in columns]
    counts = [with_gain(of, losses) for of, losses in zip(counts, exact, strict=True)]
    evaluations: dict[int, Counts] = dict(zip(reported, counts, strict=False))
    validation: dict[int, Counts] = dict(zip(trained, counts[len(reported) :], strict=True))
    curve = {"step": [(i + 1) * spacing for i in range(len(losses))], "loss": [each[n] for each in losses]}
    head, role = (line.id, line.knobs, line.steps), TUNING if line.tuning else None
    if diverged >= 0:
        return TrialRecord(*head, "diverged", diverged, {}, {}, curve, role=role)
    return TrialRecord(*head, "done", None, evaluations, validation, curve, places, role)
