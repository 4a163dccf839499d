"""A worker: it claims groups of trials, has them trained, and records what is finished, until nothing is left.

Any number of workers see one run folder. Groups that others hold are waited for, and taken over should their worker
die. Reported trials of a sweep that tunes are planned here once the learning rate of their run is chosen.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from posenc.lab.compiling import count_compilations
from posenc.lab.results.learned import nothing_learned
from posenc.lab.run import plan, tuning
from posenc.lab.run.progress import Events, Progress, Reporter, Tally
from posenc.lab.run.saving import Home, Saver, clear, write_results
from posenc.lab.run.signals import DONE, FAILED, Signals, Stopped
from posenc.lab.run.team import PAUSES, failure, outcome
from posenc.lab.run.trainer import Assigned, Taken, Trained, Trainer
from posenc.lab.spec import own
from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.store.schema import GroupRecord, PlannedTrial
from posenc.lab.train import training
from posenc.lab.train.lanes import Arrangement, arrangement
from posenc.lab.train.training import ResolvedRun
from posenc.language.echo import plural

Groups = dict[str, list[PlannedTrial]]


def work(
    folder: Path,
    *,
    only: tuning.Share | None = None,
    keep: bool = False,
    lanes: str | None = None,
    save_every: float = checkpoints.EVERY,
    watch: Progress,
) -> int:
    """Train what is left of the plan, or of one command's share of it. Return the exit code: failed if any trial of
    that failed.

    Raises `ValueError` at a run that another version planned.
    """
    runs, code, missing = _Runs(only.runs if only else {}), DONE, 0
    worker = Worker(folder, runs, arrangement(lanes), keep, save_every, watch)
    with contextlib.closing(worker.trainer):
        for lines, new, total in tuning.stages(folder, only):
            store.ready(folder)
            recorded = store.Recorded(folder)
            groups = waiting(folder, new, recorded.ids(), keep)
            needed = None if only is None else len(programs(groups, runs))
            watch.begin(total, len(lines) - sum(map(len, groups.values())), needed)
            code = max(code, worker.carry_out(begin_anywhere(groups) if only is None else groups, recorded))
            if code not in (DONE, FAILED):
                return code
            missing = total - len(lines)
    if only is None:
        return outcome(folder)
    if missing:
        watch.note(
            f"Not trained, since tuning trials of the same run have no result: {plural(missing, 'trial')} to be "
            "reported. The same command tries those that failed again."
        )
    return FAILED if missing else code


def waiting(folder: Path, lines: Iterable[PlannedTrial], finished: Collection[str], keep: bool) -> Groups:
    """The groups with trials that are not `finished`, or have none of the parameters that are to be kept."""
    kept = set(checkpoints.kept(folder)) if keep else None
    groups: Groups = {}
    for line in lines:
        if line.id not in finished or (kept is not None and line.id not in kept):
            groups.setdefault(line.group, []).append(line)
    return groups


def programs(groups: Mapping[str, Sequence[PlannedTrial]], runs: _Runs) -> set[tuple[Any, ...]]:
    """The programs that these groups compile between them."""
    needed: set[tuple[Any, ...]] = set()
    for line in (lines[0] for lines in groups.values()):
        run = runs(line)
        with own.forgiving(plan.parts_of(run)):
            needed |= training.programs(run, line.steps, line.rows, line.sizes)
    return needed


def begin_anywhere(groups: Groups) -> Groups:
    """Return the groups from a random one on, and then those before it. Workers that start together begin apart, and
    each still meets equal programs one after another."""
    names = list(groups)
    start = random.randrange(len(names)) if names else 0
    return {name: groups[name] for name in names[start:] + names[:start]}


class _Runs(dict[str, ResolvedRun]):
    """The runs of a plan, each resolved once; some may be so already, by what the plan says of each."""

    def __call__(self, line: PlannedTrial) -> ResolvedRun:
        text = store.canonical(line.run)
        if text not in self:
            self[text] = plan.planned_run(line.run)
        return self[text]


def failures(folder: Path) -> dict[str, float]:
    """The groups that failed, each with the time of its last failure."""
    times = {}
    for group, path in store.error_files(folder).items():
        with contextlib.suppress(FileNotFoundError):  # who tries a group again removes it
            times[group] = path.stat().st_mtime
    return times


def _wait(seconds: float, check: Callable[[], None]) -> None:
    """Wait, and stop soon after a signal."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        check()
        time.sleep(min(left, 0.5))


def first_advice(record: GroupRecord) -> str:
    """Return what to try where the first group of a sweep learned nothing; empty where it did."""
    with contextlib.suppress(Exception):  # advice must not cost a record, as of a metric of the user's own
        if facts := nothing_learned(record):
            size, share, floor = facts
            return (
                f"{record.label} · {record.task.label}: nothing was learned, {share:.2f} at size {size}, where the"
                f" baseline is {floor:.2f}. Try more steps, a smaller length, another lr or a smaller task; the sweep"
                " goes on."
            )
    return ""


