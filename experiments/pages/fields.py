"""Fields: places in a text that a number of a record fills.

    {token_k_back|rope|64}                     median over seeds of the shown metric, at size 64
    {token_k_back|rope|64|last|min}            another metric; min, max, low, high, n, or fall in place of the median
    {token_k_back|rope|64|lr=0.01|bins=16-21}  runs at one learning rate; mean over bins of positions
    {|best!rope|64}                            the best scheme but RoPE, on the only task; also worst, baseline
    {|rope over alibi|64|p}                    p of the sign test, paired by seed, that one scheme is above another
    {|count|64}                                how many schemes have 0.9 or more up to 64; `schemes` counts all

A task needs no settings, and a scheme none in brackets, where one label alone has the name. A number in a document is
followed by its field as a comment that begins with the experiment: `0.61<!-- first_look|token_k_back|rope|64 -->`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from experiments.pages.measured import BASELINE, MEMORY, Measured, measured
from posenc.lab.metrics import LOSSES
from posenc.lab.results.orders import sign_test
from posenc.lab.results.table import METRICS

STATISTICS = ("median", "min", "max", "low", "high", "n", "p", "fall")
IN_TEXT = re.compile(r"\{([^{}|]*\|[^{}]*)\}")
IN_DOCUMENT = re.compile(r"(?:[\d.,]*\d(?: %)?)?<!-- (\w+)\|([^>]*?) -->")


def fill(text: str, of: Measured) -> str:
    """Return a text with its fields replaced by numbers of an experiment."""
    return IN_TEXT.sub(lambda match: value(of, match[1]), text)


def refresh(text: str) -> str:
    """Return a document with the number before each field as the record has it now."""
    return IN_DOCUMENT.sub(lambda m: f"{value(measured(m[1]), m[2])}<!-- {m[1]}|{m[2]} -->", text)


def value(of: Measured, field: str) -> str:
    """Return the text of a field. Raises `ValueError` for a field that names no cell."""
    task, scheme, size, *rest = (part.strip() for part in [*field.split("|"), "", ""])
    try:
        label = _the_one(task, of.tasks, "(")
        return _number(of, label, scheme, int(size or max(of.trained(label))), [part for part in rest if part])
    except (LookupError, ValueError) as error:
        raise ValueError(f"{{{field}}} names no cell of {of.name!r}: {error}") from None


def _the_one(name: str, labels: Sequence[str], before: str) -> str:
    """Return the label that a name means: itself, or the only one that has settings besides."""
    found = [name] if name in labels else [of for of in labels if not name or of.partition(before)[0] == name]
    if len(found) != 1:
        raise LookupError(f"{name!r} is {'none' if not found else 'several'} of {', '.join(labels)}")
    return found[0]


def _number(of: Measured, task: str, scheme: str, size: int, rest: Sequence[str]) -> str:
    options = dict(part.split("=", 1) for part in rest if "=" in part)
    metric = next((part for part in rest if part in (*METRICS, MEMORY)), "")
    statistic = next((part for part in rest if part in STATISTICS), "median")
    if left := [p for p in rest if p not in (metric, statistic) and p.partition("=")[0] not in ("lr", "bins")]:
        raise LookupError(f"{left[0]!r} is neither a metric nor a statistic")
    which = {"metric": metric, "rate": float(options["lr"]) if "lr" in options else None}
    which["bins"] = tuple(map(int, options["bins"].split("-"))) if "bins" in options else None
    labels, baselines = of.schemes(task), of.baselines(task, size, metric)
    word, *without = scheme.split("!")
    if word == "schemes":
        return str(len(labels))
    if word == "count":
        return str(sum(of.holds(task, label, size, metric) for label in labels))
    if word in (BASELINE, *baselines):
        return f"{of.best_baseline(task, size, metric)[1] if word == BASELINE else baselines[word]:.2f}"
    if word in ("best", "worst"):
        skipped = {_the_one(name, labels, " (") for name in without}
        medians = [of.summary(task, label, size, **which).median for label in labels if label not in skipped]
        largest = (word == "best") != ((metric or of.metric(task)) in LOSSES)
        return f"{(max if largest else min)(m for m in medians if m == m):.2f}"
    if statistic == "p":
        first, second = (
            of.by_seed(task, _the_one(name, labels, " ("), size, metric) for name in scheme.split(" over ")
        )
        return f"{sign_test(first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())):.3f}"
    label = _the_one(scheme, labels, " (")
    if metric == MEMORY:
        return f"{of.memory(task, label, size):.0f}"
    if statistic == "fall":
        return f"{100 * of.falls[task, label]:.0f} %"
    seeds = of.seeds(task, label, size, **which)
    if not len(seeds):
        raise LookupError(f"{label!r} has no such run at {size}; sizes are {', '.join(map(str, of.sizes(task)))}")
    if statistic == "n":
        return str(len(seeds))
    of_seeds = {"min": min, "max": max}.get(statistic)
    return f"{of_seeds(seeds) if of_seeds else getattr(of.summary(task, label, size, **which), statistic):.2f}"
