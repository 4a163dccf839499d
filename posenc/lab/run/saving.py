"""Checkpoints of groups in training: at an interval, at a signal, and while training goes on.

A checkpoint holds trials, not lanes, so that any devices go on from it, and any of its trials. It is used only if the
facts that decide further numbers are unchanged.
"""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree, UInt8

from posenc.lab.run.progress import Progress
from posenc.lab.store import checkpoints, disk
from posenc.lab.store import folder as store
from posenc.lab.store.schema import GroupRecord, PlannedTrial
from posenc.lab.train.lanes import Arrangement
from posenc.language.echo import plural

LIBRARIES = ("jax", "jaxlib", "flax", "optax")
"""Their versions decide numbers."""
KEPT = 2
"""Checkpoints of a group that stay: one may be damaged."""


class Point(NamedTuple):
    """A group between two segments."""

    stage: int
    step: int
    state: PyTree
    """A leading axis of lanes, whose first entries are the trials."""
    losses: list[list[float]]
    """The mean loss of each trial in one stretch of steps after another."""
    seconds: Mapping[str, float]


class Source(NamedTuple):
    """A checkpoint that fits, before its arrays are read."""

    path: Path
    manifest: checkpoints.Manifest


class Home(NamedTuple):
    """Location of a group's checkpoints."""

    folder: Path
    changed: Callable[[], None] = lambda: None
    """Called after checkpoints were made or removed there."""


@dataclass
class Saver:
    """The checkpoints of one group that is being trained here. One thread writes at a time."""

    home: Home | None
    """It is None if no checkpoint would outlive the machine; then nothing is saved."""
    group: str
    token: str
    ids: Sequence[str]
    program: Mapping[str, Any]
    interval: float
    """Seconds between two checkpoints."""
    reserve: int
    """Bytes on disk that stay free, for the record."""
    say: Callable[[str], None]
    silent: bool = False
    """True if the user knows already that the disk is full."""
    paths: list[Path] = field(default_factory=list)
    """The checkpoints of the group that this worker read and made, the next to be removed first. Checkpoints that
    another worker makes meanwhile are not ours to remove."""

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

    def find_source(self) -> Source | None:
        """Return the newest checkpoint that the group may go on from. Checkpoints that it may not use are removed
        first."""
        if self.home is None:
            return None
        checkpoints.tidy(self.home.folder, self.group)
        paths = checkpoints.paths(self.home.folder, self.group)
        source, unusable = newest_usable(paths, self.ids, self.program, self.say)
        if paths and source is None:
            self.say("begins again at step 0")
        self.paths = unusable[::-1] + [path for path in paths if path not in unusable]
        return source

    def go_on(self, source: Source) -> None:
        """Training goes on from this checkpoint."""
        self._source, self._saved = source.path, source.manifest.step

    def offer(self, point: Point) -> None:
        """Start to save this point if it is time, and the one before is written."""
        early = point.step == self._saved or time.monotonic() - self._started < self.interval
        if self.home is None or early or (self._thread is not None and self._thread.is_alive()):
            return
        self.wait()
        self._started = time.monotonic()
        if job := self._copy(self.home, point):
            self._thread = threading.Thread(target=self._write, args=job, name=f"save-{self.group}", daemon=True)
            self._thread.start()

    def stop_at(self, point: Point) -> None:
        """Save this point before the process ends; returns when it is on disk, or says why it is not."""
        if self.home is None:
            self.say(f"not saved at step {point.step}; it begins again at step 0")
            return
        self.wait()
        self.silent = True
        if self._saved != point.step and (job := self._copy(self.home, point)):
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
        if self.home is not None:
            checkpoints.drop_group(self.home.folder, self.group)
            self.paths, self._saved = [], 0
            self.home.changed()

    def note_failure(self) -> None:
        """The group failed; the second time after the same checkpoint, that one is dropped."""
        self.wait()
        if self.home is not None and self._source is not None and self.paths[-1:] == [self._source]:
            if checkpoints.note_failure(self._source):
                self.say(f"failed twice after the checkpoint at step {self._saved}, which is dropped")
            self.home.changed()

    def _copy(self, home: Home, point: Point) -> tuple[Home, checkpoints.Manifest, np.ndarray] | None:
        """Write a copy of the state, since the next segment takes its memory. Return None if it is too large for the
        disk."""
        trials = len(self.ids)
        need = trials * (row_size(point.state, trials) + 40 * len(point.losses)) + checkpoints.BESIDE + self.reserve
        self._requested = point.step
        if checkpoints.free(home.folder) < need:
            self._complain(f"the disk has less than {-(-need // 1000):,} kB left")
            return None
        losses = {id: [means[n] for means in point.losses] for n, id in enumerate(self.ids)}
        leaves = tuple(leaf_names(point.state))
        head = (point.step, point.stage, self.program, tuple(self.ids), leaves, losses, point.seconds)
        return home, checkpoints.Manifest(*head), pack(point.state, trials)

    def _write(self, home: Home, manifest: checkpoints.Manifest, rows: np.ndarray) -> None:
        try:
            self.paths.append(checkpoints.save(home.folder, self.group, self.token, manifest, rows))
            while len(self.paths) > KEPT:
                checkpoints.drop(self.paths.pop(0))
            home.changed()
            self._saved, self.silent = manifest.step, False
        except Exception as problem:  # `wait` reports it in the thread that trains
            self._problem = problem

    def _complain(self, why: str) -> None:
        self._why = why
        if not self.silent:
            self.say(f"no checkpoint at step {self._requested}: {why}; training goes on")
        self.silent = True


