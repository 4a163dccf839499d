"""Every example is what its task says, whatever the size, the padding and the way of calling."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.tasks.task import Layout
from posenc.language.registry import settings
from tests.night import by_day
from tests.tasks.moves import FIXED, MOVES
from tests.tasks.task_checks import (
    QUICK,
    ROWS,
    agrees_with_its_oracle,
    does_not_leak,
    is_well_formed,
    known,
    moves_without_a_change,
    rows,
    same_examples,
    some_sizes,
)

SAMPLES = 3000
DAILY = 600
SOME = 50  # by day, where every row is asked about again


@pytest.mark.parametrize("many", by_day([DAILY, SAMPLES], [DAILY]))
def test_targets_are_what_an_independent_oracle_says(text, draw, many):
    """At least as many examples, spread over sizes: tasks with fewer than six sizes give more of each."""
    sizes = some_sizes(draw.task)
    each = -(-many // len(sizes))
    for n in sizes:
        for first in range(0, each, ROWS):
            batch = draw(n, first // ROWS)
            batch = jax.tree.map(lambda leaf, rows=each - first: leaf[:rows], batch)
            agrees_with_its_oracle(draw.task, batch)
            assert (batch.size == n).all() and len(batch.size) == min(ROWS, each - first)


def test_batches_are_well_formed_and_leak_nothing(text, draw):
    for n in some_sizes(draw.task):
        is_well_formed(draw.task, draw(n))
        does_not_leak(draw.task, draw(n))


MANY = pytest.mark.parametrize("many", by_day([SOME, SAMPLES], [SOME]))


def at_training(draw, many):
    """Batches of the largest size trained on that have so many rows together."""
    for seed in range(-(-many // ROWS)):
        yield jax.tree.map(lambda leaf: leaf[:many], draw(draw.task.sizes.train[1], seed))


@MANY
def test_moving_what_does_not_matter_changes_no_answer(text, draw, many):
    if draw.task.name in FIXED:
        pytest.skip(FIXED[draw.task.name])
    moved = sum(moves_without_a_change(draw.task, batch) for batch in at_training(draw, many))
    assert moved > many / 5, "hardly any prompt was rearranged"


@pytest.mark.guard
def test_every_task_says_what_may_be_moved_or_why_nothing_may(name):
    assert (name in MOVES) != (name in FIXED)
    assert name not in FIXED or FIXED[name].endswith(".")


@MANY
def test_what_decides_an_answer_was_read_before_it(text, draw, many):
    """Also where answers stand among the tokens: a prompt that ends with the token after the one that asks, since that
    may be part of the question, has the same answers so far."""
    if "causal" not in draw.task.directions:
        pytest.skip("It is read in both directions.")
    rng = np.random.default_rng(8)
    for batch in at_training(draw, many):
        if draw.task.layout is not Layout.TOKENS:
            index = np.arange(batch.score.shape[1])[None, :]
            assert (np.where(batch.prompt, index, -1).max(axis=1) <= batch.score.argmax(axis=1)).all()
            continue
        asked = batch.score.any(axis=1)  # some words of `dyck(full=True)` are never deep enough to ask anything
        batch = jax.tree.map(lambda leaf, asked=asked: leaf[asked], batch)
        assert asked.mean() > 0.5
        for (prompt, scored), score in zip(rows(batch), batch.score, strict=True):
            seen = rng.integers(len(scored)) + 1
            last = np.flatnonzero(score)[seen - 1]
            assert draw.task.answer(prompt[: last + 2])[:seen] == known(draw.task, scored)[:seen], (prompt, last)


def test_one_compilation_serves_every_size(text, draw):
    for n in some_sizes(draw.task):
        draw(n)
    assert draw.traces == 1


@pytest.mark.ci
def test_an_example_depends_neither_on_its_padding_nor_on_vmap(text, draw):
    n = some_sizes(draw.task)[:3][-1]  # at smaller ones some tasks have one example only
    short = functools.partial(draw.task.sample, batch=draw.rows, n_max=n)
    keys = jax.vmap(jax.random.key)(np.arange(2))
    together = jax.device_get(jax.jit(jax.vmap(short, (0, None)), compiler_options=QUICK)(keys, np.int32(n)))
    for seed in range(2):
        same_examples(jax.tree.map(lambda leaf, seed=seed: leaf[seed], together), draw(n, seed))
    assert (together.tokens[0] != together.tokens[1]).any(), "the keys made no difference"


def test_neighbouring_sizes_are_two_sizes(text, draw):
    """What is asked for at a size is of that size, not of one made even: `modular_arithmetic` alone is made odd."""
    smallest, step = draw.task.sizes.smallest, draw.task.sizes.step
    low, high = (min(smallest + n * step, draw.n_max) for n in (2, 3))
    alike = (draw(low).tokens == draw(high).tokens).all() and (draw(low).targets == draw(high).targets).all()
    assert alike == (draw.task.name == "modular_arithmetic")


def test_types_are_stated_and_do_not_follow_the_64_bit_switch(text, draw):
    n = draw.task.sizes.smallest
    with jax.enable_x64(True):
        wide = jax.eval_shape(lambda: draw.task.sample(jax.random.key(0), n, batch=3, n_max=n))
    for batch in (wide, draw(n)):
        kinds = {name: leaf.dtype for name, leaf in batch._asdict().items() if hasattr(leaf, "dtype")}
        kinds |= {name: leaf.dtype for name, leaf in (batch.coords | batch.strata).items()}
        flags = dict.fromkeys(("score", "valid", "prompt", "source_valid"), jnp.bool_) | {"weight": jnp.float32}
        assert kinds == {name: flags.get(name, jnp.int32) for name in kinds}


@pytest.mark.ci
@pytest.mark.parametrize("mixed", ["token_at_index(indices=3)", "copy(variant='random_twice')", "flip_flop"])
def test_sizes_may_differ_from_row_to_row(mixed):
    task = tasks.parse(mixed)
    n = task.sizes.below(task.sizes.smallest + np.arange(40, dtype=np.int32) % 9)
    batch = jax.device_get(task.sample(jax.random.key(1), n, batch=40, n_max=task.sizes.smallest + 10))
    is_well_formed(task, batch)
    agrees_with_its_oracle(task, batch)
    np.testing.assert_array_equal(batch.size, n)


@pytest.mark.guard
def test_what_a_task_declares_is_consistent(text):
    task = tasks.parse(text)
    low, high = task.sizes.train
    assert task.sizes.smallest <= low <= high and task.sizes.validation[-1] == high
    assert all(low <= n <= high for n in task.sizes.validation)
    assert all(map(task.sizes.has, (low, high, *task.sizes.validation, *task.sizes.evaluation)))
    assert all(n >= high for n in task.sizes.evaluation)
    assert [task.tokens(n) for n in (low, high)] == sorted(task.tokens(n) for n in (low, high))
    assert task.directions <= {"causal", "bidirectional"} and task.directions
    assert task.choices <= task.classes and task.alphabet + len(task.layout.specials) == task.vocab
    assert isinstance(hash(task), int) and settings(task) == settings(tasks.parse(tasks.spec(task)))


def test_sizes_up_to_a_length():
    sizes = tasks.parse("token_k_back(k=3)").sizes
    assert sizes.upto(16).train == (4, 16) and sizes.upto(16).validation == (7, 10, 13, 16)
    assert sizes.upto(64).evaluation == (96, 128, 256, 512)
    assert tasks.parse("token_at_index(indices=8)").sizes.upto(16).train == (8, 16)
    assert tasks.parse("flip_flop").sizes.upto(64).train == (64, 64)
    assert tasks.parse("before").sizes.upto(7, 4).train == (4, 7), "below the sizes published, but legal"
    assert tasks.parse("dyck").sizes.upto(40).validation == (12, 20, 30, 40), "21 and 31 are no sizes of it"
