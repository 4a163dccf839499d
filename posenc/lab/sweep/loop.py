"""The loop of a worker: it tries group after group until none is left, and waits for those that others hold."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from posenc.lab.store import folder as store
from posenc.lab.store import parameters
from posenc.lab.store.schema import PlannedTrial
from posenc.lab.sweep.progress import Progress, Tally
from posenc.lab.sweep.saving import clear
from posenc.lab.sweep.signals import Signals, Stopped
from posenc.lab.sweep.team import DONE, FAILED, PAUSES
from posenc.lab.sweep.worker import Worker
from posenc.lab.train.compiling import count_compilations
from posenc.lab.train.lanes import Arrangement
from posenc.lab.train.training import ResolvedRun
from posenc.language import echo

Groups = dict[str, list[PlannedTrial]]


def waiting(folder: Path, lines: Iterable[PlannedTrial], finished: Collection[str], keep: bool) -> Groups:
    """The groups with trials that are not `finished`, or have none of the parameters that are to be kept."""
    kept = set(parameters.kept(folder)) if keep else None
    groups: Groups = {}
    for line in lines:
        if line.id not in finished or (kept is not None and line.id not in kept):
            groups.setdefault(line.group, []).append(line)
    return groups


def named(folder: Path, lines: Iterable[PlannedTrial]) -> set[str]:
    """The trials that have a result by the names of records: a record of a group's name holds all of its trials, and
    only of other records the content is read. What a damaged file loses is not noticed here, but by `store.survey`."""
    groups: Groups = {}
    for line in lines:
        groups.setdefault(line.group, []).append(line)
    recorded = store.Recorded(folder)
    done = groups.keys() & recorded.names()
    return {line.id for group in done for line in groups[group]} | recorded.beside(groups)


def carry_out(
    folder: Path,
    groups: Mapping[str, Sequence[PlannedTrial]],
    resolved: Callable[[PlannedTrial], ResolvedRun],
    how: Arrangement,
    *,
    keep: bool,
    save_every: float,
    watch: Progress,
) -> int:
    """Run these groups in this process, or see them recorded or failed elsewhere; returns the exit code."""
    clear(folder, groups, watch)
    tally = Tally(folder, {group: len(lines) for group, lines in groups.items()})
    with Signals() as signals, count_compilations() as compiled:
        worker = Worker(folder, how, keep, watch, tally, signals.check, save_every)
        try:
            _until_done(groups, resolved, worker, tally, watch, signals.check)
        except Stopped:
            watch.note("Stopped; what is recorded is safe, and the same command goes on.")
            return signals.code
    if compiled.programs:
        watch.note(str(compiled))
    return FAILED if worker.failed else DONE


def _until_done(
    groups: Mapping[str, Sequence[PlannedTrial]],
    resolved: Callable[[PlannedTrial], ResolvedRun],
    worker: Worker,
    tally: Tally,
    watch: Progress,
    check: Callable[[], None],
) -> None:
    noted, pause, left = 0, PAUSES[0], dict(groups)
    before = failures(worker.folder)
    while left:
        held = {g: lines for g, lines in left.items() if not worker.run(g, list(lines), resolved(lines[0]))}
        watch.others(tally.others())
        elsewhere = held.keys() & {group for group, at in failures(worker.folder).items() if at != before.get(group)}
        held = {g: lines for g, lines in held.items() if g not in elsewhere}  # one try for each sweep
        if len(held) not in (0, noted):
            watch.note(f"Waiting for {echo.plural(len(held), 'group')} that other workers run.")
            noted = len(held)
        if len(held) == len(left):  # for others to end, or for one to die
            _wait(pause, check)
            pause = min(1.5 * pause, PAUSES[1])
        else:
            pause = PAUSES[0]
        left = held


def failures(folder: Path) -> dict[str, float]:
    """The groups that failed, each with the time of its last failure."""
    found = {}
    for group, path in store.error_files(folder).items():
        with contextlib.suppress(FileNotFoundError):  # who tries a group again removes it
            found[group] = path.stat().st_mtime
    return found


def _wait(seconds: float, check: Callable[[], None]) -> None:
    """Wait, and stop soon after a signal."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        check()
        time.sleep(min(left, 0.5))
