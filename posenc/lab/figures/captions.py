"""Captions computed from the numbers of a figure or table, so that they stay true when the data change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from posenc.lab.figures.style import plain
from posenc.lab.results.losses import FALLING, falling
from posenc.lab.results.results import Results, best_floor, floors
from posenc.lab.results.statistics import INTERVAL, LEAST, RANGE, Summary, TableCell, cells, summary
from posenc.lab.store.folder import FAILURES
from posenc.lab.store.schema import TaskRecord
from posenc.language.echo import counted

SOLVED = 0.95
NAMED = 5
"""Schemes whose loss was still falling that are named; of more, their number is given."""
ERRORS = 3
"""Two schemes differ only if their gap is larger than this many standard errors of the test set."""
FLOORS = {
    "uniform": "a uniform guess",
    "prior": "the best constant",
    "bag": "the row's most frequent token",
    "position": "position alone",
}
METRICS = {
    **{"token": "accuracy (tokens)", "accuracy": "accuracy", "error": "accuracy"},
    **{"exact": "accuracy (whole answers)", "last": "accuracy (last token)", "beyond": "accuracy (beyond training)"},
}
"""What an axis calls each metric; figures show the share right, also if the metric is an error."""
SHARED = "All runs of a task share one test set per size, so spreads leave out its sampling error"


def caption(results: Results, figure: str = "length") -> str:
    """The results for each task and training range, then the marks, the failures, and how rates were chosen.

    `figure` is "length" for a length curve, "heatmap" for a heat map.
    """
    if figure not in ("length", "heatmap"):
        raise ValueError(f"There is no caption for {figure!r}; use 'length' or 'heatmap'.")
    found = cells(results)
    tasks = results.tasks()
    drawn = [c for c in found if c.n]
    parts = [
        _task(tasks[task], [c for c in drawn if (c.task, c.trained) == (task, trained)], figure)
        for task, trained in sorted({(c.task, c.trained) for c in drawn})
    ]
    about = [
        *_models(results, found),
        _marks(found, figure),
        *forced(found),
        counts(found, results.unreadable),
        *rates(found),
    ]
    return "\n".join([*parts, *about])


def metric_named(metric: str) -> str:
    """What an axis calls a metric."""
    return METRICS.get(metric, f"accuracy ({plain(metric)})")


def brackets(found: tuple[TableCell, ...]) -> str:
    """What the spreads are: a range, an interval, or one of them by the number of runs."""
    return spreads(v for c in found for v in c.values.values())


def spreads(every: Iterable[Sequence[float]]) -> str:
    """The same for any groups of values of runs."""
    kinds = {summary(v).kind for v in every}
    if kinds == {INTERVAL}:
        return f"the {INTERVAL}"
    if kinds == {RANGE} or not kinds:
        return f"the range over runs (fewer than {LEAST}, so no interval)"
    return f"the range over runs where n < {LEAST}, the {INTERVAL} elsewhere"


def counts(found: tuple[TableCell, ...], unreadable: int = 0) -> str:
    """The number of trials by outcome, at all learning rates, and of records that could not be read."""
    total: dict[str, int] = {}
    for cell in found:
        for outcome, n in cell.counts.items():
            total[outcome] = total.get(outcome, 0) + n
    failed = sum(total.get(k, 0) for k in FAILURES)
    waiting = sum(n for k, n in total.items() if k not in (*FAILURES, "done", "diverged"))
    diverged = total.get("diverged", 0)
    text = f"Trials: {total.get('done', 0)} done, {diverged} diverged"
    text += " (each counted as a uniform guess)" if diverged else ""
    text += f", {failed} failed" + (" (left out)" if failed else "")
    text += f", {waiting} not finished" if waiting else ""
    text += f"; {unreadable} record{'s' if unreadable > 1 else ''} could not be read" if unreadable else ""
    return f"{text}."


def chosen(found: tuple[TableCell, ...]) -> list[str]:
    """On which examples learning rates were chosen, if several were tried; older records have no validation."""
    several = [c for c in found if len(c.rates) > 1]
    tuned = numbers(len(c.tuning) for c in several if c.tuning)
    other = f"{tuned} other seed{'s' * (tuned != '1')}"
    examples = "chosen on validation examples of the sizes trained on, by"
    how = [f"{examples} {other}"] if any(c.tuning for c in several) else []
    if any(c.validated and not c.tuning for c in several):
        how.append(f"{'elsewhere ' * bool(how)}{examples} the reported seeds themselves")
    if not all(c.validated for c in several):
        where = "for schemes with older records, which hold none, " if how else ""
        how.append(f"{where}chosen on the test examples of the sizes trained on")
    return how


def unstable(found: tuple[TableCell, ...]) -> list[str]:
    """The schemes whose tuning trials all diverged, at every rate, and what is reported of them."""
    names: dict[str, list[str]] = {}
    for cell in found:
        if cell.unstable:
            names.setdefault(cell.task, []).append(cell.scheme)
    many = sum(map(len, names.values()))
    where = "; ".join(f"{listed(schemes)} on {plain(task)}" for task, schemes in names.items())
    which = f"{counted(many, 'scheme')} diverged in all tuning trials at every rate and {'are' if many > 1 else 'is'}"
    return [f"{which} reported at the smallest: {where}."] if names else []


def still_falling(results: Results) -> list[str]:
    """The schemes whose loss was still falling when training ended, the fastest first, in a sentence."""
    found = falling(results)
    if not found:
        return []
    by_fall = sorted(found, key=lambda key: (-found[key], key))
    several = len({task for task, _ in found}) > 1 or len({c.task for c in cells(results)}) > 1
    shown = [
        f"{plain(scheme)}{f' on {plain(task)}' * several} {found[task, scheme]:.0%}" for task, scheme in by_fall[:NAMED]
    ]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    how = f"the loss fell by more than {FALLING:.0%} over the last tenth of the steps"
    return [f"Still falling when training ended ({how}): {', '.join(shown)}{more}."]


def unlearned(results: Results, found: tuple[TableCell, ...]) -> list[str]:
    """The tasks on which no scheme is above the best floor at any size trained on, and what to try."""
    tasks = results.tasks()
    names = []
    for task in dict.fromkeys(c.task for c in found):
        measured = [(c, n) for c in found if c.task == task for n in c.inside if c.values[n]]
        if measured and not any(_above_floor(tasks[task], c, n) for c, n in measured):
            names.append(task)
    if not names:
        return []
    return [
        f"No scheme learned {listed(names)}: at the sizes trained on, none is above the best floor. Try more --steps, "
        "a smaller --length, a smaller task (`posenc describe TASK` lists its settings), or --preset quick_copy first."
    ]


def _above_floor(task: TaskRecord, cell: TableCell, size: int) -> bool:
    """Whether the median at a size is above the best floor there by more than the error of the test set."""
    floor = best_floor(task, [size])
    if floor is None:
        return True  # an unknown floor proves nothing
    return summary(cell.values[size]).median > floor[1] + _error(cell.examples[size], floor[1])


def _models(results: Results, found: tuple[TableCell, ...]) -> list[str]:
    """The models trained; and why ALiBi's symmetric penalty fails in a bidirectional one, if it was trained there."""
    parts = ("model", "depth", "width", "heads")
    runs = [record.run for record in results.records if all(part in record.run for part in parts)]
    named = dict.fromkeys(tuple(run[part] for part in parts) for run in runs)
    shown = [f"{plain(m)} of {d} layers, width {w}, {h} heads" for m, d, w, h in named]
    lines = [f"Model{'s' * (len(shown) > 1)}: {'; '.join(shown)}."] if shown else []
    if {run["model"] for run in runs} == {"encoder"} and any(c.scheme == "alibi" for c in found):
        lines.append(
            "ALiBi's penalty depends on the distance |i - j| alone, so an encoder, which reads in both directions, "
            "cannot tell left from right by it."
        )
    return lines


