"""Claims of a caption: the lines that solve the trained sizes, and the one that is clear of others beyond them.

One scheme is called better only from six runs of both on. A rank-sum test over runs decides, with Holm's correction for
all pairs of the task. The gap must exceed the sampling error of the test set, and the better one must be above the
floor. No scheme is called better if no scheme solves the trained sizes, or if all losses still fell.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from posenc.lab.figures.captions import listed
from posenc.lab.figures.style import plain
from posenc.lab.metrics import LOSSES, merit
from posenc.lab.results.learned import MANY, SOLVED, WHY, Hindrance, above_floor, bar, error, hindrance, solves
from posenc.lab.results.losses import falling
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import LEAST, LEVEL, TableCell, by_range, cells, summary
from posenc.lab.results.ties import holm, levels, mean, median

NAMED = 6
"""The most lines that are named; of more, their number is given."""


def solved(results: Results, names: Mapping[str, str]) -> str:
    """Name the lines that solve the trained sizes, for each task."""
    by_who: dict[str, list[str]] = {}
    for (task, _), group in _groups(results).items():
        measured = [c for c in group if c.inside]
        solving = [c.scheme for c in measured if solves(c)]
        named = len(solving) <= NAMED
        who = listed([names.get(s, s) for s in solving] or ["none"]) if named else f"{len(solving)} of {len(measured)}"
        who = "all" if solving and len(solving) == len(measured) else who
        if measured:
            by_who.setdefault(who, []).append(results.words.title(task))
    if not by_who:
        return "No size trained on was measured."
    least = " or ".join(f"{share:g}" for share in sorted({bar(c.metric, SOLVED) for c in cells(results)}))
    if len(by_who) == 1:
        return f"The sizes trained on are solved (median of at least {least}) by {next(iter(by_who))}."
    each = "; ".join(f"{who} ({listed(tasks)})" for who, tasks in by_who.items())
    return f"The sizes trained on are solved (median of at least {least}) by: {each}."


def better(results: Results, names: Mapping[str, str]) -> str:
    """Say whether the best line beyond the trained sizes is clear of others, for each task with six runs or more.
    Otherwise say why that is open."""
    best_of, hindered, few, fell = [], dict[Hindrance, list[str]](), False, falling(results)
    for (task, _), group in _groups(results).items():
        beyond = [c for c in group if c.beyond]
        if len(beyond) > 1 and (why := hindrance(group, fell)):
            hindered.setdefault(why, []).append(results.words.title(task))
            continue
        compared = [c for c in beyond if len(c.means(c.beyond)) >= LEAST]
        few |= len(compared) < 2
        if len(compared) > 1:
            tops = _tops(compared)
            each = [_below(results, best, compared) for best in tops]
            below = set[str].intersection(*(set(of) for of in each))
            who = listed([names.get(best.scheme, best.scheme) for best in tops])
            p = max((of[scheme] for of in each for scheme in below), default=1.0)
            sentence = f"{who} above {len(below)} of {len(compared) - len(tops)}, p = {p:.2g}" + " at most" * (
                len(below) > 1
            )
            best_of.append(f"{sentence if below else 'none'} ({plain(results.words.title(task))})")
    tests = "rank-sum tests with Holm's correction"
    sentences = [f"Highest on average beyond them ({tests}): {'; '.join(best_of)}."] * bool(best_of)
    sentences += [f"With fewer than {LEAST} runs no scheme is called better than another."] * (few and not best_of)
    alone = len(hindered) == 1 and not sentences
    for why, tasks in hindered.items():
        sentence = f"{WHY[why].format(**MANY)}."
        sentences.append(f"{sentence[0].upper()}{sentence[1:]}" if alone else f"{listed(tasks)}: {sentence}")
    return " ".join(sentences)


def _tops(compared: Sequence[TableCell]) -> list[TableCell]:
    """Return the best by the median of runs, of equal medians by their mean, as ranks have it; exact ties are all
    named."""

    def worth(cell: TableCell) -> tuple[float, float]:
        runs = [merit(cell.metric, value) for value in cell.means(cell.beyond).values()]
        return median(runs), mean(runs)

    scores = list(map(worth, compared))
    ranks = list(zip(*(levels([score[k] for score in scores]) for k in range(2)), strict=True))
    return [cell for cell, rank in zip(compared, ranks, strict=True) if rank == max(ranks)]


def _below(results: Results, best: TableCell, compared: Sequence[TableCell]) -> dict[str, float]:
    """Return the lines of which the runs of `best` are clear, each with its p after correction."""
    means = {c.scheme: list(c.means(c.beyond).values()) for c in compared}
    pairs = list(itertools.combinations(compared, 2))
    p = [_rank_sum(means[a.scheme], means[b.scheme]) for a, b in pairs]
    corrected = dict(zip([(a.scheme, b.scheme) for a, b in pairs], holm(p), strict=True))
    top, examples = summary(means[best.scheme]), sum(best.examples[n] for n in best.beyond)
    if not above_floor(results.tasks()[best.task], best.beyond, top.median, examples):
        return {}
    clear = {}
    for other in compared:
        pair = next((k for k in corrected if set(k) == {best.scheme, other.scheme}), None)
        if pair is None or best.beyond != other.beyond or corrected[pair] > 1 - LEVEL:
            continue
        low = summary(means[other.scheme])
        chance = 0.0 if best.metric in LOSSES else error(examples, top.median, low.median)
        if merit(best.metric, top.median - low.median) > chance:
            clear[other.scheme] = corrected[pair]
    return clear


def _rank_sum(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p of the rank-sum test, in which numbers that tie share their ranks."""
    from scipy.stats import mannwhitneyu

    ranks = levels([*first, *second])
    return float(mannwhitneyu(ranks[: len(first)], ranks[len(first) :]).pvalue)


def _groups(results: Results) -> dict[tuple[str, tuple[int, int]], list[TableCell]]:
    """The cells with a finished run, by task and sizes trained on."""
    return by_range(cell for cell in cells(results) if cell.n)
