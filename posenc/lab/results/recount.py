"""The floors of records counted again, as this version counts them: they depend on task and sizes, not on any model."""

from __future__ import annotations

from dataclasses import replace

from posenc.lab.results.results import Results
from posenc.lab.spec.run import ON
from posenc.lab.store.schema import GroupRecord
from posenc.lab.tasks import Task, parse
from posenc.lab.tasks.floors import Table, floors_by_metric
from posenc.language.echo import echoed


def recounted(results: Results) -> Results:
    """The same results with new floors by every metric, at the sizes that have floors. Raises `ValueError` for a task
    that this version does not have as it was, or that has another metric by now."""
    known: dict[tuple, dict[str, Table]] = {}
    records = []
    for record in (*results.records, *results.tuning):
        old = record.task
        key = (old.label, tuple(old.floors), old.trained[1])
        if key not in known:
            known[key] = floors_by_metric(_task(record), *key[1:])
        new = known[key]
        if old.metric not in new:
            raise ValueError(
                f"The record of {echoed(record.label)} on {echoed(old.label)} counts {old.metric!r}, but this version's"
                f" task counts {', '.join(new)}, so its floors cannot be counted again; train it again under a new"
                " --name, or evaluate it again."
            )
        others = {"last", "beyond", "accuracy"} - {old.metric}
        task = replace(old, floors=new[old.metric], **{f"floors_{metric}": new.get(metric) for metric in others})
        records.append(replace(record, task=task))
    return replace(results, records=tuple(records), tuning=())


def _task(record: GroupRecord) -> Task:
    """The task that a record was evaluated on: the first in its label where the models were trained on another.

    Raises `ValueError` where this version does not read it.
    """
    evaluated = record.task.label.partition(ON)[0]
    try:
        return parse(evaluated)
    except ValueError as error:
        raise ValueError(
            f"The record of {echoed(record.label)} was evaluated on {echoed(evaluated)}, which this version cannot"
            f" count floors of: {error}"
        ) from None