def _task(task: TaskRecord, found: list[TableCell], figure: str) -> str:
    """The results of one task with one training range."""
    runs = numbers(c.n for c in found)
    text = [
        f"{plain(task.label)}: {metric_named(task.metric)}{' against size' * (figure == 'length')}, "
        f"trained on {sizes(*found[0].trained)}, n = {runs}: {_solved(found)}"
    ]
    if any(c.beyond for c in found):
        text.append(_above(task, [c for c in found if c.beyond]))
    known = floors(task)
    if known:
        size = max(known)
        at = [f"{known[size][k]:.2f} by {words}" for k, words in FLOORS.items() if k in known[size]]
        text.append(f"Floors at size {size}: {', '.join(at)}.")
    return " ".join(text)


def _solved(found: list[TableCell]) -> str:
    measured = [c for c in found if c.inside]
    solved = [c.scheme for c in measured if all(summary(c.values[n]).median >= SOLVED for n in c.inside)]
    rest = [c.scheme for c in measured if c.scheme not in solved]
    if not measured:
        return "no size within the training range was measured."
    who = f"{listed(solved)} {'solves' if len(solved) == 1 else 'solve'}" if solved else "no scheme solves"
    if solved and len(rest) < len(solved) and len(measured) > 1:
        who = f"all schemes but {listed(rest)} solve" if rest else "all schemes solve"
    return f"{who} the training range (median accuracy of at least {SOLVED})."


