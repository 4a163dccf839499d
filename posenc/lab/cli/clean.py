"""`clean`: remove from a run folder what no longer serves."""

from __future__ import annotations

from dataclasses import dataclass

from posenc.lab.cli.options import First, Flag
from posenc.lab.cli.output import say, say_rows
from posenc.lab.store import disk


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
