"""What experiments say in their texts, and the hits that their committed records hold, for tests of quoted numbers."""

import re
from pathlib import Path
from statistics import median

from posenc.lab import metrics
from posenc.lab.results import losses
from posenc.lab.results.evidence import Evidence
from posenc.lab.results.results import load
from posenc.lab.results.statistics import cells
from posenc.lab.spec.committed import record_of
from posenc.lab.spec.experiment_file import from_file

FOLDER = Path(__file__).resolve().parent.parent / "experiments"


def header(name):
    """The texts of an experiment."""
    return from_file(FOLDER / f"{name}.py", yes=True).header


def quoted(text):
    """The shares that a text gives, as it writes them."""
    return re.findall(r"\b0\.\d+", text)


class Recorded:
    """The hits of a committed record by task, scheme, size and metric, one share for each seed.

    The default is the last token of a row. A mean over tokens stays high beyond the lengths trained on, because a long
    row also holds tokens at positions that were trained.
    """

    def __init__(self, name):
        self.results = load(record_of(FOLDER / f"{name}.py"))
        self.shares, self.curves, self.halves = {}, {}, losses.falling(self.results)
        for record in self.results.records:
            for trial in record.trials:
                where = record.task.label, self.results.label(record, trial)
                self.curves.setdefault((*where, trial.knobs.lr), []).append(trial.curve["loss"])
                for size, found in trial.evaluations.items():
                    for metric in ("last", "token", "exact", *(["beyond"] if found.get("beyond_scored") else [])):
                        key = *where, size, metric
                        self.shares.setdefault(key, []).append(metrics.share(found, metric))

    def __call__(self, task, scheme, size, of=median, metric="last"):
        return of(self.shares[task, scheme, size, metric])

    def seeds(self, task, scheme, metric=None):
        """Size to the values of the seeds that tables have, by the metric that they show of this task."""
        return self._cell(task, scheme, metric and {task: metric}).values

    def cell(self, task, scheme, size, rate=None):
        """The median over seeds that tables print, or that of the runs at one rate."""
        cell = self._cell(task, scheme)
        values = cell.values[size] if rate is None else [v for (lr, _), v in cell.runs[size].items() if lr == rate]
        return median(values)

    def _cell(self, task, scheme, metric=None):
        (cell,) = (c for c in cells(self.results.shown(metric)) if (c.task, c.scheme) == (task, scheme))
        return cell

    def place_shares(self, task, scheme, size, first, last, rate=None):
        """Of each seed the share right from one place to another; a place belongs to the bin that it is in."""
        return [
            _share(record.task.places[size], trial.places[size]["right"], first, last)
            for record in self.results.records
            for trial in record.trials
            if (record.task.label, self.results.label(record, trial)) == (task, scheme)
            and trial.places
            and rate in (None, trial.knobs.lr)
        ]

    def half(self, task, scheme):
        """By how many percent the loss still fell over the last half of the steps, as `posenc table` prints it."""
        return f"{100 * self.halves[task, scheme]:.0f}"

    def ending(self, task, scheme, rate=None):
        """The median end of a loss over the runs, or over those at one rate, whether or not it still fell."""
        trials = [
            (record, trial)
            for record in self.results.records
            for trial in record.trials
            if (record.task.label, self.results.label(record, trial)) == (task, scheme)
            and rate in (None, trial.knobs.lr)
        ]
        return losses._middle([losses.ending(trial, losses.switch_of(record, trial)) for record, trial in trials])

    def mean(self, task, scheme, sizes="inside"):
        """The median over seeds of means over the sizes trained on, as tables have them, or beyond."""
        (cell,) = (c for c in cells(self.results) if (c.task, c.scheme) == (task, scheme))
        return median(cell.means(getattr(cell, sizes)).values())

    def ahead(self, claim):
        """By how much each seed of the first scheme of an order is above that of the second."""
        evidence = Evidence(self.results)
        first, second = (
            evidence.values_at_chosen_rate(claim.measure, scheme) for scheme in (claim.first, claim.second)
        )
        return [value - second[seed] for seed, value in first.items()]

    def schemes(self, task, suffix=""):
        return {scheme for one, scheme, *_ in self.shares if one == task and scheme.endswith(suffix)}

    def medians(self, task, schemes, size, metric="last"):
        return [self(task, scheme, size, metric=metric) for scheme in sorted(schemes)]


def _share(about, right, first, last):
    bins = range(first // about["width"], last // about["width"] + 1)
    return sum(right[n] for n in bins) / sum(about["scored"][n] for n in bins)
