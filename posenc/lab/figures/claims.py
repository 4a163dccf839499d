"""What a caption may claim: which lines solve the sizes trained on, and which one stays clear of others beyond them.

One scheme is called better only from six runs of both on: by a rank-sum test over runs with Holm's correction for all
pairs of the task, by more than the sampling error of the test set, and off the floor.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from posenc.lab.figures.captions import SOLVED, error, listed
from posenc.lab.figures.style import plain
from posenc.lab.results.control import holm
from posenc.lab.results.results import Results, best_floor
from posenc.lab.results.statistics import LEAST, LEVEL, TableCell, cells, summary

NAMED = 6
"""The most lines that are named; of more, their number is given."""
Groups = Mapping[tuple[str, tuple[int, int]], list[TableCell]]


def solved(results: Results, names: Mapping[str, str]) -> str:
    """Which lines solve the sizes trained on, for each task."""
    by_who: dict[str, list[str]] = {}
    for (task, _), found in _groups(results).items():
        measured = [c for c in found if c.inside]
        solving = [c.scheme for c in measured if all(summary(c.values[n]).median >= SOLVED for n in c.inside)]
        named = len(solving) <= NAMED
        who = listed([names.get(s, s) for s in solving] or ["none"]) if named else f"{len(solving)} of {len(measured)}"
        who = "all" if solving and len(solving) == len(measured) else who
        if measured:
            by_who.setdefault(who, []).append(results.words.title(task))
    if not by_who:
        return "No size trained on was measured."
    if len(by_who) == 1:
        return f"The sizes trained on are solved (median of at least {SOLVED}) by {next(iter(by_who))}."
    each = "; ".join(f"{who} ({listed(tasks)})" for who, tasks in by_who.items())
    return f"The sizes trained on are solved (median of at least {SOLVED}) by: {each}."


def better(results: Results, names: Mapping[str, str]) -> str:
    """Whether the best line beyond the sizes trained on is clear of others, for each task with six runs or more."""
    best_of = []
    for (task, _), found in _groups(results).items():
        compared = [c for c in found if c.beyond and len(c.means(c.beyond)) >= LEAST]
        if len(compared) > 1:
            best = max(compared, key=lambda c: (summary(c.means(c.beyond).values()).median, c.scheme))
            below = [c for c in _below(results, best, compared) if c is not best]
            others = len(compared) - 1
            who = f"{plain(names.get(best.scheme, best.scheme))} above {len(below)} of {others}" if below else "none"
            best_of.append(f"{who} ({plain(results.words.title(task))})")
    if not best_of:
        return f"With fewer than {LEAST} runs no scheme is called better than another."
    return f"Clearly best beyond them (rank-sum tests with Holm's correction): {'; '.join(best_of)}."


def _below(results: Results, best: TableCell, compared: Sequence[TableCell]) -> list[TableCell]:
    """Those of which the runs of `best` are clear."""
    from scipy.stats import mannwhitneyu

    means = {c.scheme: list(c.means(c.beyond).values()) for c in compared}
    pairs = list(itertools.combinations(compared, 2))
    p = [float(mannwhitneyu(means[a.scheme], means[b.scheme]).pvalue) for a, b in pairs]
    corrected = dict(zip([(a.scheme, b.scheme) for a, b in pairs], holm(p), strict=True))
    floor = best_floor(results.tasks()[best.task], best.beyond)
    top = summary(means[best.scheme])
    clear = []
    for other in compared:
        pair = next((k for k in corrected if set(k) == {best.scheme, other.scheme}), None)
        if pair is None or best.beyond != other.beyond or corrected[pair] > 1 - LEVEL:
            continue
        low, examples = summary(means[other.scheme]), sum(best.examples[n] for n in best.beyond)
        off = floor is None or abs(top.median - floor[1]) > error(examples, floor[1])
        if off and top.median - low.median > error(examples, top.median, low.median):
            clear.append(other)
    return clear


def _groups(results: Results) -> Groups:
    """The cells with a finished run, by task and sizes trained on."""
    groups: dict[tuple[str, tuple[int, int]], list[TableCell]] = {}
    for cell in cells(results):
        if cell.n:
            groups.setdefault((cell.task, cell.trained), []).append(cell)
    return groups
