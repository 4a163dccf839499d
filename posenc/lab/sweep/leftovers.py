"""Checkpoints that no worker will go on from: removed where a kill left them, and named where they wait for others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.sweep.progress import Progress


def clear(folder: Path, waiting: Collection[str], watch: Progress) -> None:
    """Remove what a kill after its record left of a group, and name the checkpoints of groups that are not to be
    trained now, since these go on only by their own command. `waiting` are the groups to be trained."""
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
            f"{len(others)} group{'s' * (len(others) > 1)} of trials with checkpoints in {checkpoints.FOLDER}/ are not "
            "part of this sweep: their settings, revisions or sources differ. They stay."
        )


def drop_recorded(folder: Path, groups: Iterable[str], drop: Callable[[str], None]) -> None:
    """Remove the checkpoints and the claim of each group, whose every trial is recorded."""
    for group in groups:
        with store.claim(folder, group) as own:  # None where another worker is about to do it
            if own is not None:
                drop(group)
