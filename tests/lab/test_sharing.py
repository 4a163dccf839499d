"""All schemes and seeds are evaluated on the same bytes; what is trained on differs by the seed and by nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.spec.run import Knobs, Run
from posenc.lab.train import evaluation, training
from posenc.lab.train.training import resolve
from tests.lab.steps import given_at

SCHEMES = ("nope", "rope", "learned @ random_sorted(32)", "fox", "[alibi, t5]")


@pytest.fixture
def met(monkeypatch):
    """`met(scheme, seed)`: the batches that a trial is evaluated on, chosen by, and trained on, as bytes."""
    seen = []

    def see(given):
        seen.append(tuple(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(given)))

    monkeypatch.setattr(training, "cross_entropy", lambda model, given, key, classes: see(given) or model)

    def batches(scheme, seed):
        run = Run(task="copy(symbols=3)", scheme=scheme, model="decoder", width=8, depth=2, heads=2, batch=4, length=4)
        cell = resolve(run)
        seen.clear()

        def model(given, key, train):
            parts.append(np.asarray(given.tokens).tobytes())
            return jnp.zeros((*given.tokens.shape, cell.task.classes))

        with jax.disable_jit():
            for choosing in (False, True):
                parts = []
                batch = evaluation.examples_at(cell.task, 8, (4, 6), 4, choosing)
                evaluation.examined(cell, model, jnp.uint32(seed), (4, 6), 4, batch)
                seen.append(b"".join(parts))
        given, shapes = given_at(cell, seed, 0)
        training.loss_and_gradient(shapes, jnp.float32(0), Knobs(seed=seed), jnp.int32(0), given, 3)
        return tuple(seen)

    return batches


@pytest.mark.ci
def test_what_is_evaluated_is_the_same_for_all_schemes_and_seeds(met):
    found = {met(scheme, seed)[:2] for scheme in SCHEMES for seed in (0, 7)}
    assert len(found) == 1
    assert len(set(*found)) == 2, "sizes chosen by have examples of their own"


@pytest.mark.ci
def test_what_is_trained_on_differs_by_seed_and_not_by_scheme(met):
    by_seed = [{met(scheme, seed)[2] for scheme in SCHEMES} for seed in (0, 7)]
    assert [len(found) for found in by_seed] == [1, 1] and by_seed[0] != by_seed[1]
