"""All schemes and seeds are evaluated on the same bytes; what is trained on differs by the seed and by nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.spec.run import Knobs, Run
from posenc.lab.tasks.task import Task
from posenc.lab.train import training
from posenc.lab.train.training import resolve

SCHEMES = ("nope", "rope", "learned @ random_sorted(32)", "fox", "[alibi, t5]")


@pytest.fixture
def met(monkeypatch):
    """`met(scheme, seed)`: the batches that a trial is evaluated on, chosen by, and trained on, as bytes."""
    seen, real = [], Task.sample

    def sample(*args, **how):
        batch = real(*args, **how)
        seen.append(tuple(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(batch)))
        return batch

    monkeypatch.setattr(Task, "sample", sample)
    monkeypatch.setattr(training, "cross_entropy", lambda model, batch, key: model)

    def batches(scheme, seed):
        run = Run(task="copy(symbols=3)", scheme=scheme, model="decoder", width=8, depth=2, heads=2, batch=4, length=4)
        cell, n = resolve(run), jnp.int32(4)
        nothing = lambda given, key, train: jnp.zeros((*given.tokens.shape, cell.task.classes))  # noqa: E731
        seen.clear()
        for choosing in (False, True):
            training._sums(cell, 8, 6, nothing, jnp.uint32(seed), n, jnp.bool_(choosing))
        training._loss_and_gradient(cell, 4, jnp.float32(0), Knobs(seed=seed), jnp.int32(0), n)
        return tuple(seen)

    return batches


def test_what_is_evaluated_is_the_same_for_all_schemes_and_seeds(met):
    found = {met(scheme, seed)[:2] for scheme in SCHEMES for seed in (0, 7)}
    assert len(found) == 1
    assert len(set(*found)) == 2, "sizes chosen by have examples of their own"


def test_what_is_trained_on_differs_by_seed_and_not_by_scheme(met):
    by_seed = [{met(scheme, seed)[2] for scheme in SCHEMES} for seed in (0, 7)]
    assert [len(found) for found in by_seed] == [1, 1] and by_seed[0] != by_seed[1]
