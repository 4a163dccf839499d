"""Checkpoints that no worker will go on from: removed where a kill left them, and named where they wait for others."""

from __future__ import annotations

from collections.abc import Collection
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
    finished, others = {row.group: row.finished for row in store.status(folder).rows}, []
    for group in left & finished.keys():
        if finished[group]:
            with store.claim(folder, group) as own:  # None where another worker is about to do it
                if own is not None:
                    checkpoints.drop_group(folder, group)
        elif group in saved - held:
            others.append(group)
    if others:
        watch.note(
            f"{len(others)} group{'s' * (len(others) > 1)} of trials with checkpoints in {checkpoints.FOLDER}/ are not "
            "part of this sweep: their settings, revisions or sources differ. They stay."
        )
