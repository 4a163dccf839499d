"""What decides the programs of a sweep: what a task need not decide does not, and what was compiled is counted."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.compiling import count_compilations
from posenc.lab.run import trainer
from posenc.lab.run.plan import group_by_program
from posenc.lab.run.sweep import programs, sweep
from posenc.lab.spec.experiment import Experiment, grid
from posenc.lab.spec.run import Plan, Run
from posenc.lab.tasks.examples import ROWS, examples
from posenc.lab.tasks.floors import floors
from posenc.lab.tasks.measure import evaluation_key
from posenc.lab.train import evaluation, training
from posenc.lab.train.batches import batches_of, draw_sizes
from posenc.lab.train.lanes import Arrangement
from posenc.lab.train.shapes import endless
from posenc.lab.train.training import resolve
from posenc.naming import bind, parse
from tests.lab.test_sweep import PLAN, Watch
from tests.lab.test_train import started
from tests.tasks.task_checks import same_examples

RUN = Run(task="even_pairs", scheme="rope", width=16, depth=1, heads=2, hidden=16, batch=8, length=8, buckets=2)
OFFERING = dataclasses.replace(RUN, task="addition(format='abacus')", model="decoder", length=4)
"""A task that offers coordinates."""


def run(**change):
    return resolve(dataclasses.replace(RUN, **change))


def offered_by(cell):
    return [*jax.eval_shape(lambda: cell.task.sample(jax.random.key(0), 4, batch=2, n_max=4)).coords]


def coordinates_of_batches(cell):
    """What a step is given, without making it."""

    def batch():
        draws = draw_sizes(cell.batching.sizes, 1, jnp.zeros(1, jnp.uint32), jnp.int32(0))
        return batches_of(cell.batching, draws, Arrangement("map", 1)).reading(cell.step.coordinates)

    return [*jax.eval_shape(batch).inputs.coords]


def test_coordinates_that_a_scheme_does_not_read_are_no_part_of_a_step():
    plain = resolve(OFFERING)
    assert offered_by(plain) and plain.step.coordinates == ()
    assert coordinates_of_batches(plain) == []


@pytest.mark.parametrize("scheme", ["learned @ given({!r})", "rope_2d @ axes('index', {!r})"])
def test_coordinates_that_a_scheme_reads_are(scheme):
    (name, *_) = offered_by(resolve(OFFERING))
    reader = resolve(dataclasses.replace(OFFERING, scheme=scheme.format(name)))
    assert reader.step.coordinates == (name,) and coordinates_of_batches(reader) == [name]


def test_tasks_whose_longest_examples_differ_share_a_step_unless_the_scheme_has_a_table():
    tasks = ("even_pairs", "modular_arithmetic", "cycle_navigation")
    assert len({run(task=task, length=7).step for task in tasks}) == 1
    assert len({run(task=task, length=7, scheme="learned").step for task in tasks}) == 2


def test_schemes_that_take_any_length_are_known():
    limited = "learned", "shaw(3) + learned", "rope @ random_sorted(99)", "[rope, xpos]"
    texts = (*limited, "nope", "rope + alibi", "sinusoidal + [kerple, cope]")
    assert {text for text in texts if not endless(bind(parse(text), run().shape.dims))} == {*limited}


def test_groups_of_equal_programs_follow_one_another():
    tasks = ("even_pairs", "parity_check")
    runs = {f"{s} {t}": run(scheme=s, task=t) for t in tasks for s in ("rope", "alibi")}
    ordered = [next(name for name in runs if runs[name] is one) for one in group_by_program([*runs.values()], 10)]
    assert list(runs) != ordered == ["rope even_pairs", "rope parity_check", *(f"alibi {t}" for t in tasks)]


def test_programs_of_a_sweep_are_schemes_and_tasks_and_not_their_product():
    tasks, plan = ("even_pairs", "parity_check", "cycle_navigation"), Plan(steps=10)
    many = programs((run(scheme=s, task=t) for t in tasks for s in ("rope", "alibi", "nope")), plan)
    kinds = [kind for kind, *_ in many]
    assert {k: kinds.count(k) for k in kinds} == {
        "steps": 3, "initial": 3, "sums": 6, "batches": 3, "examples": 3, "sizes": 1
    }  # fmt: skip


@pytest.mark.ci
def test_a_sweep_holds_the_programs_of_one_scheme_at_a_time(tmp_path, monkeypatch):
    small = dataclasses.replace(RUN, width=8, hidden=8, batch=4, length=4)
    runs = grid(small, scheme=["nope", "kerple"], task=["even_pairs", "parity_check"])
    monkeypatch.setattr(trainer, "forget_programs", training.forget_programs)
    for shared in (training.train_segment, training.initial_states, evaluation.sums):
        shared.clear_cache()
    assert sweep(Experiment("tiny", runs, PLAN), tmp_path / "one", watch=Watch()) == 0
    assert [f._cache_size() for f in (training.train_segment, training.initial_states, evaluation.sums)] == [1, 1, 1]


@pytest.mark.ci
def test_one_program_makes_the_examples_of_all_sizes_and_of_the_floors():
    task, sizes = tasks.parse("copy(symbols=2)"), (4, 150, 600)
    assert len(evaluation.rounds(task, sizes)) > 1, "examples of short sizes have less padding"
    examples.clear_cache()
    floors(task, sizes, rows=ROWS)
    given = [evaluation.examples_at(task, ROWS, sizes, n) for n in sizes]
    assert examples._cache_size() == 1
    for n, batch in zip(sizes, given, strict=True):
        room = next(most for most in evaluation.rounds(task, sizes) if most >= n)
        same_examples(batch, examples(task, ROWS, room, evaluation_key(task, n), jnp.int32(n)))


def test_sizes_of_many_tokens_are_not_padded_where_nothing_is_drawn(monkeypatch):
    small = dataclasses.replace(RUN, task="copy(symbols=2)", model="decoder", width=8, hidden=8, length=4)
    sizes = (4, 63, 90)
    for scheme, lengths in (("alibi", [11, 129, 183]), ("alibi @ random_sorted(400)", [11, 183, 183])):
        cell = resolve(dataclasses.replace(small, scheme=scheme))
        batches = [evaluation.examples_at(cell.task, 2, sizes, n) for n in sizes]
        own = [evaluation.own_tokens(cell, sizes, n, batch) for n, batch in zip(sizes, batches, strict=True)]
        assert [batch.tokens.shape[1] for batch in own] == lengths
        sums = [key for key in evaluation.programs(cell, 2, sizes) if key[0] == "sums"]
        assert len(sums) == len({*lengths})
        short = [(4, 8), (8, 8), (20, 40), (40, 40)] if lengths[1] == 129 else [(4, 40), (40, 40)]
        assert all(evaluation.own_size(cell, (4, 8, 20, 40), n) == to for n, to in short)
    cell = resolve(dataclasses.replace(small, scheme="alibi"))
    model, batch = started(cell).model, evaluation.examples_at(cell.task, 2, sizes, 63)
    count = lambda: evaluation.examined(cell, model, jnp.uint32(0), sizes, 63, batch)  # noqa: E731
    apart = count()
    monkeypatch.setattr(evaluation, "own_tokens", lambda resolved, sizes, n, batch: batch)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), apart, count())


def test_floors_are_made_of_as_many_examples_at_once_as_a_sweep_evaluates():
    assert Plan().rows == ROWS


def test_what_is_compiled_is_counted_in_each_block_around_it():
    with count_compilations() as outer:
        with count_compilations() as first:
            jax.jit(lambda x: jnp.sin(x) * 3)(jnp.ones(3))
        jax.jit(lambda x: jnp.cos(x) * 4)(jnp.ones(5))
    jax.jit(lambda x: jnp.tan(x) * 5)(jnp.ones(7))
    assert 0 < first.programs < outer.programs and 0 < first.seconds < outer.seconds
    assert set(outer.as_record()) == {"programs", "kept", "seconds"}
