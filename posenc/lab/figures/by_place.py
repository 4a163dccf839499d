"""Accuracy by place in the text: where a model stops, which a mean over places hides. No jax."""

from __future__ import annotations

from posenc.lab.figures.across import panels
from posenc.lab.figures.captions import listed
from posenc.lab.figures.curves import at_chosen_rates, guess
from posenc.lab.figures.panels import Drawing, Panel
from posenc.lab.results.rates import seed_values
from posenc.lab.results.results import Results
from posenc.lab.store.schema import TaskRecord


def place_curve(results: Results) -> Drawing:
    """The share right in each bin of places of the longest texts, one panel per task and training range.

    Diverged runs are left out, since they have no hits. Raises `ValueError` for records without hits by place.
    """
    longest: dict[tuple, int] = {}
    for record in results.records:
        if record.task.places and any(trial.places for trial in record.trials):
            longest[record.task.label, record.task.trained] = max(record.task.places)
    if not longest:
        raise ValueError(
            f"The records of {results.name!r} hold no hits by place: older versions did not count them, and tasks of"
            " one answer token have none; train again under a new --name, or use --figure length."
        )
    drawn: dict[tuple, dict[str, dict[float, dict]]] = {}
    first: dict[tuple, int | None] = {}
    for task, label, trial in at_chosen_rates(results):
        key = task.label, task.trained
        if (size := longest.get(key)) is not None and trial.places and size in trial.places:
            first[key] = task.first_beyond
            for x, share in _shares(task, size, trial.places[size]["right"]):
                runs = drawn.setdefault(key, {}).setdefault(label, {}).setdefault(x, {})
                runs[trial.knobs.lr, trial.knobs.seed] = share
    words, floor = results.words, {label: guess(task) for label, task in results.tasks().items()}
    shown = []
    for key, runs in sorted(drawn.items()):
        points = {label: seed_values(of) for label, of in runs.items()}
        task, guessed = key[0], floor[key[0]]
        known = {x: {"uniform": guessed} for of in points.values() for x in of} if guessed else {}
        inside = (0, first[key] - 1) if first[key] else None
        title, up = f"{words.title(task)}, size {longest[key]}", "accuracy at this place"
        shown.append(Panel(points, "place in the text", up, title, words.code(task), known, inside, log=False))
    left = sorted({record.task.label for record in results.records} - {task for task, _ in longest})
    more = f"No hits by place are known of {listed(left)}." if left else ""
    return panels(results, shown, more=more)


def _shares(task: TaskRecord, size: int, right: list[int]) -> list[tuple[float, float]]:
    """The middle of each bin with scored tokens, and the share right in it of all rows."""
    width, scored = (task.places or {})[size]["width"], (task.places or {})[size]["scored"]
    bins = enumerate(zip(right, scored, strict=True))
    return [(k * width + (width - 1) / 2, hits / of) for k, (hits, of) in bins if of]
