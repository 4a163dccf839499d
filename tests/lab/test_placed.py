"""Coordinates of tasks and of distances reach training: one step of each, in a sweep of its own."""

import numpy as np
import pytest

from posenc.lab.experiment import Experiment
from posenc.lab.run import Plan, Run
from posenc.lab.sweep import sweep
from tests.lab.test_sweep import Watch, trials

RUNS = {
    "reverse_string": [
        "learned @ given('coupled', shift=3) + alibi(form='half') @ random_sorted(64, 'layer', over='distances')",
        "transformer_xl(form='scored') @ random_sorted(64, 'layer', over='distances', version='as_released')",
    ],
    "copy(symbols=5)": [
        "learned @ segments('inside') + rope @ segments('which')",
        "abacus(rows=40) @ given('coupled', shift=9) + sinusoidal @ augment + rope @ random_float(9.0)",
    ],
}


@pytest.mark.parametrize(("task", "scheme"), [(task, scheme) for task, schemes in RUNS.items() for scheme in schemes])
def test_a_step_is_trained_and_evaluated(task, scheme, tmp_path):
    model = "encoder" if task == "reverse_string" else "decoder"
    run = Run(task=task, scheme=scheme, model=model, width=8, depth=2, heads=2, hidden=8, batch=4, length=4, buckets=1)
    plan = Plan(steps=2, seeds=(0,), sizes=(4, 6), rows=8)
    assert sweep(Experiment("one", (run,), plan), tmp_path / "one", watch=Watch()) == 0
    (found,) = trials(tmp_path / "one").values()
    assert found["outcome"] == "done" and np.isfinite(found["curve"]["loss"]).all()
