"""Trials that scored nothing at a size, as of a task whose `tokens(n)` is too short there. No jax."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from posenc.lab import metrics
from posenc.lab.store.schema import GroupRecord

NAMED = 3
"""Trials of a record that are named; of more, their number is given."""


def unscored(group_records: Iterable[GroupRecord]) -> Iterator[str]:
    """Yield a sentence for the trials of each record that scored nothing at some sizes where they were evaluated."""
    for record in group_records:
        trials: dict[str, list[str]] = {}
        for trial in record.trials:
            if empty := [str(n) for n, counts in trial.evaluations.items() if metrics.scored_nothing(counts)]:
                trials.setdefault(", ".join(empty), []).append(f"{trial.id[:12]} of seed {trial.knobs.seed}")
        for sizes, names in trials.items():
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            which = f"{record.label} on {record.task.label}: {', '.join(names[:NAMED])}{more}"
            yield f"Trials of {which} scored nothing at size {sizes}, and have no number there."
