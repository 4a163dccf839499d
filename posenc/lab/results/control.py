"""Several tasks together: one scheme, the control, against each of the others. Runs are the sample, tasks are not.

A run's score on a task is its mean beyond the sizes trained on, at those that all schemes share, counted from the
highest floor: max(0, x - floor) / (1 - floor), so 0 is what a guess gets and 1 is everything right; below the floor no
run has learned less than another. Of a loss less is better: the score counts down from the floor to the least loss that
is known, or to 0. The bootstrap draws the runs of each task anew, with as many of each (stratified;
Agarwal et al., 2021, section 4), and its percentiles hold the interval; it is left out below six runs, where it covers
too little. Ranks have each task as one case (Demšar, 2006, section 3.2). Without jax.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

from posenc.lab.metrics import LOSSES, merit
from posenc.lab.results import fractions
from posenc.lab.results.floors import best_floor
from posenc.lab.results.fractions import simplest
from posenc.lab.results.learned import WORDS, error, hindrance
from posenc.lab.results.losses import falling
from posenc.lab.results.results import Results, grouped
from posenc.lab.results.sizes import other_places
from posenc.lab.results.sizes import shared as shared_sizes
from posenc.lab.results.statistics import DRAWS, LEAST, LEVEL, TableCell, cells, wilson
from posenc.lab.store.schema import TaskRecord
from posenc.language.echo import echoed, plural, shorten

NONE = "nope"
"""The scheme without encoding, which is the control unless another is named."""
TASKS = 5
"""Tasks from which on ranks are tested; the test takes their mean for normal."""
Runs = Mapping[str, tuple[Fraction, ...]]
"""Task to the scores of one scheme's runs, without rounding, so that exact ties are ties."""


@dataclass(frozen=True)
class Against:
    """A scheme beside the control, over the tasks that both ran."""

    scheme: str
    tasks: tuple[str, ...]
    n: int
    """Runs of a task, at least."""
    middle: float
    """The interquartile mean of the scheme's scores: the mean of the middle half of all runs."""
    middle_interval: tuple[float, float] | None
    improvement: float
    """The probability that a run of the scheme beats one of the control, the mean over tasks; ties are half."""
    improvement_interval: tuple[float, float] | None
    """The 95 % Wilson score interval, as `compare` of two schemes has it, of as many runs as a task has at least."""
    rank: float
    """The mean over tasks of the scheme's place among all schemes, 1 the best."""
    p: float | None
    """That it ranks like the control: two-sided, after Holm's correction; None for fewer than `TASKS`."""


def against(results: Results, control: str) -> tuple[Against, ...]:
    """Every other scheme beside the control, the best rank first, after the control itself.

    Only tasks that every scheme ran count, so that ranks are among the same schemes everywhere, and on which some
    scheme is above its floor. Raises `ValueError` where there is none, or no such scheme.
    """
    by_scheme = shared(results)
    if control not in by_scheme:
        raise ValueError(f"{echoed(control)} is not in these results; they hold {shorten(control, by_scheme)}.")
    tasks = tuple(by_scheme[control])
    places = dict(zip(by_scheme, ranks(means(by_scheme)), strict=True))
    others = [scheme for scheme in by_scheme if scheme != control]
    tested = dict(zip(others, _tested(places, others, control, len(tasks)), strict=True))
    made = [_beside(scheme, by_scheme, control, places[scheme], tested.get(scheme), tasks) for scheme in by_scheme]
    return tuple(sorted(made, key=lambda row: (row.scheme != control, row.rank, row.scheme)))


def control_of(results: Results, control: str | None) -> str:
    """The control: the one given, or no encoding where that ran. Raises `ValueError` where neither is so."""
    if control is not None:
        return control
    schemes = scores(results) or shared(results)  # which says why there is none
    unencoded = [scheme for scheme in schemes if scheme.partition(" (")[0] == NONE]
    if len(unencoded) != 1:
        raise ValueError(
            f"A control is needed, a scheme with which the others are compared; give --control, one of "
            f"{', '.join(schemes)}."
        )
    return unencoded[0]


