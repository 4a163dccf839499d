"""Sentences of captions and notes, computed from the numbers, so that they stay true when the data change.

A caption has at most five lines; the numbers of every run are in the CSV beside the figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from posenc.lab.figures.floor_lines import ONE
from posenc.lab.figures.style import plain
from posenc.lab.metrics import GAIN, LOSSES
from posenc.lab.models.kinds import MODELS
from posenc.lab.results.learned import all_at_floor
from posenc.lab.results.losses import SAID, falling
from posenc.lab.results.rate_gaps import rate_gap
from posenc.lab.results.results import Results, grouped, shortest_model
from posenc.lab.results.statistics import INTERVAL, LEAST, RANGE, TableCell, summary
from posenc.lab.results.words import NETWORKS, Words
from posenc.lab.spec.run import Knobs, Plan, Run
from posenc.lab.store.folder import FAILURES
from posenc.lab.store.schema import GroupRecord, TrialRecord
from posenc.language.echo import plural

NAMED = 5
"""Schemes whose loss was still falling, or whose learning rate ties or may change, that are named; of more, their
number is given."""
WIDEST = 3
"""Schemes whose tying rates differ beyond training that are named, the widest gaps first; of more, their number is
given."""
READERS = {
    "unigram": "how frequent symbols are in training",
    "bigram": "the same after the symbol before",
    "order 5": "the same after up to five before",
}
"""Readers of text that only count."""
FLOORS = {
    "uniform": "a uniform guess",
    "prior": "the answer most frequent over all rows",
    "bag": "the token most frequent in the row",
    "position": "position alone",
    **READERS,
}
EXACT = {"unigram": "the law of one token", "bayes": "the optimal predictor of the source"}
EXACT |= {f"window {w}": f"one who sees the last {w} tokens" for w in (16, 64)}
EXACT |= {ONE: "in all scored answers"}
"""The metrics of sources whose exact losses are known."""
METRICS = {
    "token": ("accuracy (tokens)", "token accuracy"),
    **dict.fromkeys(("accuracy", "error"), ("accuracy", "accuracy")),
    "exact": ("accuracy (whole answers)", "whole answers right"),
    "last": ("accuracy (last token)", "accuracy at the last token"),
    "beyond": ("accuracy (beyond training)", "accuracy at positions beyond training"),
    **{unit: (f"loss ({unit})", f"mean loss of answer tokens in {unit}, less is better") for unit in LOSSES},
    GAIN: (
        "gain (share of what the source allows)",
        "share gained of what lies between the law of one token (0) and the exact least loss (1)",
    ),
}
"""The name of each metric on an axis, and in a sentence. Figures show the share right, also if the metric is an
error."""
ELSEWHERE = ("task", "scheme", "width", "depth", "heads", "shortest", "length", "then", "seed", "lr")
"""Settings that captions name otherwise: in labels, with the model, and as the sizes trained on."""


def metric_named(metric: str) -> str:
    """Return the name of a metric on an axis."""
    return METRICS[metric][0] if metric in METRICS else f"accuracy ({plain(metric)})"


def brackets(table_cells: tuple[TableCell, ...]) -> str:
    """Describe the spreads: a range, an interval, or one of them by the number of runs."""
    return spreads(v for c in table_cells for v in c.values.values())


def spreads(groups: Iterable[Sequence[float]]) -> str:
    """Describe the spreads of groups of values of runs."""
    kinds = {summary(v).kind for v in groups}
    if kinds == {INTERVAL}:
        return f"the {INTERVAL}"
    if kinds == {RANGE} or not kinds:
        return f"the range over runs (fewer than {LEAST}, so no interval)"
    return f"the range over runs where n < {LEAST}, the {INTERVAL} elsewhere"


def counts(table_cells: tuple[TableCell, ...], unreadable: int = 0) -> str:
    """The number of trials by outcome, at all learning rates, and of records that could not be read."""
    total = sum((Counter(cell.counts) for cell in table_cells), Counter[str]())
    failed = sum(total[k] for k in FAILURES)
    waiting = sum(n for k, n in total.items() if k not in (*FAILURES, "done", "diverged"))
    diverged = total["diverged"]
    text = f"Trials: {total['done']} done, {diverged} diverged"
    text += " (each counted as a uniform guess)" if diverged else ""
    text += f", {failed} failed" + (" (left out)" if failed else "")
    text += f", {waiting} not finished" if waiting else ""
    text += f"; {unreadable} record{'s' if unreadable > 1 else ''} could not be read" if unreadable else ""
    return f"{text}."


def rate_choice_notes(table_cells: tuple[TableCell, ...]) -> list[str]:
    """By which seeds learning rates were chosen, if several were tried."""
    several = [c for c in table_cells if len(c.rates) > 1]
    tuned = numbers(len(c.tuning) for c in several if c.tuning)
    other = f"{tuned} other seed{'s' * (tuned != '1')}"
    examples = "chosen on validation examples of the sizes trained on, by"
    notes = [f"{examples} {other}"] if any(c.tuning for c in several) else []
    if any(not c.tuning for c in several):
        notes.append(f"{'elsewhere ' * bool(notes)}{examples} the reported seeds themselves")
    return notes


def exceptions(table_cells: tuple[TableCell, ...]) -> list[str]:
    """Describe what is unusual in the choice by tuning seeds: schemes whose tuning trials all diverged, rates that may
    change since some have no result, and reported trials at other rates, as a choice among fewer leaves them."""
    lost = [(cell.task, cell.scheme) for cell in table_cells if cell.unstable]
    verb = "are" if len(lost) > 1 else "is"
    which = f"{plural(len(lost), 'scheme')} diverged in all tuning trials at every rate and {verb}"
    waiting = [(cell.task, cell.scheme) for cell in table_cells if not cell.settled]
    others = []
    for cell in table_cells:
        trials = ", ".join(f"{plural(n, 'trial')} at {rate:g}" for rate, n in sorted(cell.left_out.items()))
        others += [(cell.task, f"{cell.scheme} ({trials})")] if trials else []
    left_out = "Reported seeds that are left out, since the tuning seeds chose another learning rate"
    return [
        *_named(f"{which} reported at the smallest", lost, most=len(lost)),
        *_named("The learning rate may still change, since tuning trials have no result", waiting),
        *_named(left_out, others, most=len(others)),
    ]


def ties(table_cells: tuple[TableCell, ...]) -> list[str]:
    """The schemes that are reported at several rates, since these tie in validation."""
    several = [c for c in table_cells if len(c.reported) > 1]
    names = [(c.task, f"{c.scheme} ({', '.join(f'{rate:g}' for rate in c.reported)})") for c in several]
    head = (
        "Where rates tie in validation, within one standard error of the best, n counts seeds, and a seed's number is"
        " the median of its runs at them"
    )
    return _named(head, names)


def _named(head: str, names: Sequence[tuple[str, str]], most: int = NAMED) -> list[str]:
    """A sentence that ends with pairs of a task and a scheme, or of more than `most` with their number."""
    which = _by_task(names) if len(names) <= most else f"{len(names)} schemes, counted per task"
    return [f"{head}: {which}."] if names else []


def rate_gaps(table_cells: tuple[TableCell, ...], words: Words | None = None) -> list[str]:
    """Name the schemes whose tying rates differ beyond the trained sizes, by how much, and at which size most. In words
    of an experiment the spreads are left out; the table has them."""
    gaps = sorted(filter(None, map(rate_gap, table_cells)), key=lambda gap: (-gap.width, gap.task, gap.scheme))
    names = words.lines(c.scheme for c in table_cells) if words else {}
    shown, whose = [], dict[str, None]()
    for gap in gaps[:WIDEST]:
        seeds = plural(next(iter(gap.by_rate.values())).n, "tuning seed" if gap.tuning else "seed")
        each = [
            f"{rate:g}: {s.median:.2f}{'' if words else f' [{s.low:.2f}–{s.high:.2f}]'}"
            for rate, s in gap.by_rate.items()
        ]
        whose[seeds] = None
        title = words.title(gap.task) if words else gap.task
        shown.append((title, f"{names.get(gap.scheme, gap.scheme)} at {gap.size} ({', '.join(each)})"))
    more = f", and {len(gaps) - WIDEST} more" if len(gaps) > WIDEST else ""
    head = (
        f"Rates that tie in validation differ beyond training, the best from the worst in each of {' or '.join(whose)}"
    )
    return [f"{head}: {_by_task(shown)}{more}."] if gaps else []


def _by_task(names: Iterable[tuple[str, str]]) -> str:
    """Pairs of a task and a name in a sentence."""
    return "; ".join(f"{listed(group)} on {plain(task)}" for task, group in grouped(names).items())


def still_falling(results: Results, table_cells: tuple[TableCell, ...]) -> list[str]:
    """The schemes whose loss was still falling when training ended, the fastest first, in a sentence."""
    falls = falling(results, table_cells)
    if not falls:
        return []
    by_fall = sorted(falls, key=lambda key: (-falls[key], key))
    several = len({task for task, _ in falls}) > 1 or len({c.task for c in table_cells}) > 1
    shown = [
        f"{plain(scheme)}{f' on {plain(task)}' * several} {falls[task, scheme]:.0%}" for task, scheme in by_fall[:NAMED]
    ]
    more = f" and {len(falls) - NAMED} more" if len(falls) > NAMED else ""
    return [f"Still falling when training ended ({SAID}): {', '.join(shown)}{more}."]


def unlearned(results: Results, table_cells: tuple[TableCell, ...]) -> list[str]:
    """The tasks on which no scheme is above the best floor at any size trained on, and what to try."""
    by_task, tasks = grouped((cell.task, cell) for cell in table_cells), results.tasks()
    names = [task for task, group in by_task.items() if task in tasks and all_at_floor(tasks[task], group)]
    if not names:
        return []
    return [
        f"No scheme learned {listed(names)}: at the trained sizes none is above the best baseline. Try more --steps, "
        "a smaller --length, a smaller task (`posenc describe TASK` lists its settings), or --preset quick_copy first."
    ]


def models(results: Results, table_cells: tuple[TableCell, ...]) -> list[str]:
    """The models trained, and their settings that are not the default.

    Where ALiBi was trained in an encoder, also what its symmetric penalty finds there.
    """
    parts = ("model", "depth", "width", "heads")
    runs = [record.run for record in results.records if all(part in record.run for part in parts)]
    named = dict.fromkeys(_model(run) for run in runs)
    shown = [f"{plain(m)} of {d} layer{'s' * (d != 1)}, width {w}{heads}" for m, d, w, heads in named]
    lines = [f"Model{'s' * (len(shown) > 1)}: {'; '.join(shown)}."] if shown else []
    lines += unusual(results)
    if {run["model"] for run in runs} == {"encoder"} and any(c.scheme == "alibi" for c in table_cells):
        lines.append(
            "ALiBi's penalty grows with the distance |i - j|: by it alone a head of an encoder looks most at the"
            " nearest keys, on both sides alike, and never most at one further off."
        )
    return lines


def _model(run: Mapping[str, Any]) -> tuple[str, int, int, str]:
    """The model of a run without its settings, its depth, its width, and its heads, if it attends."""
    name = str(run["model"]).partition("(")[0]
    attends = name not in MODELS.names() or "attention" in MODELS.find(name).reads
    return NETWORKS.get(name, name), run["depth"], run["width"], f", {run['heads']} heads" * attends


def rates(table_cells: tuple[TableCell, ...], words: Words | None = None) -> list[str]:
    """The learning rates tried, and how each scheme's was chosen, if there were several; and where it matters."""
    tried = sorted({rate for c in table_cells for rate in c.rates})
    if all(len(c.rates) < 2 for c in table_cells):
        return []
    tried_text = ", ".join(f"{r:g}" for r in tried)
    sentence = (
        f"Of the learning rates {tried_text}, each scheme's was, per task, {'; '.join(rate_choice_notes(table_cells))}."
    )
    return [sentence, *exceptions(table_cells), *ties(table_cells), *rate_gaps(table_cells, words)]


