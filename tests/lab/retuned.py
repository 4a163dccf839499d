"""Sweeps that tune, for tests; a `Recorder` records at once what would train, with the accuracy of its rate."""

import contextlib
import dataclasses
import io
import json

import pytest

from posenc.lab.cli import main
from posenc.lab.results import statistics
from posenc.lab.results.results import load
from posenc.lab.run import ray
from posenc.lab.run import sweep as sweeping
from posenc.lab.run import worker as working
from posenc.lab.spec.experiment import Experiment, grid
from posenc.lab.spec.run import Plan, Run
from posenc.lab.store import folder as store
from posenc.lab.store import records
from posenc.lab.store.schema import GroupRecord, read
from tests.lab import made
from tests.lab.inline import Inline, driven
from tests.lab.test_sweep import Watch

RATES, TUNING_SEEDS, SEEDS = (1e-3, 1e-2), (0, 1), (2, 3, 4)
TINY = Run(task="even_pairs", width=8, depth=1, heads=2, hidden=8, batch=4, length=4)
PLAN = Plan(steps=2, lr=RATES, tuning=TUNING_SEEDS, seeds=SEEDS, sizes=(4, 8), rows=8, segment=1)
LOW, MIDDLE, HIGH = 1e-3, 3e-3, 1e-2
BEST = {LOW: 0.2, MIDDLE: 0.5, HIGH: 0.8}
"""Accuracy on validation examples at each rate."""


class Recorder:
    """Records groups in the place of training them, all but those at rates that are to fail; a rate without accuracy
    diverges."""

    def __init__(self):
        self.right, self.failing = dict(BEST), set()

    def __call__(self, folder, groups):
        code = 0
        for group, lines in groups.items():
            if {line.knobs.lr for line in lines} & self.failing:
                store.write_error(folder, group, "failed", "planted")
                code = 1
            else:
                store.write_record(folder, self.record(lines))
        return code

    def record(self, lines):
        first, found = lines[0], []
        for line in lines:
            knobs = json.loads(records.canonical(vars(line.knobs)))
            share = self.right[line.knobs.lr]
            lost, seed = share is None, line.knobs.seed
            curve, validation, outcome = ({}, {}, "diverged") if lost else ({4: share, 8: share}, {4: share}, "done")
            one = made.trial(line.label, line.task, seed, curve, outcome=outcome, validation=validation)
            role = ({"role": "tuning"} if line.tuning else {}) | ({"diverged_at": 1} if lost else {})
            found.append(one | {"id": line.id, "knobs": knobs, "steps": line.steps} | role)
        about = made.record(first.label, first.family, first.task, found, sizes=(4, 8), trained=(2, 4))
        return read(GroupRecord, records.plain(about | {"run": first.run}))


@pytest.fixture(autouse=True)
def recorder(monkeypatch, tmp_path):
    """In a module that imports it, every engine records in the place of training."""
    found = Recorder()
    monkeypatch.setattr(working.Worker, "carry_out", lambda worker, groups, _: found(worker.folder, groups))
    monkeypatch.setattr(ray.Driver, "_run", lambda driver, groups, _: found(driver.folder, groups))
    monkeypatch.setenv("POSENC_RUNS", str(tmp_path))
    return found


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "a"


def tiny(**change):
    return Experiment("tiny", grid(TINY, scheme=["rope", "nope"]), dataclasses.replace(PLAN, **change))


def asked(lr=(LOW, HIGH), seeds=(2, 3), scheme="rope", **change):
    """An experiment of one run."""
    return tiny(lr=lr, seeds=seeds, **change).only([f"scheme={scheme}"])


def sweep(folder, **change):
    """The exit code of a sweep, and what it noted."""
    watch = Watch()
    code = sweeping.sweep(asked(**change), folder, watch=watch)
    return code, " ".join(watch.notes())


def workers(folder):
    return working.work(folder, watch=Watch())


def cluster(folder):
    return driven(folder, Inline(), Watch())


def reported(folder):
    """Seed and rate of every reported trial with a result."""
    every = [trial for record in store.read_records(folder).records for trial in record.trials]
    return {(trial.knobs.seed, trial.knobs.lr) for trial in every if not trial.tuning}


def cell(folder):
    (found,) = statistics.cells(load(folder))
    return found


def at(rate, *seeds):
    return {(seed, rate) for seed in seeds}


def said(*words):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main([*words]) == 0
    return printed.getvalue()
