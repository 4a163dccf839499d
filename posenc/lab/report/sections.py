"""Sections of a report about one run. Every number has the source that tables, captions and commands use."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

from posenc.lab.figures.captions import counts, forced, metric_named, models, numbers, rates, shared, still_falling
from posenc.lab.figures.captions import unlearned as unlearned_tasks
from posenc.lab.figures.panels import ranged
from posenc.lab.figures.tables import exact_losses, html, memories, reading
from posenc.lab.metrics import LOSSES
from posenc.lab.report.page import Piece, Section, block, facts, folded, paragraphs, rows
from posenc.lab.results.floors import best_floor
from posenc.lab.results.learned import at_floor
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import TableCell, by_range, cells, summary
from posenc.lab.spec.experiment import Header
from posenc.lab.store import disk
from posenc.lab.store import folder as store
from posenc.lab.store.schema import GroupRecord, TrialRecord
from posenc.language.echo import plural

ANSWERED, NAMED = 3, 3
"""Tasks that the first line answers, and schemes that it names for each."""
LISTED = 30
"""The most trials that are named; of more, their number is given."""
OUTCOME = ("task", "scheme", "seed", "rate", "what")
NO_COMMAND = "No command was kept with these records; each record has its settings, which `posenc export RUN` lists."
CALLED = {"posenc": "posenc", "commit": "commit", "python": "Python", "jax": "JAX", "flax": "Flax", "device": "machine"}


def lead(results: Results, header: Header | None) -> str:
    """Return the answer in a few sentences: the claim of an experiment, then the best schemes of each task."""
    groups = by_range(cells(results)).values()
    answers = [text for group in groups if (text := _answer(results, group))]
    more = [f"{plural(len(answers) - ANSWERED, 'more task')} below."] if len(answers) > ANSWERED else []
    claim = [header.claim] if header and header.claim else []
    return " ".join([*claim, *answers[:ANSWERED], *more])


def _answer(results: Results, group: Sequence[TableCell]) -> str:
    """Say which schemes lead on a task at its largest size, and whether they are above the best baseline."""
    measured = [cell for cell in group if cell.values]
    if not measured:
        return ""
    size, task = max(max(cell.values) for cell in measured), results.tasks()[group[0].task]
    sign = 1 if group[0].metric in LOSSES else -1
    names = results.words.lines(dict.fromkeys(cell.scheme for cell in measured))
    at = [(cell, summary(cell.values[size])) for cell in measured if size in cell.values]
    at.sort(key=lambda pair: (sign * pair[1].median, pair[0].scheme))
    shown = ", ".join(f"{names[cell.scheme]} ({s.median:.2f})" for cell, s in at[:NAMED])
    floor = best_floor(task, [size])
    against = f"; best baseline {floor[1]:.2f}" if floor else ""
    head = f"{results.words.title(group[0].task)}, at {size}: "
    n = f"n = {numbers(s.n for _, s in at)}"
    if floor and at_floor(task, [cell for cell, _ in at], [size]):
        return f"{head}no scheme is above the best baseline, {floor[1]:.2f} ({n})."
    best = "lowest loss" if sign > 0 else "highest"
    return f"{head}{best} {shown}; {n}{against}."


def question(results: Results, header: Header | None) -> Section:
    """Describe the source of the question, the training and evaluation, and the author's finding."""
    table_cells = cells(results)
    parts = header or Header()
    names = results.words.lines(dict.fromkeys(cell.scheme for cell in table_cells))
    trained = [("task", _task(results, group)) for group in by_range(table_cells).values()]
    seeds = numbers(cell.n for cell in table_cells if cell.n)
    steps = numbers(trial.steps for record in results.records for trial in record.trials)
    ideas = [("about", _idea(task)) for task in dict.fromkeys(cell.task for cell in table_cells)]
    pairs = [
        *ideas,
        ("source", parts.source),
        ("setting", parts.setting),
        *trained,
        ("schemes", ", ".join(names.values())),
        ("training", f"{steps} steps, {seeds} seeds of each scheme. {' '.join(models(results, table_cells))}"),
        ("result", parts.result),
    ]
    return Section("Question and setting", facts(pairs))


def table(results: Results) -> Section:
    """Medians, spreads and floors at every size."""
    from markupsafe import Markup

    table_cells = cells(results)
    exact = [*exact_losses(table_cells), *memories(results)]
    notes = [reading(table_cells), *exact, " ".join([*forced(table_cells), shared(results)])]
    return Section("Results", [Piece("table", Markup(html(results, table_cells, notes)))])


def outcomes(results: Results) -> Section:
    """Name the runs that diverged, those that failed and why, and the tasks that were not learned."""
    table_cells = cells(results)
    pairs = results.recorded_trials()
    lines = [_diverged(results, *pair) for pair in pairs if pair[1].outcome == "diverged"] + _failed(results)
    listed = rows(OUTCOME, lines[:LISTED]) if lines else []
    more = [f"{plural(len(lines) - LISTED, 'more trial')} ended so."] if len(lines) > LISTED else []
    notes = [*more, *still_falling(results, table_cells), *unlearned_tasks(results, table_cells), *results.problems]
    ended = paragraphs([counts(table_cells, results.unreadable)])
    return Section("What diverged or failed", ended + listed + paragraphs(notes))