def program_facts(line: PlannedTrial, stride: int, process: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that decide further numbers: a checkpoint goes on only under equal ones.

    `process` describes this process. The number of devices is left out, and the run's revisions and sources are in it.
    """
    run = store.checksum(store.canonical(line.run))
    return {
        "posenc": process["posenc"],
        **{name: version(name) for name in LIBRARIES},
        "platform": process["platform"],
        "rounding": process["rounding"],
        "run": run,
        "steps": line.steps,
        "segment": stride,
    }


def newest_usable(
    paths: Sequence[Path], ids: Sequence[str], program: Mapping[str, Any], say: Callable[[str], None]
) -> tuple[Source | None, list[Path]]:
    """The checkpoint with the most steps that these trials may go on from, and those that they may not.

    `paths` are in the order of their steps; `say` gets a sentence for each that is left out.
    """
    unusable = []
    for path in reversed(paths):
        step = checkpoints.step_of(path)
        try:
            manifest = checkpoints.manifest(path)
        except ValueError as error:
            say(f"the checkpoint at step {step} is left out: {error}")
        else:
            if why := _why_not(manifest, ids, program):
                say(f"the checkpoint at step {step} is not used: {why}")
            else:
                return Source(path, manifest), unusable
        unusable.append(path)
    return None, unusable


def _why_not(manifest: checkpoints.Manifest, ids: Sequence[str], program: Mapping[str, Any]) -> str:
    """Why these trials may not go on from a checkpoint, or nothing."""
    for name in program.keys() | manifest.program.keys():
        before, now = manifest.program.get(name), program.get(name)
        if before != now:
            which = "the same run, otherwise rounded" if name == "rounding" else "another run"
            return f"it is of {which} ({name} was {str(before)[:16]} and is {str(now)[:16]})"
    if missing := [id for id in ids if id not in manifest.ids]:
        return f"it lacks {len(missing)} of the {len(ids)} trials"
    return ""


def read_point(source: Source, ids: Sequence[str], lanes: Arrangement, template: PyTree) -> Point:
    """The point that a checkpoint holds, for these trials in lanes; `template` has the shapes of its state.

    Raises `ValueError` where its arrays are not those of the template.
    """
    manifest = source.manifest
    if tuple(leaf_names(template)) != manifest.leaves:
        raise ValueError(f"The checkpoint at step {manifest.step} holds arrays of another model.")
    rows = [manifest.ids.index(id) for id in ids]
    rows += rows[:1] * (lanes.padded(len(ids)) - len(ids))
    means = zip(*(manifest.losses[id] for id in ids), strict=True)
    losses = [[math.nan if loss is None else loss for loss in of_trials] for of_trials in means]
    state = unpack(checkpoints.rows(source.path)[rows], template)
    return Point(manifest.stage, manifest.step, state, losses, manifest.seconds)


def pack(state: PyTree, trials: int) -> UInt8[np.ndarray, "trials bytes"]:
    """A copy of the first lanes of a state, each a row of bytes."""
    rows = np.zeros((trials, row_size(state, trials)), np.uint8)
    at = 0
    for leaf in jax.tree.leaves(state):
        columns = np.ascontiguousarray(jax.device_get(leaf)[:trials]).reshape(trials, -1).view(np.uint8)
        rows[:, at : at + columns.shape[1]] = columns
        at += columns.shape[1]
    return rows


def unpack(rows: UInt8[np.ndarray, "lanes bytes"], template: PyTree) -> PyTree:
    """The state whose lanes are these rows; `template` has its types and shapes."""
    leaves, tree = jax.tree.flatten(template)
    arrays, at = [], 0
    for leaf in leaves:
        columns = np.ascontiguousarray(rows[:, at : at + _size(leaf)]).view(leaf.dtype)
        arrays.append(columns.reshape(len(rows), *leaf.shape[1:]))
        at += _size(leaf)
    return jax.tree.unflatten(tree, arrays)


def row_size(state: PyTree, trials: int) -> int:
    """Bytes per trial in a checkpoint of `trials` rows."""
    return checkpoints.width(sum(map(_size, jax.tree.leaves(state))), trials)


def leaf_names(state: PyTree) -> list[str]:
    """The path, type and shape of each array of a state, without its axis of lanes."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return [f"{jax.tree_util.keystr(path)} {leaf.dtype}{list(leaf.shape[1:])}" for path, leaf in leaves]


def _size(leaf: Any) -> int:
    return math.prod(leaf.shape[1:]) * leaf.dtype.itemsize


def clear(folder: Path, waiting: Collection[str], watch: Progress) -> None:
    """Remove what a kill after its record left of a group. Name the checkpoints of groups that are not to be trained
    now, since these go on only by their own command. `waiting` are the groups to be trained."""
    checkpoints.tidy(folder)
    saved, held = set(checkpoints.groups(folder)), {claim.group for claim in store.held(folder)}
    left = (saved | held).difference(waiting)
    if not left:
        return
    finished = {row.group: row.finished for row in store.status(folder).rows}
    recorded = (group for group in left & finished.keys() if finished[group])
    drop_recorded(folder, recorded, functools.partial(checkpoints.drop_group, folder))
    if others := [group for group in left & finished.keys() & (saved - held) if not finished[group]]:
        watch.note(
            f"{plural(len(others), 'group')} of trials with checkpoints in {checkpoints.FOLDER}/ are not "
            "part of this sweep: their settings, revisions or sources differ. They stay."
        )


def drop_recorded(folder: Path, groups: Iterable[str], drop: Callable[[str], None]) -> None:
    """Remove the checkpoints and the claim of each group, whose every trial is recorded."""
    for group in groups:
        with store.claim(folder, group) as own:  # None where another worker is about to do it
            if own is not None:
                drop(group)


def write_results(
    folder: Path, record: GroupRecord, models: Mapping[str, PyTree], make_room: Callable[[], None]
) -> None:
    """Write what a group leaves, its models after the record: a full disk must not cost results, and gets the space of
    checkpoints. Raises `DiskError`."""
    writes = [functools.partial(store.write_record, folder, record)]
    writes += [functools.partial(checkpoints.save_parameters, folder, *model) for model in models.items()]
    for write in writes:
        try:
            write()
        except store.DiskError as error:
            if error.errno not in checkpoints.FULL:
                raise
            make_room()
            write()
