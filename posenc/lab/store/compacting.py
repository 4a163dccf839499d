"""Single records become packs. A kill at any time loses nothing: packs are whole before the first file goes.

Files are packed where they are as the writer left them: readable, under the name of their trials, on one line. The
others stay, and so do those of groups that a worker holds. A pack with damaged lines is made again from its other
lines and kept beside them under a name that readers leave out; an index that is missing or damaged is written again.

Before a file is removed it is moved aside, so that nobody can replace it, and compared with what was packed. One that
a worker wrote meanwhile is put back.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from posenc.lab.store import disk, packs
from posenc.lab.store.claims import claim, held
from posenc.lab.store.reading import UNUSABLE, singles
from posenc.lab.store.records import parsed, unsealed
from posenc.language.echo import plural

LEAST = 1000
"""Single records that a run has before the end of a sweep packs them; fewer stay readable files."""
LARGEST = 2**26
"""Bytes of a pack, at most, unless one record is larger."""
CLAIM = "compacting"


class Packable(NamedTuple):
    """What there is to do in a run folder."""

    files: tuple[tuple[Path, packs.Entry], ...]
    """Single records to pack."""
    packed: tuple[tuple[Path, packs.Entry], ...]
    """Single records that a pack holds byte by byte already, as a kill leaves them."""
    damaged: tuple[tuple[Path, packs.Pack], ...]
    """Packs with lines that cannot be read."""
    unindexed: tuple[tuple[Path, packs.Pack], ...]
    """Whole packs without a whole index."""
    orphans: tuple[Path, ...]
    """Indices without a pack."""


class Compacted(NamedTuple):
    """What was done."""

    records: int
    packs: tuple[Path, ...]
    mended: int
    """Packs and indices that were damaged or missing."""


def packable(folder: Path) -> Packable:
    """What `compact` would do now."""
    known: dict[str, set[str]] = {}
    damaged, unindexed, orphans = [], [], []
    for path in packs.present(folder):
        try:
            pack = packs.read_pack(path)
        except UNUSABLE:  # a link, or gone: status names it
            continue
        if pack.lost:
            damaged.append((path, pack._replace(content=b"")))
        elif not pack.indexed:
            unindexed.append((path, pack._replace(content=b"")))
        for line in pack.lines:
            known.setdefault(line.entry.name, set()).add(line.entry.sum)
    for path in disk.part(folder, "records"):
        if packs.INDEX.fullmatch(path.name) and not path.with_suffix(".jsonl").exists():
            orphans.append(path)
    working = {one.group for one in held(folder) if not one.stale}
    files, packed = [], []
    for path in singles(folder):
        if path.stem in working or path.is_symlink():
            continue
        try:
            content = disk.content(path)
            whole = packs.entry_of(unsealed(parsed(content)), content)
        except UNUSABLE:  # status names it, and it runs again
            continue
        if whole.name != path.stem or content.count(b"\n") != 1 or not content.endswith(b"\n"):
            continue
        if whole.sum in known.get(path.stem, ()):
            packed.append((path, whole))
        elif path.stem not in known:  # else it is newer than the pack, and stays
            files.append((path, whole))
    return Packable(tuple(files), tuple(packed), tuple(damaged), tuple(unindexed), tuple(orphans))


def compact(folder: Path) -> Compacted | None:
    """Pack what can be packed; None where another process does it now. Raises `DiskError`, and nothing is lost."""
    with claim(folder, CLAIM) as own:
        return None if own is None else _compact(folder)


def _compact(folder: Path) -> Compacted:
    todo, written, done = packable(folder), [], 0
    for path, pack in todo.unindexed:
        disk.write(packs.index_path(path), packs.index_text(path, [line.entry for line in pack.lines]))
    for path, pack in todo.damaged:
        lines = [(packs.line_of(path, line), line.entry) for line in pack.lines]
        written += [_written(folder, chunk) for chunk in _chunks(lines)]
        _set_aside(path)
    for path in todo.orphans:
        path.unlink(missing_ok=True)
    for chunk in _chunks(_contents(todo.files)):
        written.append(_written(folder, chunk))
        done += len(chunk)
        for _, entry in chunk:
            _remove(disk.inside(folder, "records", f"{entry.name}.json"), entry)
    for path, entry in todo.packed:
        _remove(path, entry)
    disk.sync(disk.inside(folder, "records"))
    mended = len(todo.damaged) + len(todo.unindexed) + len(todo.orphans)
    return Compacted(done + len(todo.packed), tuple(dict.fromkeys(written)), mended)


def _contents(files: Iterable[tuple[Path, packs.Entry]]) -> Iterator[tuple[bytes, packs.Entry]]:
    """The files as they were looked at; one that has changed or gone since is left for another time."""
    for path, entry in files:
        with contextlib.suppress(FileNotFoundError):
            content = disk.content(path)
            if packs.checksum(content) == entry.sum:
                yield content, entry


def _chunks(lines: Iterable[tuple[bytes, packs.Entry]]) -> Iterator[list[tuple[bytes, packs.Entry]]]:
    """Lines of packs, as many as one holds at a time."""
    chunk: list[tuple[bytes, packs.Entry]] = []
    size = 0
    for content, entry in lines:
        if chunk and size + len(content) > LARGEST:
            yield chunk
            chunk, size = [], 0
        chunk.append((content, entry))
        size += len(content)
    if chunk:
        yield chunk


def _written(folder: Path, chunk: list[tuple[bytes, packs.Entry]]) -> Path:
    """The pack of these lines, whole on disk with its index."""
    content = b"".join(line for line, _ in chunk)
    path = disk.write(disk.inside(folder, "records") / packs.name_of(content), content)
    disk.write(packs.index_path(path), packs.index_text(path, [entry for _, entry in chunk]))
    return path


def _remove(path: Path, entry: packs.Entry) -> None:
    """Remove the file of a record that a pack holds."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    with contextlib.suppress(FileNotFoundError):  # another process packed it too
        os.rename(path, aside)
        if packs.checksum(disk.content(aside)) == entry.sum:
            aside.unlink()
        else:
            os.rename(aside, path)


def _set_aside(pack: Path) -> None:
    """Give a damaged pack a name that readers leave out."""
    packs.index_path(pack).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.rename(pack, pack.with_name(pack.name + packs.DAMAGED))


def listed(todo: Packable) -> list[tuple[str, str]]:
    """What would be done, each file with a reason."""
    rows = [(path.name, "to be packed") for path, _ in todo.files]
    rows += [(path.name, "in a pack already") for path, _ in todo.packed]
    rows += [(path.name, f"{plural(pack.lost, 'line')} damaged") for path, pack in todo.damaged]
    rows += [(packs.index_path(path).name, "the index is missing or damaged") for path, _ in todo.unindexed]
    return rows + [(path.name, "an index without its pack") for path in todo.orphans]
