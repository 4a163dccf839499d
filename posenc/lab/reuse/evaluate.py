"""Evaluation of trained models on other questions: at other sizes, on another task, under another scheme, group by
group.

Models are those whose parameters a sweep kept (`--keep`). Examples are those that a sweep would evaluate on, so that a
question of the sweep gets the same answer.

Another scheme has the parameters of the trained one, such as `yarn(factor=4.0)` those of `rope`. Its settings that are
bound to the trained length are bound to that of the run, whatever sizes are asked. The learning rate stays the one that
the trained scheme chose on its validation examples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import jax
import numpy as np

from posenc.lab import metrics
from posenc.lab.models.carry import differences
from posenc.lab.results.rates import at_chosen
from posenc.lab.results.results import Results
from posenc.lab.results.statistics import cells
from posenc.lab.results.table import frame_of
from posenc.lab.reuse.kept import abstract, restored_under
from posenc.lab.run import plan
from posenc.lab.spec.run import ON, WITH, Knobs, Plan
from posenc.lab.store import checkpoints, folder, records
from posenc.lab.store.schema import GroupRecord, TrialRecord, written
from posenc.lab.tasks import Task, spec
from posenc.lab.tasks.examples import batch_shapes
from posenc.lab.tasks.floors import floors_by_metric
from posenc.lab.tasks.measure import full as full_task
from posenc.lab.train import evaluation, needs, training
from posenc.lab.train.exact import clip_gain, row_gains, size_losses, with_gain
from posenc.lab.train.lanes import Arrangement
from posenc.lab.train.task_record import places_of, read_by, task_record
from posenc.lab.train.training import ResolvedRun
from posenc.naming import full as full_scheme

if TYPE_CHECKING:
    import pandas

SIZE = "size"
"""By which all examples can be grouped, whatever their task."""
ALONE = Arrangement("map", 1)
"""One model after another."""


@dataclass(frozen=True)
class Question:
    """One scheme's trials in one program, and what is asked of them."""

    record: GroupRecord
    label: str
    """The scheme's label in tables: also what it was trained with, if that differs."""
    as_trained: ResolvedRun
    resolved: ResolvedRun
    """With the task and under the scheme that are asked for."""
    sizes: tuple[int, ...]
    rows: int

    @property
    def trained(self) -> list[TrialRecord]:
        """The trials that have a trained model."""
        return [trial for trial in self.record.trials if trial.outcome == "done"]

    @property
    def other(self) -> bool:
        """True if the scheme is not the trained one."""
        return self.resolved.scheme != self.as_trained.scheme

    @property
    def named(self) -> GroupRecord:
        """The record under the scheme that is asked for, which its run calls "under"."""
        if not self.other:
            return self.record
        scheme = self.resolved.scheme
        run = {**self.record.run, "under": full_scheme(scheme)}
        return replace(self.record, label=self.label, family=plan.family(scheme), run=run)


def ask(
    results: Results,
    *,
    schemes: Sequence[str] | None = None,
    task: Task | None = None,
    sizes: tuple[int, ...] | Literal["all"] | None = None,
    rows: int | None = None,
) -> Results:
    """The results of the same trained models under other schemes, on another task, at other sizes, or on more examples.

    What is not given is as it was evaluated. Schemes of other parameters, sizes that the task does not have, a task of
    other tokens, and trials whose parameters were not kept are refused by `ValueError`.
    """
    records, floors_of = [], {}
    for question in _questions(results, schemes, task, sizes, rows):
        resolved, at, trials, scored = question.resolved, question.sizes, [], None
        last = resolved.run.length
        exact = [size_losses(resolved.task, question.rows, tuple(at), n, last, False) for n in at]
        for trial in question.trained:
            model = restored_under(question.as_trained, resolved, results.folder, trial.id)
            model, seeds = jax.tree.map(lambda a: a[None], (model, _knobs(trial).seed))
            sums = evaluation.evaluate(resolved, question.rows, ALONE, model, seeds, at, [False] * len(at))
            counts_of = {name: total[0].tolist() for name, total in sums.rows.items()}
            each = {n: {name: totals[i] for name, totals in counts_of.items()} for i, n in enumerate(at)}
            each = {n: with_gain(counts, losses) for (n, counts), losses in zip(each.items(), exact, strict=True)}
            places, scored = places_of(resolved, at, sums.places, 0), sums.places["scored"][0]
            trials.append(replace(trial, id=_renamed(trial, question), evaluations=each, places=places))
        trials += [replace(t, id=_renamed(t, question)) for t in question.record.trials if t.outcome == "diverged"]
        if (key := (resolved.task, at, resolved.run.length)) not in floors_of:
            floors_of[key] = floors_by_metric(*key)
        exact = [] if scored is None else exact
        evaluated = replace(
            task_record(resolved, at, question.rows, floors_of[key], scored, exact), label=_label(question)
        )
        records.append(replace(question.named, task=evaluated, trials=tuple(trials)))
    return replace(results, records=tuple(records), unfinished=(), folder=None, tuning=(), own=None)


