"""The page of an experiment: question, table, claims, figure, reading and doubts, all from its record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.pages.fields import fill
from experiments.pages.measured import BASELINE, FOLDER, Measured
from posenc.lab.cli import claims
from posenc.lab.metrics import GAIN, LOSSES
from posenc.lab.results.statistics import HOLDS, LEAST, Summary

HEAD = "<!-- `python -m experiments.pages` writes this page from the record. -->"
CLAIM = ("task", "scheme", "measure", "claim", "our runs", "n", "baseline", "verdict", "reason", "checked against")
CLAIM += ("source",)
APART = 0.2
"""Rates that tie in validation are a doubt where their medians differ by this much at a size beyond training."""
Rows = Sequence[Sequence[object]]


def page(of: Measured) -> str:
    """Return the page of an experiment as Markdown."""
    return "\n\n".join([HEAD, f"# {of.name}", of.experiment.header.claim, *_parts(of)]) + "\n"


def _parts(of: Measured) -> Iterator[str]:
    yield f"Source, setting, cost and command are in [{of.name}.py]({of.name}.py)."
    if of.results is None:
        yield "This experiment was not run here: the sentence above is what it tests, and no result."
    else:
        yield "## Results"
        yield from _results(of)
    yield "## Claims"
    yield from _claims(of)
    if of.results is None:
        return
    caption = FOLDER / "figures" / f"{of.name}.caption.txt"
    yield "## Figure"
    yield f"![Results of {of.name}](figures/{of.name}.svg)"
    yield f"> {' '.join(caption.read_text(encoding='utf-8').split())}"
    yield "## Reading"
    yield fill(" ".join(of.reading.split()), of)
    yield "## Doubts"
    rows = [*_doubts(of)]
    yield markdown(("task", "doubt", "schemes"), rows) if rows else "Our rules find no doubt."


def _results(of: Measured) -> Iterator[str]:
    """Yield the medians of every scheme on every task at the trained length and beyond."""
    kinds: set[str] = set()
    tables = []
    for task in of.tasks:
        sizes, rows = of.chosen_sizes(task), []
        for label in of.schemes(task):
            summaries = [of.summary(task, label, size) for size in sizes]
            kinds |= {s.kind for s in summaries if s.n > 1}
            rows.append([f"`{label}`", max(s.n for s in summaries), *map(_spread, summaries)])
        best = [of.best_baseline(task, size) for size in sizes]
        rows.append(["best baseline", "", *(f"{number:.2f} {name}" for name, number in best)])
        trained = of.trained(task)
        heads = [f"{size}{' (trained)' * (size in trained)}" for size in sizes]
        tables += [f"### `{task}`, {of.metric(task)}", markdown(("scheme", "n", *heads), rows)]
    yield f"Each cell is the median over n seeds. Brackets hold the {' or the '.join(sorted(kinds))}." if kinds else ""
    yield from tables


def _spread(s: Summary) -> str:
    if not s.n:
        return "–"
    return f"{s.median:.2f}" + (f" [{s.low:.2f}–{s.high:.2f}]" if s.n > 1 else "")


def _claims(of: Measured) -> Iterator[str]:
    """Yield the claims of each origin with their verdicts."""
    if not of.findings:
        yield "This experiment has no claim as data."
    for origin, title in claims.CALLED.items():
        lines = [claims.row(finding) for finding in of.findings if finding.published.origin == origin]
        columns = [c for c in CLAIM if any(line[c] not in ("", "–") for line in lines)]
        if lines:
            yield f"### {title}"
            yield markdown(columns, [[line[c] for c in columns] for line in lines])


def _doubts(of: Measured) -> Iterator[tuple[str, str, str]]:
    """Yield what weakens the numbers: few seeds, diverged runs, tasks not learned, falling losses, apart rates."""
    recorded = {label.partition("(")[0] for label in of.tasks}
    if waiting := sorted({run.task.partition("(")[0] for run in of.experiment.runs} - recorded):
        yield ", ".join(waiting), "not run yet", "all"
    for task in of.tasks:
        metric, labels = of.metric(task), of.schemes(task)
        lines = of.of(task)
        lines = lines[(lines.outcome != BASELINE) & ~lines.tuning]
        seeds = {label: lines.seed[lines.label == label].nunique() for label in labels}
        if max(seeds.values()) < LEAST:
            yield task, "few seeds", f"{max(seeds.values())} at most"
        lost = lines[lines.outcome == "diverged"].groupby("label").trial.nunique()
        yield from _row(task, "diverged runs", {label: f"{n}" for label, n in lost.items()})
        if metric not in (*LOSSES, GAIN):
            each = {
                label: [(of.summary(task, label, n).median, n) for n in of.trained(task, label)] for label in labels
            }
            least = {label: min(medians) for label, medians in each.items() if medians}
            poor = {label: f"{value:.2f} at {n}" for label, (value, n) in least.items() if value < HOLDS - 1e-9}
            yield from _row(task, "not learned", poor)
        falls = {label: f"{100 * of.falls[task, label]:.0f} %" for label in labels if (task, label) in of.falls}
        yield from _row(task, "loss still falling", falls)
        shown = lines[lines.reported & lines.shown & ~lines.trained]
        medians = shown.groupby(["label", "size", "lr"], observed=True).value.median().groupby(["label", "size"])
        gaps = (medians.max() - medians.min()).groupby("label").max()
        yield from _row(task, "tied rates differ", {name: f"{gap:.2f}" for name, gap in gaps.items() if gap >= APART})


def _row(task: str, doubt: str, of: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    if of:
        yield f"`{task}`", doubt, ", ".join(f"`{label}` {text}" for label, text in sorted(of.items()))


def markdown(head: Sequence[str], rows: Rows) -> str:
    """Return rows as a table of Markdown."""
    lines = [[str(cell).replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in (head, *rows)]
    texts = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([texts[0], "|---" * len(head) + "|", *texts[1:]])