def _above(task: TaskRecord, found: list[TableCell]) -> str:
    """Which schemes lie above which others in the mean over longer sizes; equal claims share a sentence."""
    beyond = {c.scheme: summary(c.means(c.beyond).values()) for c in found}
    examples = {c.scheme: sum(c.examples[n] for n in c.beyond) for c in found}
    measured = {c.scheme: c.beyond for c in found}
    floor = best_floor(task, sorted({n for c in found for n in c.beyond}))
    base = floor[1] if floor else None

    def above(one: str, other: str) -> bool:
        same = measured[one] == measured[other]  # means over different sizes cannot be compared
        return same and _apart(beyond[one], beyond[other], base, min(examples[one], examples[other]))

    beyond = {scheme: s for scheme, s in beyond.items() if s.n}
    order = sorted(beyond, key=lambda s: (-beyond[s].median, s))
    claims: dict[str, list[str]] = {}
    for k, scheme in enumerate(order):
        below = [other for other in order if above(scheme, other)]
        if below:
            short = len(below) > 1 and below == order[k + 1 :]
            words = ("all others" if k == 0 else "all after it in this order") if short else listed(below)
            claims.setdefault(words, []).append(scheme)
    medians = ", ".join(f"{plain(s)} {beyond[s].median:.2f}" for s in order)
    head = f"Over the sizes beyond it, mean accuracy (median of runs) is {medians}"
    if not order:
        return "No run has a result at all sizes beyond it."
    if len(order) == 1:
        return f"{head}."
    if all(s.n < 2 for s in beyond.values()):
        return f"{head}; single runs do not show which scheme is better."
    if not claims:
        return f"{head}; spreads overlap, or gaps are within the error of the test set: no scheme is clearly better."
    apart = [f"{listed(who)} {'above' if len(who) == 1 else 'each above'} {words}" for words, who in claims.items()]
    return f"{head}. Clearly better: {'; '.join(apart)}."


def _apart(a: Summary, b: Summary, floor: float | None, examples: int) -> bool:
    """Whether the runs of `a` lie above those of `b` by more than the sampling error of the test set.

    All runs share their test examples, so spreads over runs leave that error out. Two schemes at the floor learned
    nothing, so neither is called better.
    """
    if min(a.n, b.n) < 2 or not examples or b.high >= a.low:
        return False
    if a.median - b.median <= _error(examples, a.median, b.median):
        return False
    return floor is None or any(abs(s.median - floor) > _error(examples, floor) for s in (a, b))


def _error(examples: int, *shares: float) -> float:
    """Three standard errors of a share over a number of examples, or of the difference between two shares.

    Examples are whole rows: tokens of one row are not independent.
    """
    return ERRORS * math.sqrt(sum(p * (1 - p) for p in shares) / examples)


def _marks(found: tuple[TableCell, ...], figure: str) -> str:
    shared = f"{SHARED}; a difference counts only if it is larger than {ERRORS} standard errors of it."
    if figure == "heatmap":
        marks = f"Each cell is the median over n runs of this mean; spreads in the text are {brackets(found)}"
        return f"{marks}; the last column is the best of the task's floors. {shared}"
    marks = f"Points are single runs, lines their medians, bands {brackets(found)}; dotted lines are the floors"
    return f"{marks}. {shared}"


def rates(found: tuple[TableCell, ...]) -> list[str]:
    """The learning rates tried, and how each scheme's was chosen, if there were several."""
    tried = sorted({rate for c in found for rate in c.rates})
    if all(len(c.rates) < 2 for c in found):
        return []
    every = ", ".join(f"{r:g}" for r in tried)
    how = f"Of the learning rates {every}, each scheme's was, per task, {'; '.join(chosen(found))}."
    return [how, *unstable(found)]


def forced(found: tuple[TableCell, ...]) -> list[str]:
    """How token accuracy is measured, if it is shown."""
    if all(c.metric != "token" for c in found):
        return []
    return ["Token accuracy is teacher-forced: each token is predicted from the true tokens before it."]


def sizes(low: int, high: int) -> str:
    """The sizes trained on, in words."""
    return f"sizes {low} to {high}" if low < high else f"size {high}"


def numbers(counted: Iterable[int]) -> str:
    """A number of runs, or the smallest and the largest number."""
    found = sorted({*counted})
    return (str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}") if found else "0"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    shown = [plain(n) for n in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
