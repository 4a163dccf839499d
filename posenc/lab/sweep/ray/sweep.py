"""A planned run on a Ray cluster, from the plan to the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from posenc.lab.store import folder as store
from posenc.lab.store import places
from posenc.lab.sweep import tuning
from posenc.lab.sweep.packing import pack
from posenc.lab.sweep.progress import Progress
from posenc.lab.sweep.ray.cluster import connected
from posenc.lab.sweep.ray.driver import Orders, drive
from posenc.lab.sweep.ray.settings import Ray
from posenc.lab.sweep.signals import PREEMPTED, Signals, Stopped
from posenc.lab.sweep.team import DONE, FAILED, outcome
from posenc.lab.sweep.worker import Groups, waiting


def on_cluster(
    folder: Path,
    how: Ray,
    *,
    keep: bool,
    lanes: str | None,
    save_every: float,
    imports: Sequence[str],
    watch: Progress,
) -> int:
    """Have a cluster train what is left of the plan; returns the exit code.

    Raises `ValueError` where the cluster or a node refuses.
    """
    place = places.place_of(how.checkpoints, folder)
    orders = Orders(keep, lanes, save_every, how.cpus, how.gpus, tuple(imports), place)
    for every, lines, total in tuning.stages(folder):
        store.ready(folder)
        groups = waiting(folder, lines, store.survey(folder).outcomes, keep)
        many = sum(map(len, groups.values()))
        watch.begin(total, len(every) - many, None)
        try:
            code = _driven(folder, groups, how, orders, watch) if groups else DONE
        except Stopped:
            return PREEMPTED
        if code not in (DONE, FAILED):
            return code
    pack(folder, watch)
    return outcome(folder)


def _driven(folder: Path, groups: Groups, how: Ray, orders: Orders, watch: Progress) -> int:
    with connected(how) as cluster, Signals() as signals:
        return drive(folder, groups, cluster, orders, watch, signals)