def one_rate(table_cells: tuple[TableCell, ...]) -> list[str]:
    """The learning rate, where each scheme was trained at one alone."""
    tried = sorted({rate for c in table_cells for rate in c.rates})
    if not tried or any(len(c.rates) > 1 for c in table_cells):
        return []
    return [f"Learning rate{'s' * (len(tried) > 1)}: {' or '.join(f'{rate:g}' for rate in tried)}."]


def shared(results: Results) -> str:
    """Say what all runs of a task share, so that spreads leave it out. These are the test sets, and the sizes of
    training batches if they are drawn for each step."""
    several = [record for record in results.records if record.task.trained[0] < record.task.trained[1]]
    if several and all(record.run.get("lengths", "step") == "step" for record in several):
        return (
            "All runs of a task share one test set per size, and seeds one schedule of the sizes trained on, so spreads"
            " leave out the sampling error of both."
        )
    return "All runs of a task share one test set per size, so spreads leave out its sampling error."


def forced(table_cells: tuple[TableCell, ...]) -> list[str]:
    """How token accuracy is measured, if it is shown."""
    if all(c.metric != "token" for c in table_cells):
        return []
    return ["Token accuracy is teacher-forced: each token is predicted from the true tokens before it."]


def numbers(values: Iterable[int]) -> str:
    """A number of runs, or the smallest and the largest number."""
    distinct = sorted({*values})
    return (str(distinct[0]) if len(distinct) == 1 else f"{distinct[0]} to {distinct[-1]}") if distinct else "0"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    shown = [plain(n) for n in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def unusual(results: Results) -> list[str]:
    """Return a sentence with every setting of the reported runs that is neither the default nor in their labels."""
    pairs = ((record, trial) for record in results.records for trial in record.trials)
    values = grouped(item for pair in pairs for item in _changed(*pair) if item[0] not in results.varying)
    each = [f"{name}={' or '.join(dict.fromkeys(texts))}" for name, texts in values.items()]
    return [f"Settings other than the default: {', '.join(map(plain, each))}."] if each else []


def _changed(record: GroupRecord, trial: TrialRecord) -> Iterator[tuple[str, str]]:
    """Each setting of a trial that is not the default, as a text."""
    run, usual = record.run, _usual(record.run)
    if "(" in (model := shortest_model(str(run.get("model", "")))):
        yield "model", model
    for f in fields(Run):
        if f.name not in (*ELSEWHERE, "model") and run.get(f.name) is not None and run[f.name] != usual.get(f.name):
            yield f.name, str(run[f.name])
    if trial.steps != Plan().steps:
        yield "steps", str(trial.steps)
    for name, default in Knobs()._asdict().items():
        if name not in ELSEWHERE and (value := getattr(trial.knobs, name)) not in (None, default):
            yield name, f"{value:g}"


def _usual(run: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of a run, those that follow from its other settings too."""
    usual = {f.name: f.default for f in fields(Run)}
    width, length = run.get("width", usual["width"]), run.get("length", usual["length"])
    return usual | {"hidden": 4 * width, "longest": 4 * length, "buckets": 1 if length <= 16 else 4}
