"""What models lose above the least loss of a source, by place: flat beyond training, and on whose line? No jax."""

from __future__ import annotations

from posenc.lab.figures.across import panels
from posenc.lab.figures.curves import at_chosen_rates
from posenc.lab.figures.panels import Drawing, Panel
from posenc.lab.results.excess import excess, octaves, window_excess
from posenc.lab.results.rates import seed_values
from posenc.lab.results.results import Results

LEAST = 1e-3
"""Nats that are drawn at least: a log axis has no zero."""
WINDOWS = (16, 64)


def excess_curve(results: Results, most: int = 15) -> Drawing:
    """The excess in nats against the place, by octaves, one panel per task and training range, with what readers of the
    last 16 and 64 tokens lose. Diverged runs are left out.

    A scheme that uses its context falls with the place, or stays; one that stays on the line of a window may do no more
    than see it. Lines end where texts do, up to `most` of them in a panel.
    """
    return panels(results, excess_panels(results), most=most, more="Losses are above the exact least one.")


def excess_panels(results: Results) -> list[Panel]:
    """Its panels. Raises `ValueError` for records without exact losses."""
    by_task: dict[tuple, dict[str, dict[int, dict]]] = {}
    floors: dict[tuple, dict[int, dict[str, float]]] = {}
    for task, label, trial in at_chosen_rates(results):
        key = task.label, task.trained
        for end, octave in octaves(task).items():
            if trial.places and octave.size in trial.places:
                value = max(excess(task, octave, trial.places[octave.size]), LEAST)
                runs = by_task.setdefault(key, {}).setdefault(label, {}).setdefault(end, {})
                runs[trial.knobs.lr, trial.knobs.seed] = value
                lost = window_excess(task, octave)
                windows = {f"window {w}": lost[w] for w in WINDOWS if lost.get(w, 0) >= LEAST}
                floors.setdefault(key, {})[end] = windows
    if not by_task:
        raise ValueError(
            f"The records of {results.name!r} hold no exact losses, which only tasks such as 'copies' have; use"
            " --figure length."
        )
    words, shown = results.words, []
    for key, lines in sorted(by_task.items()):
        points = {label: seed_values(of) for label, of in lines.items()}
        ends = (min(floors[key]), key[1][1])
        head = ("place in the text, up to", "excess (nats)", words.title(key[0]), words.code(key[0]))
        shown.append(Panel(points, *head, floors[key], ends, log=True, falling=True))
    return shown
