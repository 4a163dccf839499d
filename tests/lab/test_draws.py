"""What a step of training draws: sizes by the law asked for, and examples that come again where a run has so many."""

import collections
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from posenc.lab.run.plan import evaluated, rehearsed
from posenc.lab.spec.experiment import from_words
from posenc.lab.spec.run import Knobs, Plan, Run
from posenc.lab.spec.toml import from_toml, to_toml
from posenc.lab.tasks import parse
from posenc.lab.tasks.task import TASKS
from posenc.lab.train import evaluation, training
from posenc.lab.train.training import init, resolve, segment
from tests.lab.steps import given_at

ROWS = 20_000


def joint(text, uniform, top, numbers):
    """How often each list of numbers came, over all sizes of a run."""
    run = Run(task=text, model="decoder", length=top, lengths="example", batch=ROWS, uniform=uniform)
    cell = resolve(run)

    def sample(key):
        n = cell.batching.sizes.sample(key, (ROWS,))
        return cell.task.sample(key, n, batch=ROWS, n_max=top).strata

    strata = jax.jit(sample)(jax.random.key(3))
    return collections.Counter(zip(*(np.asarray(strata[name]).tolist() for name in numbers), strict=True))


def p_value(found, weight):
    total = sum(weight.values())
    assert set(found) <= set(weight)
    return chisquare([found[pair] for pair in weight], [ROWS * w / total for w in weight.values()]).pvalue


ALIKE = {
    "addition": (4, ("digits_a", "digits_b")),
    "addition(format='abacus')": (4, ("digits_a", "digits_b")),
    "addition_multi": (3, ("digits_a", "digits_b", "digits_c")),
    "addition_kazemnejad": (7, ("digits_a", "digits_b")),
    "multiplication_abacus": (4, ("digits_a", "digits_b")),
    "bitwise_or": (4, ("bits_a", "bits_b")),
    "minesweeper": (8, ("width", "height")),
    "sort_labels": (4, ("length", "digits")),
}


@pytest.mark.ci
@pytest.mark.parametrize("text", ALIKE)
def test_both_numbers_are_uniform_and_independent_where_a_run_asks_for_it(text):
    top, numbers = ALIKE[text]
    least = parse(text).sizes.smallest
    every = dict.fromkeys(itertools.product(range(least, top + 1), repeat=len(numbers)), 1)
    assert p_value(joint(text, "numbers", top, numbers), every) > 1e-3
    assert p_value(joint(text, "sizes", top, numbers), every) < 1e-9


def test_a_one_among_the_released_bits_is_as_likely_at_each_of_its_places():
    law = {(a, b): min(a, b) for a, b in itertools.product(range(1, 5), repeat=2)}
    assert p_value(joint("bitwise_or(bits='as_released')", "numbers", 4, ("bits_a", "bits_b")), law) > 1e-3


def test_every_size_is_as_likely_where_a_task_draws_it():
    """Also of a task whose sizes go in steps, and where the other number is fixed."""
    for task in ("dyck", "addition(other='same')"):
        cell = resolve(Run(task=task, model="decoder", length=12, shortest=2, uniform="numbers"))
        found = np.bincount(cell.batching.sizes.sample(jax.random.key(0), (ROWS,)), minlength=13)
        legal = [n for n in range(2, 13) if parse(task).sizes.has(n)]
        assert found.sum() == found[legal].sum() and chisquare(found[legal]).pvalue > 1e-3


def test_only_tasks_that_draw_several_numbers_have_several_ways():
    found = {n for n in TASKS.names() if len({parse(n).ways(k) for k in range(*parse(n).sizes.train)}) > 1}
    assert found == {parse(text).name for text in ALIKE}
    assert [parse("addition").ways(n) for n in (1, 2, 3)] == [1, 3, 5]


@pytest.fixture
def met(monkeypatch):
    """`met(run, step)`: the tokens that a step is trained on, and the key of its positions."""
    seen = []
    monkeypatch.setattr(
        training, "cross_entropy", lambda model, given, key, classes: seen.append((given, key)) or model
    )

    def batch(run, step, seed=0):
        cell, n = resolve(run), jnp.int32(step)
        given, shapes = given_at(cell, seed, n)
        training.loss_and_gradient(shapes, jnp.float32(0), Knobs(seed), n, given, 2)
        found, key = seen.pop()
        return tuple(map(tuple, np.asarray(found.inputs.tokens).tolist())), jax.random.key_data(key).tolist()

    return batch


COPY = {"task": "copy", "model": "decoder", "batch": 4, "length": 12, "shortest": 6, "buckets": 3}