def groups(
    results: Results,
    by: Sequence[str],
    *,
    schemes: Sequence[str] | None = None,
    task: Task | None = None,
    sizes: tuple[int, ...] | Literal["all"] | None = None,
    rows: int | None = None,
) -> pandas.DataFrame:
    """Return a table with one line for each trial and group of examples: what it is, its counts, and its value.

    Examples are grouped by their size and by what the task tells of them (`Batch.strata`): the digits of a sum, the
    depth of a needle. Those of all sizes are pooled where `by` lacks "size". Of several learning rates they are
    those that are best on validation examples.
    """
    lines, questions = [], _questions(results, schemes, task, sizes, rows)
    for question in questions:
        _check_groups(question.resolved.task, by)
    rates = {(c.task, c.scheme): c.reported for c in cells(results)}
    for question in questions:
        resolved = question.resolved
        for trial in question.trained:
            rate = trial.knobs.lr
            if rate not in rates[question.record.task.label, results.label(question.record, trial)]:
                continue
            model = restored_under(question.as_trained, resolved, results.folder, trial.id)
            scheme, seed = results.label(question.named, trial), _knobs(trial).seed
            at: dict[tuple[int, ...], dict[str, int]] = {}
            for n in question.sizes:
                batch = evaluation.examples_at(resolved.task, question.rows, question.sizes, n)
                counts = evaluation.examined(resolved, model, seed, question.sizes, n, batch)
                counts = row_gains(resolved.task, batch, n, resolved.run.length, counts)
                strata = {SIZE: np.full(question.rows, n), **jax.device_get(batch.strata)}
                _add(at, np.stack([strata[name] for name in by], 1), counts)
            for counts in at.values():
                clip_gain(counts)
            everywhere = all(counts.get("beyond_scored") for counts in at.values())
            metric = read_by(resolved.task, everywhere) or resolved.task.metric
            head = {"task": _label(question), "scheme": scheme, "trial": trial.id, "family": question.named.family}
            head |= {"metric": metric, "seed": trial.knobs.seed, "lr": rate}
            for group in sorted(at):
                share = {"value": metrics.share(at[group], metric)}
                lines.append(head | dict(zip(by, group, strict=True)) | at[group] | share)
    return frame_of(lines)


