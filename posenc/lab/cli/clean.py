"""`clean`: remove from a run folder what no longer serves."""

from __future__ import annotations

from dataclasses import dataclass

from posenc.lab.cli.options import First, Flag
from posenc.lab.cli.output import say, say_rows
from posenc.lab.store import disk
from posenc.language.echo import plural


@dataclass(frozen=True)
class Clean:
    """Remove checkpoints of recorded groups, claims of workers that are gone, and files half written long ago."""

    run: First
    """A run's name, or its folder."""
    dry_run: Flag = False
    """List what would be removed, and remove nothing."""

    def __call__(self) -> int:
        from posenc.lab.store.cleaning import leftovers, remove

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


@dataclass(frozen=True)
class Compact:
    """Put single records into few files with an index, which `status` and workers read many times faster.

    Every result stays, and every command reads packs as it reads single records. Damaged lines and indices are mended
    as far as the rest allows. A sweep of at least 1000 records does this at its end.
    """

    run: First
    """A run's name, or its folder."""
    dry_run: Flag = False
    """List what would be packed and mended, and change nothing."""

    def __call__(self) -> int:
        from posenc.lab.store import compacting

        folder = disk.find(self.run)
        if not (folder / "plan.jsonl").is_file():
            raise ValueError(f"{str(folder)!r} holds no plan.jsonl, so it is not a run folder; nothing is packed.")
        if self.dry_run:
            todo = compacting.packable(folder)
            say_rows(("file", "why"), compacting.listed(todo))
            say(f"{plural(len(todo.files), 'record')} would be packed.")
            return 0
        disk.check_writable(folder)
        done = compacting.compact(folder)
        if done is None:
            raise ValueError(f"Another process compacts {str(folder)!r} now; wait until it is done.")
        into = f" into {plural(len(done.packs), 'file')}" if done.packs else ""
        mended = f"; mended {done.mended} damaged or missing" if done.mended else ""
        say(f"{plural(done.records, 'record')} packed{into}{mended}.")
        return 0
