"""The record of the atlas, probe after probe: what a run folder trained, and RoPE's models under what changes them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from posenc.lab.results.results import Results, load
from posenc.lab.reuse.evaluate import ask
from posenc.lab.spec import atlas
from posenc.lab.spec.experiment import Experiment
from posenc.lab.store import folder as store
from posenc.lab.store.records import write_bundle


def extend_record(experiment: Experiment, record: Path, run: str) -> list[str]:
    """Add to a record the tasks of a run folder that it lacks and that are trained whole, and name them.

    RoPE's models of these tasks, whose parameters the sweep must have kept, are evaluated under the schemes that change
    RoPE after training.
    """
    results = load(store.find(run))
    before = load(record).records if record.is_file() else ()
    added = sorted(whole_tasks(experiment, results) - {group.task.label for group in before})
    if added:
        new = results.only(task=added)
        changed = ask(new.only(scheme="rope"), schemes=[*atlas.AFTER_TRAINING.values()])
        write_bundle(record, experiment.name, (*before, *new.records, *changed.records), ())
    return added


def whole_tasks(experiment: Experiment, results: Results) -> set[str]:
    """The tasks of which these results have every trial of an experiment."""
    planned, trained = Counter(), Counter()
    for experiment_run in experiment.runs:
        planned[experiment_run.task] += experiment.plan.trials
    for group in results.records:
        trained[group.task.label] += len(group.trials)
    return {task for task, trials in planned.items() if trained[task] == trials}
