"""The end of a sweep packs its records, where there are many."""

from __future__ import annotations

from pathlib import Path

from posenc.lab.store import compacting
from posenc.lab.store import folder as store
from posenc.lab.store.reading import singles
from posenc.lab.sweep.progress import Progress
from posenc.language.echo import plural


def pack(folder: Path, watch: Progress) -> None:
    """Pack the single records of a run that has at least `compacting.LEAST`. A disk that refuses costs no result, so
    it is said, and the sweep ends as it would."""
    if len(singles(folder)) < compacting.LEAST:
        return
    try:
        done = compacting.compact(folder)
    except store.DiskError as error:
        watch.note(f"The records are not packed: {error.strerror}")
        return
    if done is not None and done.records:
        watch.note(f"Packed {plural(done.records, 'record')} into {plural(len(done.packs), 'file')}.")