class Worker:
    """Runs groups in this process. `runs` gives the run of a planned trial."""

    def __init__(
        self,
        folder: Path,
        runs: Callable[[PlannedTrial], ResolvedRun],
        lanes: Arrangement,
        keep: bool,
        save_every: float,
        watch: Progress,
    ):
        self.watch, self.signals = Reporter(watch, Events(folder, watch.note)), Signals()
        self.folder, self.runs, self.keep = folder, runs, keep
        self.trainer = Trainer(lanes, keep, save_every, self.watch, self.signals.check, self.watch.log)
        self.failed = self.recorded = 0

    def carry_out(self, groups: Groups, recorded: store.Recorded) -> int:
        """Run these groups, or see them recorded or failed elsewhere; returns the exit code."""
        clear(self.folder, groups, self.watch)
        self.tally = Tally(recorded, groups)
        with self.signals, count_compilations() as compiled:
            try:
                self._until_done(groups)
            except Stopped:
                self.watch.note("Stopped; what is recorded is safe, and the same command goes on.")
                return self.signals.code
        if compiled.programs:
            self.watch.note(str(compiled))
        return FAILED if self.failed else DONE

    def _until_done(self, groups: Groups) -> None:
        noted, pause, left, before = 0, PAUSES[0], groups, failures(self.folder)
        while left:
            after = dict(zip(left, [*left.items()][1:], strict=False))
            held = {group: lines for group, lines in left.items() if not self.run(group, lines, after.get(group))}
            self.watch.others(self.tally.others())
            elsewhere = {group for group, at in failures(self.folder).items() if at != before.get(group)}
            held = {group: lines for group, lines in held.items() if group not in elsewhere}  # one try for each sweep
            if len(held) not in (0, noted):
                self.watch.note(f"Waiting for {plural(len(held), 'group')} that other workers run.")
                noted = len(held)
            if len(held) == len(left):  # for others to end, or for one to die
                _wait(pause, self.signals.check)
                pause = min(1.5 * pause, PAUSES[1])
            else:
                pause = PAUSES[0]
            left = held

    def run(
        self, group: str, lines: list[PlannedTrial], following: tuple[str, list[PlannedTrial]] | None = None
    ) -> bool:
        """Train, evaluate and record one group; return False if another worker holds it. Compile the programs of the
        `following` group meanwhile.

        An exception is kept with its traceback, and the sweep goes on.
        """
        label, began = f"{lines[0].label} · {lines[0].task}", time.monotonic()
        self.signals.check()
        fault: Exception | None = None
        try:
            run = self.runs(lines[0])
        except ValueError:  # of another version, or of a file that is not imported or has changed
            raise
        except Exception as error:  # of a class of the user's own
            fault = error
        with store.claim(self.folder, group) as claim:
            if claim is None:
                return False
            lines = waiting(self.folder, lines, self.tally.recorded.ids(), self.keep).get(group, [])
            if not lines:
                self._finished(label, "done by another worker", began)
                return True
            self.tally.ours(lines)
            self.watch.of(group)
            self.watch.group(label, len(lines))
            store.clear_error(self.folder, group)
            try:
                if fault is not None:
                    raise fault
                assigned = Assigned(group, lines, run, claim.token, claim.taken)
                self._compile_ahead(assigned, following)
                outcome = self.trainer.train(assigned, Home(self.folder), self._record)
            except (Stopped, store.DiskError):
                raise
            except Exception as error:  # one group must not end a sweep; its traceback is kept
                if isinstance(error, Taken) or claim.taken():  # who took it removes files that are being written here
                    self.watch.taken(label)
                    self.watch.log("taken", group=group)
                    return False
                self.failed += 1
                outcome = failure(error)
                why, text = own.failed(error, plan.parts_of(run) if fault is None else ())
                path = store.write_error(self.folder, group, outcome, text)
                self.watch.note(f"{label} {outcome}: {why} (see {path.name})")
            self.watch.log(outcome, group=group, seconds=round(time.monotonic() - began, 3))
            self._finished(label, outcome, began)
        return True

    def _compile_ahead(self, now: Assigned, following: tuple[str, list[PlannedTrial]] | None) -> None:
        """Have a thread compile what this group is evaluated by, and all of the next one."""
        with contextlib.suppress(Exception):  # what is wrong with a group is said when it is its turn
            self.trainer.compile_ahead(now, "evaluate", "floors")
            if following is not None and len(store.held(self.folder)) == 1:  # else another worker may take it
                name, lines = following
                self.trainer.compile_ahead(now._replace(name=name, lines=lines, resolved=self.runs(lines[0])))

    def _finished(self, label: str, outcome: str, began: float) -> None:
        self.watch.others(self.tally.others())
        self.watch.finished(label, outcome, time.monotonic() - began)

    def _record(self, trained: Trained, saver: Saver) -> str:
        """Store what a group leaves; returns its outcome. Training is not lost where the disk refuses."""

        def make_room() -> None:
            saver.say("the disk is full, so its checkpoints are dropped")
            saver.drop()

        try:
            write_results(self.folder, trained.record, trained.models, make_room)
        except store.DiskError:
            saver.stop_at(trained.end)
            raise
        self.recorded += 1
        if self.recorded == 1 and self.tally.more() and (advice := first_advice(trained.record)):
            self.watch.note(advice)
        saver.drop()
        return trained.outcome