def shared(results: Results) -> dict[str, Runs]:
    """Scheme to its scores on the tasks that every scheme ran. Raises `ValueError` where there is none, or one scheme
    alone."""
    by_scheme, out = scores(results), left_out(results)
    if not by_scheme and out:
        reasons = "; ".join(f"on {task} {why}" for task, why in out.items())
        raise ValueError(
            f"Nothing can be compared: {reasons}. Give results of schemes that were trained alike and evaluated at the"
            " same sizes, or compare two of them."
        )
    if len(by_scheme) < 2:
        only = "No scheme was measured beyond training"
        for scheme in by_scheme:
            only = f"{echoed(scheme)} is the only scheme"
        raise ValueError(f"{only} in these results; give a run with others.")
    tasks = sorted(set.intersection(*(set(runs) for runs in by_scheme.values())))
    if not tasks:
        raise ValueError(
            "No task was measured beyond the sizes trained on under every scheme of these results; choose two schemes,"
            " or train what is missing."
        )
    if not (clear := [task for task in tasks if task not in out]):
        reasons = "; ".join(f"on {task} {out[task]}" for task in tasks)
        raise ValueError(f"Nothing can be compared: {reasons}. Train longer, or at a smaller size.")
    return {scheme: {task: runs[task] for task in clear} for scheme, runs in by_scheme.items()}


def left_out(results: Results) -> dict[str, str]:
    """The tasks that say nothing of all schemes together, each with the reason: some did not run it, or none is above
    its highest floor by more than three standard errors of the test set, so that ranks there are chance, or none has
    learned it."""
    by_scheme, tasks, fell, reasons = scores(results), results.tasks(), falling(results), {}
    for task, cells_of in _measured(results).items():
        sizes, apart = _over(results, task, cells_of)
        floor, room = _scale(tasks[task], cells_of, sizes)
        examples = sum(cells_of[0].examples[size] for size in sizes)
        runs = [of[task] for of in by_scheme.values() if task in of]
        if apart:
            reasons[task] = apart
        elif room <= 0:
            lossy = tasks[task].metric in LOSSES
            reasons[task] = "no floor of its loss is known" if lossy else "its highest floor is 1"
        elif lacking := len(by_scheme) - len(runs):
            reasons[task] = f"{plural(lacking, 'scheme')} did not run it"
        elif max(map(fractions.median, runs)) * room <= _chance(tasks[task], examples, floor):
            reasons[task] = "no scheme is above its highest floor"
        elif why := hindrance(cells_of, fell):
            reasons[task] = WORDS[why]
    return reasons


def means(by_scheme: Mapping[str, Runs]) -> Float[np.ndarray, "schemes tasks"]:
    """The mean score of each scheme on each task, rounded once."""
    return np.array([[float(fractions.mean(scores)) for scores in runs.values()] for runs in by_scheme.values()])


def scores(results: Results) -> dict[str, dict[str, tuple[Fraction, ...]]]:
    """Scheme to its scores on each task that was measured beyond the sizes trained on."""
    tasks, by_scheme = results.tasks(), {}
    for task, cells_of in _measured(results).items():
        sizes, _ = _over(results, task, cells_of)
        floor, room = _scale(tasks[task], cells_of, sizes)
        for cell in cells_of if sizes and room > 0 else ():
            if runs := cell.mean_fractions(sizes).values():
                above = (merit(cell.metric, value - floor) for value in runs)
                by_scheme.setdefault(cell.scheme, {})[task] = tuple(max(gain, Fraction(0)) / room for gain in above)
    return by_scheme


def _scale(task: TaskRecord, cells_of: Sequence[TableCell], sizes: Sequence[int]) -> tuple[Fraction, Fraction]:
    """Return the highest floor, and how much there is to gain from it; of a loss without a known floor, nothing."""
    floor = simplest((best_floor(task, sizes) or ("", 0.0))[1])
    if task.metric not in LOSSES:
        return floor, 1 - floor
    least = [cells_of[0].exact[size][1] for size in sizes if size in cells_of[0].exact]
    return floor, floor - (fractions.mean(least) if sizes and len(least) == len(sizes) else 0)


def _chance(task: TaskRecord, examples: int, floor: Fraction) -> float:
    """Return by how much a share may be above the floor by chance; the error of a loss is not known."""
    return 0.0 if task.metric in LOSSES else error(examples, float(floor))


def _measured(results: Results) -> dict[str, list[TableCell]]:
    """Task to its schemes that were measured beyond the sizes they trained on."""
    return grouped((cell.task, cell) for cell in cells(results) if cell.beyond and cell.means(cell.beyond))


