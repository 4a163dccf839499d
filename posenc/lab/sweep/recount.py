"""The floors of records counted again, as this version counts them: they depend on task and sizes, not on any model."""

from __future__ import annotations

from dataclasses import replace

from posenc.lab.results.results import Results
from posenc.lab.tasks import parse
from posenc.lab.tasks.floors import Table, floors_by_metric


def recounted(results: Results) -> Results:
    """The same results with new floors by every metric, at the sizes that have floors. Raises `ValueError` for a task
    that is not installed here, or that has another metric by now."""
    known: dict[tuple, dict[str, Table]] = {}
    records = []
    for record in (*results.records, *results.tuning):
        old = record.task
        key = (old.label, tuple(old.floors), old.trained[1])
        if key not in known:
            known[key] = floors_by_metric(parse(key[0]), *key[1:])
        new = known[key]
        if old.metric not in new:
            raise ValueError(
                f"The record of {record.label!r} on {old.label!r} counts {old.metric!r}, which this version's task does"
                f" not ({', '.join(new)}); train it again."
            )
        task = replace(old, floors=new[old.metric], floors_last=new.get("last"), floors_beyond=new.get("beyond"))
        records.append(replace(record, task=task))
    return replace(results, records=tuple(records), tuning=())
