"""Sweeps that end in the middle and go on, in the process of the tests."""

import dataclasses
import os
import signal

import numpy as np

from posenc.lab.run.sweep import sweep
from posenc.lab.spec.experiment import Experiment
from posenc.lab.store import checkpoints
from tests.lab.test_sweep import BASE, PLAN, Watch

STEPS = 12
STAGED = dataclasses.replace(BASE, then="0.5 kerple")


def experiment(*runs, **change):
    return Experiment("tiny", runs or (BASE,), dataclasses.replace(PLAN, steps=STEPS, **change))


def until(step, act, label=""):
    """A watch that acts at a step."""
    return Watch(lambda name, at, *_: act() if at == step and name.startswith(label) else None)


def send(number):
    return lambda: os.kill(os.getpid(), number)


def notes(watch):
    return [said[1].partition(": ")[2] for said in watch.heard if said[0] == "note" and " · " in said[1]]


def steps(watch):
    return [said[2] for said in watch.heard if said[0] == "step"]


def stopped(folder, step, *runs, every=1e9, code=75, **change):
    """A sweep that SIGTERM ended at a step."""
    watch = until(step, send(signal.SIGTERM))
    assert sweep(experiment(*runs, **change), folder, watch=watch, save_every=every) == code
    return watch


def resumed(folder, *runs, **how):
    watch, change = Watch(), {name: how.pop(name) for name in ("seeds", "segment") if name in how}
    assert sweep(experiment(*runs, **change), folder, watch=watch, **how) == 0
    return watch


def kept(folder):
    """The steps of all checkpoints."""
    return sorted(checkpoints.step_of(path) for group in checkpoints.groups(folder) for path in found(folder, group))


def found(folder, group=None):
    return checkpoints.paths(folder, group or checkpoints.groups(folder)[0])


ROWS = np.random.default_rng(0).integers(0, 256, (2, 500), dtype=np.uint8)
ABOUT = checkpoints.Manifest(
    **{"step": 40, "stage": 0, "program": {"jax": "1"}, "ids": ("a", "b"), "leaves": ("x float32[3]", "y int32[]")},
    **{"losses": {"a": [0.1 + 0.2, None], "b": [1e-30, 2.5]}, "seconds": {"train": 1.5}},
)
TOKEN = "0123456789abcdef"