def learning_rates(results: Results) -> Section:
    """How rates were chosen, and whether those that tie differ beyond training."""
    table_cells = cells(results)
    tried = sorted({rate for cell in table_cells for rate in cell.rates})
    alone = f"Each scheme was trained at one learning rate, {' or '.join(f'{rate:g}' for rate in tried)}"
    sentences = rates(table_cells, results.words)
    if sentences and not any("differ beyond training" in sentence for sentence in sentences):
        sentences.append("No rates that tie in validation differ beyond training.")
    return Section("Learning rates", paragraphs(sentences or [f"{alone}; others may rank them otherwise."]))


def origin(results: Results, commands: Sequence[str], text: str = "", cost: str = "") -> Section:
    """Versions, commit, machine and seconds, and the commands that repeat it; `text` is the file that they read."""
    provenance = results.provenance()
    pairs = [(CALLED[name], ", ".join(values)) for name, values in provenance.items()]
    pairs += [("seconds", _seconds(results) or f"not in a committed record{f'; cost: {cost}' if cost else ''}")]
    pairs += [("trials", f"{len(results.trials())}; the digest of their ids is {store.digest(results.trials())[:16]}")]
    body = block("\n".join(commands)) if commands else paragraphs([NO_COMMAND])
    file = folded("The file that this reads", block(text)) if text else []
    return Section("Where the numbers come from, and what repeats them", facts(pairs) + body + file)


def commands(results: Results, command: str = "") -> tuple[list[str], str]:
    """Return the commands that repeat a run, and the text of the file that they read. These are the command of an
    experiment, or the files that a run folder keeps of its sweeps."""
    if command or results.folder is None:
        return [command] if command else [], ""
    files = sorted(results.folder.glob("sweep*.toml"), key=lambda path: (len(path.name), path.name))
    again = shlex.quote(f"{results.name}-again")
    lines = [f"posenc sweep {shlex.quote(str(path))} --name {again}" for path in files]
    return lines, "\n".join(disk.content(path).decode("utf-8", "replace") for path in files)


def citations(schemes: Sequence[str]) -> Section:
    """BibTeX of all schemes, each entry once; this parses them, and imports jax."""
    from posenc.catalog.schemes import cite

    entries, unread = dict[str, None](), []
    for scheme in schemes:
        try:
            entries |= dict.fromkeys(cite(scheme).split("\n\n"))
        except ValueError:  # of a package that is not installed here, or of another version
            unread.append(scheme)
    lost = f"Not known here, so without an entry: {', '.join(unread)}." if unread else ""
    title = f"BibTeX of {plural(len(schemes), 'scheme')}"
    return Section("Sources", paragraphs([lost]) + folded(title, block("\n\n".join(entries))) if schemes else [])


def _task(results: Results, group: Sequence[TableCell]) -> str:
    """Describe in a sentence what was trained and evaluated of a task."""
    first, sizes = group[0], sorted({size for cell in group for size in cell.values})
    examples = numbers(n for cell in group for n in cell.examples.values())
    unit = results.words.unit(first.task)
    evaluated = f", evaluated at {', '.join(map(str, sizes))} ({unit}) on {examples} examples each" if sizes else ""
    measured = f", by {metric_named(first.metric)}" if first.metric else ""
    return f"{results.words.coded(first.task)}, trained on {ranged(*first.trained)}{evaluated}{measured}"


def _idea(task: str) -> str:
    """Return what a task asks for; empty for a task that is not known here."""
    from posenc.lab.explain.task_card import unsampled

    try:
        return f"{task}: {unsampled(task).idea}"
    except ValueError:
        return ""


def _diverged(results: Results, record: GroupRecord, trial: TrialRecord) -> tuple[str, ...]:
    """A trial that diverged, as a row."""
    at = "" if trial.diverged_at is None else f" at step {trial.diverged_at} of {trial.steps}"
    what = f"diverged{at}{', tuning' if trial.tuning else ''}"
    return record.task.label, results.label(record, trial), str(trial.knobs.seed), f"{trial.knobs.lr:g}", what


def _failed(results: Results) -> list[tuple[str, ...]]:
    """Planned trials that failed, as rows, with the last line of the traceback of their group."""
    errors = store.read_errors(results.folder) if results.folder is not None else {}
    lines = []
    for trial in results.unfinished:
        if trial.outcome in store.FAILURES:
            _, trace = errors.get(trial.group, ("", ""))
            why = (trace.strip().splitlines() or [""])[-1][:200]
            knobs = (str(trial.knobs.seed), f"{trial.knobs.lr:g}")
            lines.append(
                (trial.task, results.label(trial, trial), *knobs, f"{trial.outcome}{f': {why}' if why else ''}")
            )
    return lines


def _seconds(results: Results) -> str:
    """The seconds of each phase, over all workers, where records have them."""
    spent: Counter[str] = Counter()
    for record in (*results.records, *results.tuning):
        phases = record.provenance.get("seconds")
        for phase, seconds in phases.items() if isinstance(phases, dict) else ():
            if type(seconds) in (int, float):
                spent[phase] += seconds
    each = ", ".join(f"{phase} {seconds:,.0f}" for phase, seconds in spent.items())
    return f"{sum(spent.values()):,.0f} of all workers: {each}" if spent else ""
