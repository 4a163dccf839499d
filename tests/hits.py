"""The hits of committed records by position, for tests that hold records against arithmetic."""

from pathlib import Path

from posenc.lab.results.results import load
from posenc.lab.spec.committed import record_of

FOLDER = Path(__file__).resolve().parent.parent / "experiments"


class Recorded:
    """A committed record."""

    def __init__(self, name):
        self.results = load(record_of(FOLDER / f"{name}.py"))

    def place_shares(self, task, scheme, size, first, last):
        """Of each run the share right from one position to another; a position belongs to the bin that it is in."""
        return [
            _share(record.task.places[size], trial.places[size]["right"], first, last)
            for record in self.results.records
            for trial in record.trials
            if (record.task.label, self.results.label(record, trial)) == (task, scheme) and trial.places
        ]


def _share(about, right, first, last):
    bins = range(first // about["width"], last // about["width"] + 1)
    return sum(right[n] for n in bins) / sum(about["scored"][n] for n in bins)