@pytest.mark.ci
@pytest.mark.parametrize("lengths", ["step", "example"])
def test_a_set_of_examples_comes_again_in_turn_and_fresh_ones_never_do(met, lengths):
    few, fresh = (Run(**COPY, lengths=lengths, dataset=dataset) for dataset in (8, None))
    tokens, keys = zip(*(met(few, step) for step in range(5)), strict=True)
    assert tokens[0] == tokens[2] == tokens[4] != tokens[1] == tokens[3]
    assert keys[0] != keys[2], "positions and dropout are drawn anew"
    assert met(few, 0, seed=1)[0] != tokens[0]
    assert [met(fresh, step)[0] for step in (0, 1)] == list(tokens[:2]) and met(fresh, 2)[0] not in tokens


@pytest.mark.ci
def test_examples_of_the_set_are_not_evaluated(met):
    cell, rows = resolve(Run(**{**COPY, "length": 6}, dataset=8)), []

    def model(given, key, train):
        rows.extend(map(tuple, np.asarray(given.tokens).tolist()))
        return jnp.zeros((*given.tokens.shape, cell.task.classes))

    with jax.disable_jit():
        for choosing in (False, True):
            batch = evaluation.examples_at(cell.task, 8, (6,), 6, choosing)
            evaluation.examined(cell, model, jnp.uint32(0), (6,), 6, batch)
    trained = {row for step in (0, 1) for row in met(cell.run, step)[0]}
    assert len(trained) == 8 and len(set(rows)) == 16 and not trained & set(rows)


@pytest.mark.ci
def test_a_segment_trains_on_them_too():
    run = Run(task="even_pairs", scheme="rope", width=16, depth=1, heads=2, hidden=16, batch=8, length=6, dataset=16)
    cell, knobs = resolve(run), Knobs(jnp.uint32(0), *map(jnp.float32, (0.0, 0.0, 0.1, 1.0)))
    start = jax.jit(init, static_argnums=0)(cell, knobs)
    _, loss = jax.jit(segment, static_argnums=(0, 1))(cell, 4, start, knobs, jnp.int32(0), jnp.int32(4))
    assert loss[0] == loss[2] != loss[1] == loss[3]


@pytest.mark.parametrize("dataset", [0, -64, 1, 100_000, 64 * 2**25])
def test_a_set_that_fills_no_batches_is_refused(dataset):
    with pytest.raises(ValueError, match=f"dataset is {dataset}.* 64") as told:
        Run(batch=64, dataset=dataset)
    near = int(str(told.value).rstrip(".").split()[-1])
    assert Run(batch=64, dataset=near).dataset == near


@pytest.mark.ci
def test_evaluation_is_as_training_was_only_where_a_run_asks_for_it():
    told = {}
    for way in ("plain", "as_trained"):
        cell = resolve(Run(**COPY, dropout=0.5, evaluation=way))

        def model(given, key, train, cell=cell, way=way):
            told[way] = train
            return jnp.zeros((*given.tokens.shape, cell.task.classes))

        with jax.disable_jit():
            evaluation.examined(cell, model, jnp.uint32(0), (6,), 6, evaluation.examples_at(cell.task, 4, (6,), 6))
    assert told == {"plain": False, "as_trained": True}


@pytest.mark.ci
def test_shifts_that_no_table_holds_where_evaluation_draws_them_are_refused():
    run = {**COPY, "scheme": "learned @ given('coupled', shift=20)", "width": 16, "heads": 2, "longest": 16}
    rehearsed(Run(**run), Plan(sizes=(16,)))
    with pytest.raises(ValueError, match="'learned'"):
        rehearsed(Run(**run, evaluation="as_trained"), Plan(sizes=(16,)))


def test_all_sizes_are_those_beyond_training_up_to_the_largest_evaluated():
    published = resolve(Run(task="parity_check", length=40))
    assert evaluated(published, Plan(sizes="all")) == tuple(range(41, 501))
    brackets = resolve(Run(task="dyck", model="decoder", length=64))
    assert evaluated(brackets, Plan(sizes="all")) == tuple(range(66, 257, 2))
    with pytest.raises(ValueError, match="'all' from 501 on, but 'parity_check' is evaluated to 500; give numbers"):
        evaluated(resolve(Run(task="parity_check", length=500)), Plan(sizes="all"))


def test_all_sizes_may_be_asked_for_in_words_in_toml_and_beside_a_preset():
    made = from_words(["scheme=nope", "sizes=all"], ["dataset=128", "uniform=numbers"])
    assert made.plan.sizes == "all" and (made.runs[0].dataset, made.runs[0].uniform) == (128, "numbers")
    assert from_toml(to_toml(made)) == made
    assert from_words([], ["sizes=all"], preset="ruoss").plan.sizes == "all"
    with pytest.raises(ValueError, match="sizes.*'all'"):
        from_words([], ["sizes=41,all"])