def _questions(
    results: Results,
    schemes: Sequence[str] | None,
    task: Task | None,
    sizes: tuple[int, ...] | Literal["all"] | None,
    rows: int | None,
) -> list[Question]:
    """Return the questions to each record; all are checked before the first model is evaluated."""
    results = at_chosen(results)
    if results.folder is None:
        raise ValueError(f"The bundle {results.name!r} holds no parameters; name the folder of a run with --keep.")
    done = [t.id for record in results.records for t in record.trials if t.outcome == "done"]
    if not done:
        raise ValueError(f"{results.name!r} holds no trained model; `posenc status {results.name}` says how far it is.")
    lacking = len(set(done) - set(checkpoints.kept(results.folder)))
    if lacking:
        raise ValueError(
            f"{lacking} of {len(done)} trials of {results.name!r} kept no parameters; give its sweep --keep, which"
            " trains them again, or choose others with --only."
        )
    if rows is not None and rows < 1:
        raise ValueError(f"rows is {rows}; it counts examples of each size, so it is at least 1.")
    lines = {line.id: line for line in folder.read_plan(results.folder)}
    questions = []
    for record in results.records:
        line = lines.get(record.trials[0].id)
        if line is None:
            raise ValueError(f"The plan of {results.name!r} lacks a recorded trial; restore plan.jsonl.")
        as_trained = training.stages(plan.planned_run(line.run), line.steps)[-1][0]
        other = as_trained.task if task is None else task
        _check_tokens(as_trained, other)
        for label, resolved in _under(as_trained, record.label, schemes):
            resolved = resolved._replace(task=other)
            at = line.sizes if sizes is None else plan.evaluated(resolved, Plan(sizes=sizes))
            for n in at:
                other.check_size(n)
            needs.check_memory(resolved, max(at))
            needs.fits(resolved, max(at))
            questions.append(Question(record, label, as_trained, resolved, at, line.rows if rows is None else rows))
    return questions


def _under(as_trained: ResolvedRun, label: str, schemes: Sequence[str] | None) -> list[tuple[str, ResolvedRun]]:
    """The run under each of these schemes, with its label; without schemes, as it was trained."""
    if schemes is None:
        return [(label, as_trained)]
    runs: dict[str, ResolvedRun] = {}
    for text in schemes:
        other = training.under(as_trained, text)
        name = label if other.scheme == as_trained.scheme else f"{plan.label(other.run)}{WITH}{label}"
        if name in runs:
            raise ValueError(f"The scheme {text!r} is given twice; give it once.")
        if differing := differences(abstract(as_trained), abstract(other)):
            raise ValueError(
                f"{text!r} has other parameters than the models trained with {label!r}: it {' and '.join(differing)};"
                " take a scheme with the same ones, leave these models out by --only, or train on under it, as in"
                f" then='0.9 {text}'."
            )
        runs[name] = other
    return list(runs.items())


def _knobs(trial: TrialRecord) -> Knobs:
    """Return the knobs of a trial; evaluation reads the seed."""
    return training.as_arrays(Knobs(**written(trial.knobs)))


def _label(question: Question) -> str:
    """Return the task's label in tables: also what it was trained on, if that differs."""
    trained, other = question.record.task.label, spec(question.resolved.task)
    return trained if trained == other else f"{other}{ON}{trained}"


def _renamed(trial: TrialRecord, question: Question) -> str:
    """A name for what a trial answers to this, which no other question has."""
    facts = {
        "trial": trial.id,
        "task": full_task(question.resolved.task),
        "sizes": question.sizes,
        "rows": question.rows,
    }
    if question.other:
        facts["scheme"] = full_scheme(question.resolved.scheme)
    return hashlib.sha256(records.canonical(facts).encode()).hexdigest()


def _check_tokens(resolved: ResolvedRun, other: Task) -> None:
    """Refuse a task that the models cannot read or answer."""
    if (other.layout, other.vocab, other.classes) != (resolved.task.layout, resolved.task.vocab, resolved.task.classes):
        shown = [f"{spec(t)} ({t.layout.value}, {t.vocab} tokens, {t.classes} classes)" for t in (other, resolved.task)]
        raise ValueError(f"{shown[0]} cannot be asked of models trained on {shown[1]}; take a task of the same tokens.")


def _check_groups(task: Task, by: Sequence[str]) -> None:
    has = [SIZE, *sorted(batch_shapes(task, 1, task.sizes.smallest).strata)]
    for name in by:
        if name not in has:
            raise ValueError(f"The examples of {spec(task)} cannot be grouped by {name!r}; take {', '.join(has)}.")


def _add(at: dict[tuple[int, ...], dict[str, int]], strata: np.ndarray, counts_of: dict[str, np.ndarray]) -> None:
    """Add the counts of rows to those of their groups."""
    for group in np.unique(strata, axis=0):
        inside = (strata == group).all(1)
        sums = at.setdefault(tuple(int(g) for g in group), dict.fromkeys(counts_of, 0))
        for name, counts in counts_of.items():
            sums[name] += int(counts[inside].sum())
