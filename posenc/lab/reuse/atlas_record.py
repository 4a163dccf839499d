"""The record of the atlas, probe after probe: what a run folder trained, and RoPE's models under what changes them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from posenc.lab.results.results import load
from posenc.lab.reuse.evaluate import ask
from posenc.lab.run import plan
from posenc.lab.spec import atlas
from posenc.lab.spec.experiment import Experiment
from posenc.lab.store import folder as store
from posenc.lab.store.records import write_bundle
from posenc.lab.train.training import resolve


def extend_record(experiment: Experiment, record: Path, run: str) -> list[str]:
    """Add to a record the tasks of a run folder that it lacks and that are trained whole, and name them.

    RoPE's models of these tasks, whose parameters the sweep must have kept, are evaluated under the schemes that change
    RoPE after training.
    """
    results = load(store.find(run))
    before = load(record).records if record.is_file() else ()
    trained = {id for group in results.records for id in group.ids}
    trials = _trials(experiment, {group.task.label for group in before})
    added = sorted(task for task, ids in trials.items() if ids <= trained)
    if added:
        ids = set().union(*(trials[task] for task in added))
        new = replace(results, records=tuple(group for group in results.records if ids.issuperset(group.ids)))
        changed = ask(new.only(scheme="rope"), schemes=[*atlas.AFTER_TRAINING.values()])
        write_bundle(record, experiment.name, (*before, *new.records, *changed.records), ())
    return added


def _trials(experiment: Experiment, without: Collection[str]) -> dict[str, set[str]]:
    """Task to the ids of its trials, without some tasks."""
    ids: dict[str, set[str]] = {}
    for run in (run for run in experiment.runs if run.task not in without):
        ids.setdefault(run.task, set()).update(plan.wanted(resolve(run), experiment.plan, {}))
    return ids
