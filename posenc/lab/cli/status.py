"""`status` shows how far a run is, once or repeatedly, while any number of workers train it. `clean` removes from its
folder what no longer serves. Neither needs jax."""

from __future__ import annotations

import gc
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posenc.lab.cli.options import First, Flag
from posenc.lab.cli.output import report, say, say_json, say_rows, terminal
from posenc.lab.store import disk
from posenc.lab.store.records import plain
from posenc.language.echo import lasting, plural

if TYPE_CHECKING:
    from posenc.lab.results.standing import Standing
    from posenc.lab.store.folder import GroupStatus, Running, RunStatus

PAUSE = 5.0
"""Seconds between two looks, or four times what a look takes."""
CLEARED = "\x1b[H\x1b[2J"


@dataclass(frozen=True)
class Status:
    """Progress of a run: trials by outcome, and for each group of trials its worker or its error.

    Of a group that trains: its host and job, step, steps a second, time left, and the age of its last checkpoint.
    """

    run: First
    """A run's name, or its folder."""
    watch: Flag = False
    """Look again every few seconds, at groups that train or failed alone, until every trial has a result."""
    json: Flag = False
    """Print JSON; with --watch one line for each look."""

    def __call__(self) -> int:
        from posenc.lab.results.standing import ended
        from posenc.lab.store import folder as store

        folder = store.find(self.run)
        if not self.watch:
            status, standing = _look(folder)
            say_json(self._json(status, standing)) if self.json else self._text(status, standing, status.rows)
            return 0
        while True:
            began = time.monotonic()
            status, standing = _look(folder)
            if self.json:
                print(json.dumps(plain(self._json(status, standing)), default=str), flush=True)
            else:
                sys.stdout.write(CLEARED if terminal(sys.stdout) else "")
                rows = [row for row in status.rows if row.running or row.error and not row.finished]
                self._text(status, standing, rows)
                sys.stdout.flush()
            if ended(status, standing):
                return 0
            time.sleep(max(PAUSE, 4 * (time.monotonic() - began)))

    def _json(self, status: RunStatus, standing: Standing) -> dict[str, Any]:
        rows = [vars(row) | {"running": row.running and asdict(row.running)} for row in status.rows]
        parts = {"counts": status.counts, "groups": rows, "outcomes": status.outcomes}
        more = {"undecided": standing.undecided, "replaced": _replaced(status, standing)}
        more |= {"compiling": round(status.compiling, 3)}
        return {"run": self.run, **parts, "problems": status.problems, **more}

    def _text(self, status: RunStatus, standing: Standing, rows: tuple[GroupStatus, ...] | list[GroupStatus]) -> None:
        shown = {o: n for o, n in status.counts.items() if n or o in ("done", "failed", "pending")}
        say(f"{Path(self.run).name}: {', '.join(f'{o} {n}' for o, n in shown.items())}")
        cells = [
            (
                r.task,
                f"{r.scheme} (tuning)" if r.tuning else r.scheme,
                ", ".join(f"{o} {n}" for o, n in r.counts.items()),
                at_work(r.running) if r.running else "; ".join(filter(None, (stopped(r), r.error))),
            )
            for r in rows
        ]
        if cells or not self.watch:
            say_rows(("task", "scheme", "trials", ""), cells)
        if more := standing.undecided:
            say(f"At most {plural(more, 'more trial')} will be planned once the learning rates are chosen.")
        if replaced := _replaced(status, standing):
            trials = f"{plural(replaced, 'trial')} without a result"
            say(f"{trials} will not be trained, since the tuning seeds chose another learning rate.")
        if status.compiling and not self.watch:
            say(f"Compiling took {status.compiling:.1f} s.")
        report(status.problems)


def at_work(row: Running) -> str:
    """A group that trains, in a line: where, how far, how fast, how long still, and what would be lost."""
    parts = [f"{row.host}:{row.pid}"]
    if row.job is not None:
        parts.append(f"job {row.job}")
    if row.step is not None:
        parts.append(f"step {row.step} of {row.steps}")
    if row.loss is not None:
        parts.append(f"loss {row.loss:.3g}")
    if row.rate is not None:
        parts.append(f"{row.rate:.3g} steps/s")
    if row.step is not None and row.step == row.steps:
        parts.append("evaluating")
    elif row.left is not None:
        parts.append(f"about {lasting(row.left)} of steps left")
    if row.age is not None:
        parts.append(f"step {row.saved} saved {lasting(row.age)} ago")
    return ", ".join([*parts, f"beat {lasting(row.beat)} ago"])


def stopped(row: GroupStatus) -> str:
    """Say from which step an unclaimed group goes on."""
    return "" if row.saved is None or row.finished else f"saved at step {row.saved}"


def _replaced(status: RunStatus, standing: Standing) -> int:
    """How many trials have no result and need none, since another learning rate was chosen."""
    return len(status.left & standing.replaced)


def _look(folder: Path) -> tuple[RunStatus, Standing]:
    """Return the status, and the chosen learning rates. It reads without pauses to look for cycles among millions of
    objects, which have no cycles."""
    from posenc.lab.results.standing import standing
    from posenc.lab.store import folder as store

    gc.disable()
    try:
        plan = store.read_plan(folder)
        decided = standing(folder, plan)
        return store.status(folder, plan), decided
    finally:
        gc.enable()


@dataclass(frozen=True)
class Clean:
    """Remove checkpoints of recorded groups, claims of workers that are gone, and files half written long ago."""

    run: First
    """A run's name, or its folder."""
    dry_run: Flag = False
    """List what would be removed, and remove nothing."""

    def __call__(self) -> int:
        from posenc.lab.store.folder import leftovers, remove

        folder = disk.find(self.run)
        if not (folder / "plan.jsonl").is_file():
            raise ValueError(f"{str(folder)!r} holds no plan.jsonl, so it is not a run folder; nothing is removed.")
        files = leftovers(folder)
        if not self.dry_run:
            remove(files)
        say_rows(("file", "why", "kB"), [(str(o.path.relative_to(folder)), o.why, o.size // 1000) for o in files])
        done = "would be removed" if self.dry_run else "removed"
        say(f"{len(files)} {done}, {sum(o.size for o in files) / 1e6:.1f} MB.")
        return 0
