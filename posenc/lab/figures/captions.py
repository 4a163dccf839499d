"""What a figure or table shows, in sentences computed from its numbers, so that no caption can outlive its data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from posenc.lab.figures.style import plain
from posenc.lab.results.results import Results, best_floor, floors
from posenc.lab.results.statistics import INTERVAL, LEAST, RANGE, Summary, TableCell, cells, summary
from posenc.lab.store.folder import FAILURES
from posenc.lab.store.schema import TaskRecord

SOLVED = 0.95
ERRORS = 3
"""Standard errors of the test set within which no two schemes are told apart."""
FLOORS = {"uniform": "a uniform guess", "prior": "the best constant", "position": "position alone"}
SHARED = "All runs of a task share one test set per size, whose sampling error is in no spread"


def caption(results: Results, figure: str = "length") -> str:
    """What is seen, for each task and training range; then what marks mean, what went wrong, how rates were chosen.

    `figure` is "length" for a length curve, "heatmap" for a heat map.
    """
    if figure not in ("length", "heatmap"):
        raise ValueError(f"No caption is known for {figure!r}; take 'length' or 'heatmap'.")
    found = cells(results)
    tasks = results.tasks()
    drawn = [c for c in found if c.n]
    parts = [
        _task(tasks[task], [c for c in drawn if (c.task, c.trained) == (task, trained)])
        for task, trained in sorted({(c.task, c.trained) for c in drawn})
    ]
    said = [*parts, _marks(found, figure), *forced(found), counts(found, results.unreadable), *rates(found)]
    return "\n".join(said)


def brackets(found: tuple[TableCell, ...]) -> str:
    """What spreads are: the range, an interval, or each where it applies."""
    return spreads(v for c in found for v in c.values.values())


def spreads(every: Iterable[Sequence[float]]) -> str:
    """The same of any values of runs, those of each place together."""
    kinds = {summary(v).kind for v in every}
    if kinds == {INTERVAL}:
        return f"the {INTERVAL}"
    if kinds == {RANGE} or not kinds:
        return f"the range over runs (fewer than {LEAST}, so no interval)"
    return f"the range over runs where n < {LEAST}, the {INTERVAL} elsewhere"


def counts(found: tuple[TableCell, ...], unreadable: int = 0) -> str:
    """How many trials ended how, at all learning rates tried, and how many records could not be read."""
    total: dict[str, int] = {}
    for cell in found:
        for outcome, n in cell.counts.items():
            total[outcome] = total.get(outcome, 0) + n
    failed = sum(total.get(k, 0) for k in FAILURES)
    waiting = sum(n for k, n in total.items() if k not in (*FAILURES, "done", "diverged"))
    diverged = total.get("diverged", 0)
    said = f"Trials: {total.get('done', 0)} done, {diverged} diverged"
    said += " (each entering as a uniform guess)" if diverged else ""
    said += f", {failed} failed" + (" (without a value)" if failed else "")
    said += f", {waiting} not finished" if waiting else ""
    said += f"; {unreadable} record{'s' if unreadable > 1 else ''} could not be read" if unreadable else ""
    return f"{said}."


def chosen(found: tuple[TableCell, ...]) -> list[str]:
    """How learning rates were chosen, where several were tried: on what, and where older records allow less."""
    several = [c for c in found if len(c.rates) > 1]
    said = ["chosen on validation examples of the sizes trained on"] if any(c.validated for c in several) else []
    if not all(c.validated for c in several):
        where = "for schemes with older records, which hold none, " if said else ""
        said.append(f"{where}chosen on the test examples of the sizes trained on")
    return said


def _task(task: TaskRecord, found: list[TableCell]) -> str:
    """One task as trained on one range."""
    runs = numbers(c.n for c in found)
    said = [f"{plain(task.label)}, trained on {sizes(*found[0].trained)}, n = {runs}: {_solved(found)}"]
    if any(c.beyond for c in found):
        said.append(_above(task, [c for c in found if c.beyond]))
    known = floors(task)
    if known:
        size = max(known)
        at = [f"{known[size][k]:.2f} by {words}" for k, words in FLOORS.items() if k in known[size]]
        said.append(f"Floors at size {size}: {', '.join(at)}.")
    return " ".join(said)


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
    """Which schemes lie above which others in the mean over longer sizes; equal sayings are said once."""
    beyond = {c.scheme: summary(c.means(c.beyond).values()) for c in found}
    examples = {c.scheme: sum(c.examples[n] for n in c.beyond) for c in found}
    measured = {c.scheme: c.beyond for c in found}
    floor = best_floor(task, sorted({n for c in found for n in c.beyond}))
    base = floor[1] if floor else None

    def above(one: str, other: str) -> bool:
        same = measured[one] == measured[other]  # means over other sizes say nothing of one another
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
        return f"{head}; of single runs no scheme is said to stand apart."
    if not claims:
        return f"{head}; spreads overlap or gaps are within the error of the test set, so no scheme stands apart."
    said = [f"{listed(who)} {'above' if len(who) == 1 else 'each above'} {words}" for words, who in claims.items()]
    return f"{head}; wholly apart lie {'; '.join(said)}."


def _apart(a: Summary, b: Summary, floor: float | None, examples: int) -> bool:
    """Whether the runs of `a` lie above those of `b`, by more than the choice of test examples may do.

    All runs share their test examples, so no spread over runs holds that error. At the floor nothing was learned, and
    of two schemes there none is said to be better.
    """
    if min(a.n, b.n) < 2 or not examples or b.high >= a.low:
        return False
    if a.median - b.median <= _error(examples, a.median, b.median):
        return False
    return floor is None or any(abs(s.median - floor) > _error(examples, floor) for s in (a, b))


def _error(examples: int, *shares: float) -> float:
    """Three standard errors of a share of so many examples, or of the difference between two.

    Examples are whole rows: tokens of one row are not independent.
    """
    return ERRORS * math.sqrt(sum(p * (1 - p) for p in shares) / examples)


def _marks(found: tuple[TableCell, ...], figure: str) -> str:
    shared = f"{SHARED}; schemes are said to differ only beyond {ERRORS} standard errors of it."
    if figure == "heatmap":
        marks = f"Cells give the median over n runs of this mean; their spreads in the text are {brackets(found)}"
        return f"{marks}; the last column is the best of the task's floors. {shared}"
    marks = f"Points are single runs, lines their medians, bands {brackets(found)}; dotted lines are the floors"
    return f"{marks}. {shared}"


def rates(found: tuple[TableCell, ...]) -> list[str]:
    """Of which learning rates each scheme's was chosen, and how, where several were tried."""
    tried = sorted({rate for c in found for rate in c.rates})
    if all(len(c.rates) < 2 for c in found):
        return []
    every = ", ".join(f"{r:g}" for r in tried)
    return [f"Of the learning rates {every}, each scheme's was, per task, {'; '.join(chosen(found))}."]


def forced(found: tuple[TableCell, ...]) -> list[str]:
    """Which token accuracy it is, where that of tokens is shown."""
    if all(c.metric != "token" for c in found):
        return []
    return ["Token accuracy is teacher-forced: each token is asked for with the true ones before it."]


def sizes(low: int, high: int) -> str:
    """The sizes trained on, or the only one."""
    return f"sizes {low} to {high}" if low < high else f"size {high}"


def numbers(counted: Iterable[int]) -> str:
    """How many runs there are: one number, or the least and the most."""
    seen = sorted({*counted})
    return (str(seen[0]) if len(seen) == 1 else f"{seen[0]} to {seen[-1]}") if seen else "0"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    shown = [plain(n) for n in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
