"""What a figure or table shows, in sentences computed from its numbers, so that no caption can outlive its data."""

from __future__ import annotations

from posenc.lab.results import Results, floors
from posenc.lab.stats import FAILED, INTERVAL, LEAST, RANGE, Cell, Summary, cells, summary
from posenc.show.style import plain

SOLVED = 0.95
_FLOORS = {"uniform": "a uniform guess", "prior": "the best constant", "position": "position alone"}


def caption(results: Results, figure: str = "length") -> str:
    """What is seen, task by task; then what the marks of a figure mean, what went wrong, and how rates were chosen.

    `figure` is "length" for a length curve, "heatmap" for a heat map.
    """
    if figure not in ("length", "heatmap"):
        raise ValueError(f"No caption is known for {figure!r}; take 'length' or 'heatmap'.")
    found = cells(results)
    tasks = results.tasks()
    parts = [_task(tasks[t], [c for c in found if c.task == t and c.n]) for t in sorted(tasks)]
    return "\n".join([*parts, _marks(found, figure), counts(found), *_rates(found)])


def brackets(found: tuple[Cell, ...]) -> str:
    """What spreads are: the range, an interval, or each where it applies."""
    kinds = {summary(v).kind for c in found for v in c.values.values()}
    if kinds == {INTERVAL}:
        return f"the {INTERVAL}"
    if kinds == {RANGE} or not kinds:
        return f"the range over runs (fewer than {LEAST}, so no interval)"
    return f"the range over runs where n < {LEAST}, the {INTERVAL} elsewhere"


def counts(found: tuple[Cell, ...]) -> str:
    """How many trials ended how, at all learning rates tried."""
    total: dict[str, int] = {}
    for cell in found:
        for outcome, n in cell.counts.items():
            total[outcome] = total.get(outcome, 0) + n
    failed = sum(total.get(k, 0) for k in FAILED)
    waiting = sum(n for k, n in total.items() if k not in (*FAILED, "done", "diverged"))
    diverged = total.get("diverged", 0)
    said = f"Trials: {total.get('done', 0)} done, {diverged} diverged"
    said += " (each entering as a uniform guess)" if diverged else ""
    said += f", {failed} failed" + (" (without a value)" if failed else "")
    return said + (f", {waiting} not finished" if waiting else "") + "."


def _task(task: dict, found: list[Cell]) -> str:
    low, high = task["trained"]
    said = [f"{plain(task['label'])}, trained on sizes {low} to {high}, n = {_n(found)}: {_solved(found)}"]
    beyond = {c.scheme: summary(c.means(c.beyond).values()) for c in found if c.beyond}
    if beyond:
        said.append(_above(beyond))
    known = floors(task)
    if known:
        size = max(known)
        at = [f"{known[size][k]:.2f} by {words}" for k, words in _FLOORS.items() if k in known[size]]
        said.append(f"Floors at size {size}: {', '.join(at)}.")
    return " ".join(said)


def _solved(found: list[Cell]) -> str:
    measured = [c for c in found if c.inside]
    solved = [c.scheme for c in measured if all(summary(c.values[n]).median >= SOLVED for n in c.inside)]
    rest = [c.scheme for c in measured if c.scheme not in solved]
    if not measured:
        return "no size within the training range was measured."
    who = f"{_list(solved)} {'solves' if len(solved) == 1 else 'solve'}" if solved else "no scheme solves"
    if solved and len(rest) < len(solved) and len(measured) > 1:
        who = f"all schemes but {_list(rest)} solve" if rest else "all schemes solve"
    return f"{who} the training range (median accuracy of at least {SOLVED})."


def _above(beyond: dict[str, Summary]) -> str:
    """Which spreads of the mean over longer sizes lie wholly above which others; equal sayings are said once."""
    order = sorted(beyond, key=lambda s: (-beyond[s].median, s))
    claims: dict[str, list[str]] = {}
    for k, scheme in enumerate(order):
        below = [other for other in order if beyond[other].high < beyond[scheme].low]
        if below:
            short = len(below) > 1 and below == order[k + 1 :]
            words = ("all others" if k == 0 else "all after it in this order") if short else _list(below)
            claims.setdefault(words, []).append(scheme)
    medians = ", ".join(f"{plain(s)} {beyond[s].median:.2f}" for s in order)
    head = f"Over the sizes beyond it, mean accuracy (median of runs) is {medians}"
    if len(order) == 1:
        return f"{head}."
    if not claims:
        return f"{head}; all spreads overlap, so no scheme stands apart."
    said = [f"{_list(who)} {'above' if len(who) == 1 else 'each above'} {words}" for words, who in claims.items()]
    return f"{head}; wholly apart lie {'; '.join(said)}."


def _marks(found: tuple[Cell, ...], figure: str) -> str:
    if figure == "heatmap":
        return f"Cells give the median over n runs of this mean; their spreads in the text are {brackets(found)}."
    return f"Points are single runs, lines their medians, bands {brackets(found)}; dotted lines are the floors."


def _rates(found: tuple[Cell, ...]) -> list[str]:
    tried = sorted({rate for c in found for rate in c.rates})
    if all(len(c.rates) < 2 for c in found):
        return []
    rates = ", ".join(f"{r:g}" for r in tried)
    return [f"Of the learning rates {rates}, each scheme's was chosen per task on the sizes trained on alone."]


def _n(found: list[Cell]) -> str:
    seen = sorted({c.n for c in found})
    return (str(seen[0]) if len(seen) == 1 else f"{seen[0]} to {seen[-1]}") if seen else "0"


def _list(names: list[str]) -> str:
    shown = [plain(n) for n in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
