"""What is counted is what was asked, under keys that neither the run's seed nor the process can change."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.tasks.measure import (
    PLACES,
    beyond,
    by_place,
    evaluation_key,
    full,
    losses,
    measure,
    nats,
    score,
    train_key,
    validation_key,
    width,
)
from tests.tasks.task_checks import QUICK, known, rows, sampler

counted = jax.jit(measure, compiler_options=QUICK)  # where it is asked of many shapes


def logits(batch, guess, classes):
    return jnp.asarray((guess[..., None] == np.arange(classes)).astype(np.float32))


def solved(task, batch):
    """Logits of the oracle: its answers laid where they are asked for, class 0 elsewhere."""
    guess = np.zeros_like(batch.targets)
    for row, (prompt, scored) in enumerate(rows(batch)):
        answer = task.answer(prompt)
        guess[row, batch.score[row]] = [*answer, *scored[len(known(task, scored)) :]]
    return logits(batch, guess, task.classes)


def first(batch, count=64):
    return jax.tree.map(lambda leaf: leaf[:count], batch)


def small(name):
    draw = sampler(name)
    sizes = draw.task.sizes
    n = sizes.below(sizes.smallest + (3 if draw.task.name != "flip_flop" else 20))
    return draw.task, n, draw(n)


def test_the_oracle_scores_one_through_the_measure(name):
    task, _, batch = small(name)
    step = 64 if task.classes < 1000 else 4
    batch = first(batch, step)
    sums = counted(solved(task, batch), batch)
    assert all(value.dtype == jnp.int32 for value in sums.values())
    assert [score(sums, metric) for metric in ("token", "accuracy", "exact", "last", "error")] == [1, 1, 1, 1, 0]
    if task.metric != "gain":  # of losses, which test_gain.py counts
        assert score(sums, task.metric) == (0.0 if task.metric == "error" else 1.0)


def test_hits_by_place_and_beyond_are_those_counted_one_by_one():
    flags = np.array([[1, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1]], bool)
    batch = first(sampler("reverse_string")(3), 3)._replace(score=flags)
    hit = batch.score & (np.arange(18).reshape(3, 6) % 3 > 0)
    loss = np.where(batch.score, np.arange(18).reshape(3, 6) / 4, 0).astype(np.float32)
    for many in (1, 2, 5, 6):
        found = jax.tree.map(np.asarray, by_place(hit, loss, batch, jnp.int32(many)))
        expected = [sum(1024 * loss[:, c].sum() for c in range(6) if c // many == b) for b in range(32)]
        np.testing.assert_array_equal(found["nats"], expected, err_msg=f"losses, bins of {many}")
        for name, flags in {"right": hit, "scored": batch.score}.items():
            expected = [sum(flags[r, c] for r in range(3) for c in range(6) if c // many == b) for b in range(32)]
            np.testing.assert_array_equal(found[name], expected, err_msg=f"{name}, bins of {many}")
    for start in (0, 4, 6):
        counts = jax.tree.map(np.asarray, beyond(hit, batch, jnp.int32(start)))
        np.testing.assert_array_equal(counts["beyond"], hit[:, start:].sum(1))
        np.testing.assert_array_equal(counts["beyond_scored"], batch.score[:, start:].sum(1))


def test_a_loss_is_the_logarithm_of_what_the_right_answer_gets():
    batch, classes = hand_made(), 5
    given = np.random.default_rng(0).normal(size=(*batch.targets.shape, classes)).astype(np.float32)
    given[..., 4] = -np.inf  # a class that another task of the program has
    found = losses(given, batch)
    for row, place in np.ndindex(*batch.targets.shape):
        odds = np.exp(given[row, place].astype(float))
        expected = -np.log(odds[batch.targets[row, place]] / odds.sum()) if batch.score[row, place] else 0
        assert found[row, place] == pytest.approx(expected, rel=1e-5)
    np.testing.assert_array_equal(nats(found), np.round(1024 * np.asarray(found, float).sum(1)))


@pytest.mark.parametrize("loss", [np.nan, np.inf, 1e30])
def test_a_loss_that_no_count_holds_counts_as_the_most(loss):
    assert int(nats(np.float32([1.0, loss]))) == 2**31 - 2**8


def test_texts_fit_the_bins():
    assert all(width(tokens) * PLACES >= tokens > (width(tokens) - 1) * PLACES for tokens in range(1, 500))


def hand_made():
    batch = first(sampler("reverse_string")(3), 3)  # 3 tokens, 3 slots
    score_ = batch.score.copy()
    score_[2] = False
    return batch._replace(score=score_)


def test_sums_are_those_counted_by_hand():
    batch = hand_made()
    guess = batch.targets.copy()
    guess[1, 5] = 1 - guess[1, 5]  # the second row is wrong at its last slot, the third asks for nothing
    sums = {name: int(value) for name, value in measure(logits(batch, guess, 2), batch).items()}
    assert sums == {"correct": 5, "scored": 6, "exact": 1, "last": 1, "rows": 2}
    assert score(sums, "token") == 5 / 6 and score(sums, "exact") == score(sums, "last") == 1 / 2
    guess = batch.targets.copy()
    guess[1, 4] = 1 - guess[1, 4]
    assert score(measure(logits(batch, guess, 2), batch), "last") == 1


def test_nan_is_never_right():
    batch = hand_made()
    wrong = jnp.full((*batch.targets.shape, 2), jnp.nan)
    sums = measure(wrong, batch._replace(targets=np.zeros_like(batch.targets)))
    assert int(sums["correct"]) == 0 and int(sums["exact"]) == 0 and int(sums["scored"]) == 6


def test_what_cannot_be_scored_is_refused():
    batch = hand_made()
    sums = measure(logits(batch, batch.targets, 2), batch)
    with pytest.raises(ValueError, match="'f1'.* token"):
        score(sums, "f1")
    with pytest.raises(ValueError, match="scored"):
        score({name: 0 * value for name, value in sums.items()}, "token")


def data(key):
    return tuple(np.asarray(jax.random.key_data(key)).tolist())


def test_keys_differ_by_meaning_and_by_nothing_else():
    reverse, copy = tasks.parse("reverse_string"), tasks.parse("copy")
    keys = [train_key(seed, step) for seed in range(3) for step in range(3)]
    keys += [make(task, n) for make in (evaluation_key, validation_key) for task in (reverse, copy) for n in (4, 5)]
    assert len({data(key) for key in keys}) == len(keys)
    assert data(evaluation_key(copy, 4)) == data(evaluation_key(tasks.parse("copy(symbols=100)"), 4))
    assert data(evaluation_key(copy, 4)) != data(evaluation_key(tasks.parse("copy(symbols=99)"), 4))
    assert data(jax.jit(lambda n: evaluation_key(copy, n))(4)) == data(evaluation_key(copy, 4))
    assert data(jax.jit(train_key)(2, 3)) == data(train_key(2, 3))


def test_the_text_in_a_key_has_every_setting():
    assert full(tasks.parse("token_k_back")) == "token_k_back(k=1, symbols=16)"
    assert tasks.parse(full(tasks.parse("flip_flop(p=0.1)"))) == tasks.parse("flip_flop(p=0.1)")


def test_another_process_meets_the_same_test_set():
    """Two processes salt `hash` differently; the key must not notice."""
    code = (
        "import jax; from posenc import tasks; from posenc.lab.tasks.measure import evaluation_key as k;"
        "print(tuple(jax.random.key_data(k(tasks.parse('copy'), 4)).tolist()))"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == str(data(evaluation_key(tasks.parse("copy"), 4)))