def _over(results: Results, task: str, measured: Sequence[TableCell]) -> tuple[tuple[int, ...], str]:
    """The sizes beyond all that a task was trained on, at which all these schemes were measured; or none, and why."""
    tasks = [record.task for record in results.records if record.task.label == task]
    if apart := other_places(t.first_beyond for t in tasks if t.metric == "beyond"):
        return (), apart
    sizes = shared_sizes("beyond", [t.trained for t in tasks], [cell.values for cell in measured])
    return sizes, "" if sizes else "no size beyond all that were trained on was evaluated under every scheme"


def interquartile_mean(runs: Runs) -> float:
    """The mean of the middle half of all runs; the quarter at each end is left out, to whole runs."""
    return _middle(np.sort(np.concatenate([_array(scores) for scores in runs.values()])))


def improvement(first: Runs, second: Runs) -> float:
    """The probability that a run of the first is better than one of the second, the mean over tasks."""
    return float(np.mean([_better(_array(first[task])[None], _array(second[task])[None])[0] for task in first]))


def _array(scores: Sequence[Fraction]) -> Float[np.ndarray, " n"]:
    """Return the scores as floats, each rounded once, so that equal ones stay equal."""
    return np.array(scores, float)


def ranks(means: Float[np.ndarray, "schemes tasks"]) -> Float[np.ndarray, " schemes"]:
    """The mean place of each scheme over the tasks, 1 the best; ties share the mean of their places."""
    from scipy.stats import rankdata

    return rankdata(-means, axis=0).mean(1)


def holm(p: Sequence[float]) -> list[float]:
    """Values of p after Holm's correction for how many there are (Holm, 1979)."""
    order, most, corrected = np.argsort(p, kind="stable"), 0.0, [0.0] * len(p)
    for place, i in enumerate(order):
        most = max(most, min(1.0, (len(p) - place) * p[i]))
        corrected[i] = most
    return corrected


def bootstrap(statistic: Callable[..., Any], *groups: Runs, seed: int = 0) -> tuple[Any, Any] | None:
    """The 95 % interval of a statistic of many samples at once, or None below six runs of a task.

    `statistic` takes, for each group, the drawn scores `[draws, n]` of each task, and returns `[draws]`, or `[draws,
    m]` for m intervals.
    """
    if min(len(scores) for runs in groups for scores in runs.values()) < LEAST:
        return None
    rng = np.random.default_rng(seed)

    def resample(of_task: Sequence[Fraction]) -> np.ndarray:
        scores = _array(of_task)
        return scores[rng.integers(0, len(scores), (DRAWS, len(scores)))]

    values = statistic(*([resample(scores) for scores in runs.values()] for runs in groups))
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return (float(low), float(high)) if np.ndim(low) == 0 else (low, high)


def _beside(
    scheme: str, by_scheme: Mapping[str, Runs], control: str, rank: float, p: float | None, tasks: tuple[str, ...]
) -> Against:
    ours, theirs = by_scheme[scheme], by_scheme[control]
    same, n = scheme == control, min(len(scores) for runs in (ours, theirs) for scores in runs.values())
    better = 0.5 if same else improvement(ours, theirs)
    return Against(
        scheme,
        tasks,
        n,
        interquartile_mean(ours),
        bootstrap(lambda samples: _middle(np.sort(np.concatenate(samples, 1), 1)), ours),
        better,
        wilson(better, n) if n >= LEAST and not same else None,
        float(rank),
        p,
    )


def _middle(ordered: Float[np.ndarray, "*draws n"]) -> Any:
    cut = ordered.shape[-1] // 4
    middle = ordered[..., cut : ordered.shape[-1] - cut].mean(-1)
    return float(middle) if np.ndim(middle) == 0 else middle


def _better(first: Float[np.ndarray, "draws n"], second: Float[np.ndarray, "draws m"]) -> Float[np.ndarray, " draws"]:
    """P(a > b) + half P(a = b) over all pairs."""
    gap = first[:, :, None] - second[:, None, :]
    return ((gap > 0) + 0.5 * (gap == 0)).mean((1, 2))


def _tested(places: Mapping[str, float], others: Sequence[str], control: str, tasks: int) -> list[float | None]:
    """Whether each ranks like the control: z of the difference of mean ranks, corrected for all of them."""
    if tasks < TASKS:
        return [None] * len(others)
    spread = rank_error(len(places), tasks)
    raw = [math.erfc(abs(places[scheme] - places[control]) / spread / math.sqrt(2)) for scheme in others]
    return list(holm(raw))


def rank_error(schemes: int, tasks: int) -> float:
    """The standard error of the difference of two mean ranks, if all schemes were alike."""
    return math.sqrt(schemes * (schemes + 1) / (6 * tasks))
