"""Whether what a file says can be: a checksum shows that it is as it was written, and not that it was written by us.

Each count is at most its total, shares lie between 0 and 1, and numbers are of a size that a program can have. No jax.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from posenc.lab.store.schema import (
    AddedSeeds,
    Counts,
    GroupRecord,
    KnobRecord,
    P,
    PlannedTrial,
    TaskRecord,
    TrialRecord,
    read_line,
)
from posenc.language.echo import echoed

METRICS = ("token", "accuracy", "error", "exact", "last", "beyond", "gain")
"""As in `posenc.lab.tasks.measure`, which needs jax."""
READ_BY = (*METRICS, "nats", "bits")
WHOLE_OF = {"correct": ("total", "scored"), "exact": ("rows",), "last": ("rows",), "beyond": ("beyond_scored",)}
WHOLE_OF |= {"gained": ("gainable",)}
"""What each count is a part of, under the names of newer records and of older ones."""
MOST = 2**63
STEPS = 2**31


def check_record(record: GroupRecord) -> None:
    """Raise `ValueError` for a record whose numbers cannot be, with the first of them."""
    task = record.task
    if task.metric not in METRICS:
        raise ValueError(f"its metric is {echoed(task.metric)}; it is one of {', '.join(METRICS)}")
    low, high = task.trained
    if not 0 <= low <= high < STEPS:
        raise ValueError(f"it was trained on sizes from {echoed(low)} to {echoed(high)}; sizes ascend from 0")
    for table in (task.floors, task.floors_last or {}, task.floors_beyond or {}):
        for size, floors in table.items():
            for name, floor in floors.items():
                if floor is not None and not ((type(floor) is float or _number(floor)) and 0 <= floor <= 1):
                    what = f"its floor {echoed(name)} at size {size}"
                    raise ValueError(f"{what} is {echoed(floor)}; a share is from 0 to 1")
    if task.read_by is not None and task.read_by not in READ_BY:
        raise ValueError(f"it is read by {echoed(task.read_by)}; a metric is one of {', '.join(READ_BY)}")
    _check_places(task)
    _check_run(record.run)
    about = record.provenance.get("compiled")
    seconds = about.get("seconds") if isinstance(about, dict) else None
    if seconds is not None and not (_number(seconds) and seconds >= 0):
        raise ValueError(f"it took {echoed(seconds)} seconds to compile; they are a finite number of at least 0")
    for trial in record.trials:
        _check_trial(trial, {"exact": "exact", "last": "last", "gain": "gained"}.get(task.metric, "correct"))
        _check_right(trial.places or {}, task, f"its trial {echoed(trial.id[:12])}")


def _check_places(task: TaskRecord) -> None:
    if not _whole(task.first_beyond or 0) or (task.first_beyond or 0) < 0:
        raise ValueError(f"its first place beyond training is {echoed(task.first_beyond)}; places are counted from 0")
    for size, bins in (task.places or {}).items():
        width, scored = bins.get("width"), bins.get("scored")
        if not (_whole(width) and width >= 1 and _are_counts(scored)):
            raise ValueError(f"its places at size {size} are {echoed(bins)}; they are a width and a list of counts")
        windows = bins.get("windows", {})
        exact = {name: bins[name] for name in ("unigram", "bayes") if name in bins}
        for name, losses in (exact | (windows if isinstance(windows, dict) else {"windows": windows})).items():
            if not (_are_counts(losses) and len(losses) == len(scored)):
                raise ValueError(f"its exact losses {echoed(name)} at size {size} are not a count for each place")
    for size, readers in (task.yardsticks or {}).items():
        bins = (task.places or {}).get(size, {}).get("scored", ())
        for name, losses in readers.items():
            if not (isinstance(losses, list) and len(losses) == len(bins) and all(map(_is_loss, losses))):
                what = f"its yardstick {echoed(name)} at size {size}"
                raise ValueError(f"{what} is {echoed(losses)}; it is a loss for each bin of places")


def _is_loss(value: Any) -> bool:
    return (type(value) is float or _number(value)) and 0 <= value < MOST


def _check_right(places: Mapping[int, Mapping[str, Any]], task: TaskRecord, which: str) -> None:
    for size, bins in places.items():
        right, scored = bins.get("right"), (task.places or {}).get(size, {}).get("scored")
        if scored is None or not _are_counts(right) or len(right) != len(scored):
            raise ValueError(f"{which} has places at size {size} that its task has not")
        if (nats := bins.get("nats")) is not None and not (_are_counts(nats) and len(nats) == len(scored)):
            raise ValueError(f"{which} has losses at size {size} that are not a count for each of its places")
        if wrong := [(a, b) for a, b in zip(right, scored, strict=True) if a > b]:
            raise ValueError(f"{which} counts at size {size} {wrong[0][0]} right of {wrong[0][1]} at one place")


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(_whole(n) and 0 <= n < MOST for n in value)


def check_line(line: PlannedTrial) -> None:
    """Raise `ValueError` for a planned trial whose numbers cannot be."""
    check_knobs(line.knobs, line.steps, line.id)
    if not (isinstance(line.rows, int) and 1 <= line.rows < STEPS):
        raise ValueError(f"its rows are {echoed(line.rows)}; they are a whole number of at least 1")
    if wrong := [n for n in line.sizes if not (_whole(n) and 0 <= n < STEPS)]:
        raise ValueError(f"its sizes hold {echoed(wrong[0])}; they are whole numbers of at least 0")
    _check_seeds(line.reports or ())
    _check_run(line.run)


def check_added(line: AddedSeeds) -> None:
    """Raise `ValueError` for seeds to report that cannot be."""
    _check_seeds(line.reports)
    if wrong := [id for id in line.trials if not isinstance(id, str)]:
        raise ValueError(f"its trials hold {echoed(wrong[0])}; each is a text")


def _check_seeds(seeds: Sequence[int]) -> None:
    if wrong := [n for n in seeds if not (_whole(n) and 0 <= n < 2**32)]:
        raise ValueError(f"its reported seeds hold {echoed(wrong[0])}; they are whole numbers from 0 to {2**32 - 1}")


def planned(cls: type[P], content: Any, where: str, remedy: str) -> P:
    """A planned trial of a file; the message of `ValueError` says where it stands and what to do."""
    line = read_line(cls, content, where, remedy)
    try:
        check_line(line)
    except ValueError as error:
        raise ValueError(f"{where} cannot be used: {error}; {remedy}.") from None
    return line


def _check_trial(trial: TrialRecord, right: str) -> None:
    which = f"its trial {echoed(trial.id[:12])}"
    check_knobs(trial.knobs, trial.steps, trial.id)
    at = trial.diverged_at
    if at is not None and not 0 <= at <= trial.steps:
        raise ValueError(f"{which} diverged at step {echoed(at)} of {trial.steps}")
    for name, values in (trial.curve or {}).items():
        points = values if isinstance(values, list) else ()
        if wrong := [x for x in points if isinstance(x, int) and not -MOST < x < MOST]:
            raise ValueError(f"{which} has {echoed(wrong[0])} as {echoed(name)} in its curve")
    for counted in (trial.evaluations, trial.validation or {}):
        for size, counts in counted.items():
            if size >= STEPS:
                raise ValueError(f"{which} counts at size {echoed(size)}; sizes are below {STEPS}")
            try:
                _check_counts(counts, right)
            except ValueError as error:
                raise ValueError(f"{which} counts at size {size} {error}") from None


def _check_counts(counts: Counts, right: str) -> None:
    values = counts.values()
    plain = set(map(type, values)) <= {int} and (not values or 0 <= min(values) and max(values) < MOST)
    for name, count in () if plain else counts.items():
        if not (_whole(count) and 0 <= count < MOST):
            raise ValueError(f"{echoed(count)} as {echoed(name)}; a count is a whole number of at least 0")
    for part in WHOLE_OF.keys() & counts.keys():
        whole = _whole_of(part, counts)
        if whole is not None and counts[part] > counts[whole]:
            raise ValueError(f"{counts[part]} {part} of {counts[whole]} {whole}")
    if counts and (right not in counts or _whole_of(right, counts) is None):
        raise ValueError(f"no {right if right not in counts else WHOLE_OF[right][0]}, of which its metric is made")


def _whole_of(part: str, counts: Counts) -> str | None:
    for name in WHOLE_OF[part]:
        if name in counts:
            return name
    return None


def check_knobs(knobs: KnobRecord, steps: int, trial: str) -> None:
    """Raise `ValueError` for the knobs of a trial of so many steps, where they cannot be."""
    if not 0 <= steps < STEPS:
        raise ValueError(f"its trial {echoed(trial[:12])} has {echoed(steps)} steps; they are at least 0")
    if abs(knobs.seed) >= MOST:
        raise ValueError(f"its trial {echoed(trial[:12])} has the seed {echoed(knobs.seed)}")
    for name in ("lr", "weight_decay", "warmup", "clip"):
        value = getattr(knobs, name)
        if value is not None and not (_number(value) and value >= 0):
            raise ValueError(f"its trial {echoed(trial[:12])} has {name} {echoed(value)}; it is finite and at least 0")


def _check_run(run: Mapping[str, Any]) -> None:
    """What is read of the settings of a run; the others are shown as they are."""
    for name, kind, called in (("model", str, "a text"), ("revisions", dict, "a dict"), ("sources", dict, "a dict")):
        if not isinstance(run.get(name, kind()), kind):
            raise ValueError(f"{name} of its run is {echoed(run[name])}; it is {called}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    """A finite number; NaN compares with nothing."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
