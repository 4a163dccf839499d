"""Training: lanes are trials, bit for bit on a CPU; lengths cost no compilation; what diverges is a result."""

import contextlib
import dataclasses
import sys
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from posenc.lab.models.transformer import Transformer
from posenc.lab.models.weights import decaying
from posenc.lab.run import plan
from posenc.lab.run.plan import evaluated, rehearsed
from posenc.lab.spec.run import Knobs, Plan, Run
from posenc.lab.tasks import examples
from posenc.lab.tasks.examples import round_length
from posenc.lab.train import batches, evaluation, training
from posenc.lab.train.batches import Examples
from posenc.lab.train.evaluation import SHORT, rounds
from posenc.lab.train.lanes import Arrangement, arrangement, stack
from posenc.lab.train.training import adamw, init, loss_and_gradient, program, pure, rate_at, resolve, segment
from posenc.lab.train.vectors import Packing
from tests.effort import as_for_users

RUN = Run(task="even_pairs", scheme="t5", width=16, depth=1, heads=2, hidden=16, batch=8, length=6, buckets=2)
SIZES = (4, 6, 12)
TASKS = "parity_check", "cycle_navigation", "modular_arithmetic"
"""Of 2 to 8 symbols and 2 to 5 classes, and the last one of odd lengths alone."""
STATIC = {
    training.initial_states: 3,
    batches.draw_sizes: 2,
    batches.make_batches: 4,
    training.train_segment: 2,
    examples.examples: 3,
    evaluation.sums: 2,
}
"""The programs that runs share, and how many of their first arguments are static."""


def lane(seed=0, lr=1e-2):
    return Knobs(jnp.uint32(seed), jnp.float32(lr), jnp.float32(0.01), jnp.float32(0.1), jnp.float32(1.0))


def trained(how, lanes, steps=4, stride=2, cell=None):
    run = program(cell or resolve(RUN), stride, 16, how)
    lanes = stack(lanes, how)
    with contextlib.ExitStack() as patched:
        for f, static in STATIC.items() if cell is None else ():  # for these the bits are compared
            module = sys.modules[f.__module__]
            patched.enter_context(mock.patch.object(module, f.__name__, as_for_users(f, static)))
        state, losses = run.init(lanes), []
        for first in range(0, steps, stride):
            state, loss = run.segment(state, lanes, jnp.int32(first), jnp.int32(steps))
            losses.append(np.asarray(loss))
        sums = run.evaluate(state, lanes, SIZES, [False] * len(SIZES))
    return state, np.concatenate(losses, 1), sums, run


def started(cell):
    return jax.jit(init, static_argnums=0)(cell, lane())


@pytest.fixture(scope="module")
def four():
    return trained(Arrangement("map", 2), [lane(s) for s in range(4)])


def of(tree, n):
    return jax.tree.map(lambda a: np.asarray(a)[n], pure(tree))


@pytest.mark.ci
def test_the_order_and_number_of_trials_change_no_bit(four):
    other = trained(Arrangement("map", 2), [lane(s) for s in (2, 0, 3)])
    jax.tree.map(np.testing.assert_array_equal, of(four[0].model, 2), of(other[0].model, 0))


def compiled():
    """How many programs of each kind this process holds."""
    return {f.__name__: f._cache_size() for f in STATIC}


@pytest.mark.ci
def test_tasks_of_one_shape_share_all_but_what_makes_their_examples():
    before = compiled()
    cells = [resolve(dataclasses.replace(RUN, task=task, scheme="kerple", length=7)) for task in TASKS]
    assert len({cell.step for cell in cells}) == 1
    for cell in cells:
        trained(Arrangement("map", 1), [lane()], cell=cell)
    new = {name: count - before[name] for name, count in compiled().items()}
    assert new.pop("draw_sizes") <= 2, "sizes are odd in one task"
    shared = {"initial_states": 1, "train_segment": 1, "sums": 1}
    assert new == shared | {"make_batches": 3, "examples": 3}


@pytest.mark.ci
def test_states_are_given_up_to_the_next_segment():
    how = Arrangement("map", 1)
    run = program(resolve(RUN), 2, 16, how)
    lanes = stack([lane()], how)
    state = run.init(lanes)
    run.segment(state, lanes, jnp.int32(0), jnp.int32(4))
    assert all(a.is_deleted() for a in jax.tree.leaves(pure(state.model)))


@pytest.mark.ci
@pytest.mark.parametrize("how", [Arrangement("map", 2), Arrangement("map", 1), Arrangement("vmap", 1)], ids=str)
def test_buckets_stay_branches_in_every_arrangement(how):
    cell, lanes, first = resolve(RUN), stack([lane(), lane(1)], how), jnp.int32(0)
    state = jax.eval_shape(program(cell, 2, 16, how).init, lanes)
    draws = batches.draw_sizes(cell.batching.sizes, 2, lanes.seed, first)
    given = batches.batches_of(cell.batching, draws, how)
    arguments = state, lanes, given, first, draws.buckets, jnp.int32(4), jnp.int32(2)
    text = training.train_segment.lower(cell.step, how, *arguments).as_text()
    assert "stablehlo.case" in text, "a batched length would run every bucket"


@pytest.mark.ci
@pytest.mark.parametrize("scheme", ["t5", "rope @ random_sorted(64)", "learned", "alibi"])
def test_a_wider_bucket_changes_neither_loss_nor_gradient(scheme):
    cell = resolve(dataclasses.replace(RUN, scheme=scheme, longest=24))
    model = started(cell).model
    step, given = jnp.int32(3), cell.task.sample(jax.random.key(3), jnp.int32(5), batch=8, n_max=11)
    given, gradient = Examples.of(given), jax.jit(loss_and_gradient, static_argnums=0)
    sizes = [tuple((8, tokens) for _ in jax.tree.leaves(given)) for tokens in (6, 12)]
    tight, wide = (gradient(shapes, model, lane(), step, given, 2) for shapes in sizes)
    np.testing.assert_allclose(tight[0], wide[0], rtol=1e-5)
    for a, b in zip(jax.tree.leaves(pure(tight[1])), jax.tree.leaves(pure(wide[1])), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)


def one(tree):
    """A lane of its own."""
    return jax.tree.map(lambda a: a[None], tree)


@pytest.mark.parametrize("scheme", ["learned", "rope @ random_sorted(7)"])
def test_the_longest_sequence_is_padded_no_further_than_tables_reach(scheme):
    cell = resolve(dataclasses.replace(RUN, scheme=scheme, longest=6))
    assert cell.task.tokens(6) == cell.shape.dims.table == 7 < round_length(7)
    sums = evaluation.evaluate(
        cell, 16, Arrangement("map", 1), one(started(cell).model), jnp.zeros(1, jnp.uint32), (6,), (False,)
    )
    assert sums.rows["rows"].tolist() == [[16]]


@pytest.mark.ci
def test_random_positions_are_drawn_for_each_trial_and_part_of_the_examples(monkeypatch):
    """One draw for a whole size would decide a score, and every seed would share it."""
    seen = []
    real = Transformer.__call__

    def listen(model, inputs, key, **more):
        jax.debug.callback(lambda k: seen.append(tuple(np.asarray(k).tolist())), jax.random.key_data(key))
        return real(model, inputs, key, **more)

    monkeypatch.setattr(Transformer, "__call__", listen)
    cell = resolve(dataclasses.replace(RUN, scheme="rope @ random_sorted(64)", longest=24))
    model = one(started(cell).model)
    for seed in (0, 1):
        for choosing in (False, True):
            how = Arrangement("map", 1)
            evaluation.evaluate(cell, 32, how, model, jnp.full(1, seed, jnp.uint32), (6,), (choosing,))
    jax.effects_barrier()
    assert len(seen) == 4 * evaluation.DRAWS and len(set(seen)) == len(seen)


def parts_of(**change):
    """How many of 256 examples of 600 tokens are evaluated at once, under a scheme of two heads."""
    return evaluation.counting(resolve(dataclasses.replace(RUN, **change)), 256, 600).each


def test_what_is_drawn_for_each_part_of_the_examples_keeps_its_parts(monkeypatch):
    """The parts decide what is drawn, so that those of older records must stay."""
    drawn = parts_of(scheme="rope @ random_sorted(2048)"), parts_of(evaluation="as_trained")
    monkeypatch.setattr(evaluation, "SCORES", 2**20)
    assert drawn == (parts_of(scheme="rope @ random_sorted(2048)"), parts_of(evaluation="as_trained")) == (16, 16)
    assert parts_of() == 1


@pytest.mark.ci
def test_a_trial_whose_last_step_spoils_it_has_diverged():
    """The loss before an update may be fine and the update not."""
    cell = resolve(RUN)
    state = started(cell)
    knobs = lane()._replace(clip=jnp.float32(jnp.nan))
    spoiled, losses = jax.jit(segment, static_argnums=(0, 1))(cell, 1, state, knobs, jnp.int32(0), jnp.int32(1))
    assert np.isfinite(losses).all() and int(spoiled.diverged) == 0


@pytest.mark.ci
def test_one_diverging_trial_is_recorded_and_leaves_its_neighbours_alone(four):
    mixed = trained(Arrangement("map", 2), [lane(0), lane(1, lr=1e30), lane(2)], steps=4)
    diverged = np.asarray(mixed[0].diverged)
    assert diverged[1] >= 0 and diverged[0] == diverged[2] == -1
    for n in (0, 2):
        jax.tree.map(np.testing.assert_array_equal, of(four[0].model, n), of(mixed[0].model, n))


@pytest.mark.ci
def test_lengths_per_example_train_too():
    cell = resolve(dataclasses.replace(RUN, lengths="example"))
    assert np.isfinite(trained(Arrangement("map", 1), [lane()], steps=2, cell=cell)[1]).all()


def test_the_learning_rate_rises_then_falls_as_named():
    knobs = lane(lr=1.0)._replace(warmup=jnp.float32(0.2))
    rate = {
        s: [float(rate_at(s, knobs, jnp.int32(n), jnp.int32(10))) for n in range(10)]
        for s in ("cosine", "linear", "constant")
    }
    for curve in rate.values():
        np.testing.assert_allclose(curve[:2], [0.5, 1.0], rtol=1e-6)
    np.testing.assert_allclose(rate["constant"][2:], 1.0)
    np.testing.assert_allclose(rate["linear"][2:], 1 - np.arange(8) / 8, rtol=1e-6)
    np.testing.assert_allclose(rate["cosine"][2:], 0.1 + 0.45 * (1 + np.cos(np.pi * np.arange(8) / 8)), rtol=1e-5)


@pytest.mark.ci
def test_weight_decay_spares_positions_norms_and_what_is_shared():
    cell = resolve(RUN)
    model = started(cell).model
    still = jax.tree.map(jnp.zeros_like, model)
    optimiser, packing = adamw(lane()._replace(weight_decay=jnp.float32(0.5)), 0.1), Packing.of(model)
    vectors, still = packing.pack(model), packing.pack(still)
    update = packing.unpack(optimiser.update(still, optimiser.init(vectors), vectors)[0])
    change = {jax.tree_util.keystr(path): np.abs(a).max() for path, a in jax.tree.leaves_with_path(pure(update))}
    spared = {"['blocks'][0]['scales']", "['scale']", "['tied']['t5(bidirectional=True)']['heads']['table']"}
    assert {path for path, size in change.items() if size == 0} == spared and len(change) == len(spared) + 7


def test_steps_on_vectors_are_those_of_optax_on_each_array():
    cell, knobs = resolve(RUN), lane()._replace(weight_decay=jnp.float32(0.5), clip=jnp.float32(0.1))
    model = started(cell).model
    packing = Packing.of(model)
    plain = optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(0.1, weight_decay=0.5, mask=decaying(model)))
    ours, vectors = adamw(knobs, 0.1), packing.pack(model)
    assert jax.tree.all(jax.tree.map(np.array_equal, packing.unpack(vectors), model))
    state, moments = plain.init(model), ours.init(vectors)

    @jax.jit
    def step(n, model, state, vectors, moments):
        gradient = jax.tree.map(lambda a: jnp.cos(n + jnp.arange(a.size, dtype=a.dtype)).reshape(a.shape), model)
        update, state = plain.update(gradient, state, model)
        change, moments = ours.update(packing.pack(gradient), moments, vectors)
        return optax.apply_updates(model, update), state, optax.apply_updates(vectors, change), moments

    for n in range(3):
        model, state, vectors, moments = step(np.float32(n), model, state, vectors, moments)
    for a, b in zip(jax.tree.leaves(packing.unpack(vectors)), jax.tree.leaves(model), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "losses"),
    [
        ({"scheme": "rope"}, [0.7418926, 0.6203437, 3.3242261, 1.3827738]),
        (
            {"scheme": "sinusoidal + [t5, rope @ random_sorted(64, resample='layer')]", "norm": "post"},
            [0.8028098, 0.5426636, 2.6798072, 1.2305534],
        ),
        ({"scheme": "learned + t5", "model": "decoder", "task": "copy"}, [5.0798454, 5.1358109, 5.0345912, 4.9161644]),
    ],
)
def test_a_transformer_trains_as_before_there_were_other_models(change, losses):
    """Recorded before attention by other scores and dropout: at their defaults they change nothing."""
    run = {"task": "even_pairs", "width": 16, "depth": 2, "heads": 2, "batch": 8, "length": 6, "buckets": 2}
    cell = resolve(Run(**{**run, **change}))
    knobs = lane()._replace(weight_decay=jnp.float32(0.1))
    start = jax.jit(init, static_argnums=0)(cell, knobs)
    _, found = jax.jit(segment, static_argnums=(0, 1))(cell, 4, start, knobs, jnp.int32(0), jnp.int32(4))
    np.testing.assert_allclose(found, losses, rtol=2e-4)


def test_buckets_cover_the_sizes_trained_on():
    wanted = [("even_pairs", *one) for one in ((40, 1, 5), (16, 4, 1), (7, 3, 3), (5, 5, 5), (40, 8, 64))]
    for task, length, shortest, buckets in [*wanted, ("dyck", 40, 2, 4), ("dyck", 40, 8, 64)]:
        cell = resolve(Run(task=task, model="decoder", length=length, shortest=shortest, buckets=buckets))
        found = cell.batching.sizes.edges
        assert found[-1] == length and found[0] >= shortest and len(found) <= buckets and list(found) == sorted(found)
        assert all(map(cell.task.sizes.has, found))


@pytest.mark.parametrize("lengths", ["step", "example"])
def test_sizes_trained_on_are_those_of_the_task(lengths):
    cell = resolve(Run(task="dyck", model="decoder", lengths=lengths, batch=4, length=10, buckets=3))
    drawn = jax.jit(jax.vmap(lambda n: (cell.batching.sizes.size(jnp.uint32(0), n), cell.batching.sizes.bucket(n))))
    sizes, buckets = drawn(jnp.arange(200))
    assert set(np.ravel(sizes).tolist()) == {2, 4, 6, 8, 10}
    padded = np.array(cell.batching.sizes.edges)[buckets]
    assert (padded >= sizes.reshape(200, -1).max(1)).all()


def test_sizes_evaluated_are_those_of_the_task():
    cell = resolve(Run(task="flip_flop", model="decoder", length=10))
    assert evaluated(cell, Plan()) == (4, 10, 12, 14, 20, 30, 40), "where others have 5, 13 and 15"
    cell = resolve(Run(task="dyck", model="decoder", length=10))
    assert evaluated(cell, Plan()) == (2, 4, 8, 10, 12, 14, 20, 30, 40), "and 3"
    every = (4, 8, 12, 16, 20, 24, 32, 48, 64)
    for shortest, left_out in ((None, set()), (6, {4}), (13, {4, 12})):  # what is not trained on shows less
        cell = resolve(Run(task="reverse_string", length=16, shortest=shortest))
        assert evaluated(cell, Plan()) == tuple(n for n in every if n not in left_out)


def test_few_evaluation_programs_serve_all_sizes():
    cell = resolve(RUN)
    for sizes in ((4, 6, 12), (8, 16, 20, 24, 32, 48, 64), (41, 500), (10, 100, 130, 390, 400)):
        padded = rounds(cell.task, sizes)
        assert padded[-1] == max(sizes)
        for n in sizes:
            room = min(p for p in padded if p >= n)
            assert cell.task.tokens(room) <= max(SHORT, 3 * cell.task.tokens(n))


def test_scores_start_alike_whatever_the_scheme_scales_by():
    from posenc.core.compose import normal_form

    std = {}
    for scheme in ("t5", "rope"):
        cell = resolve(dataclasses.replace(RUN, scheme=scheme))
        query = np.asarray(pure(started(cell).model)["blocks"][0]["attention"]["query"])
        std[scheme] = query.std() * normal_form(cell.scheme).scheme.scale(cell.shape.dims.head)
    np.testing.assert_allclose(std["t5"], std["rope"], rtol=1e-6)


@pytest.mark.parametrize(("asked", "says"), [("maps", "vmap"), ("vmap:99", "1 to")])
def test_an_arrangement_that_cannot_be_is_refused(asked, says):
    with pytest.raises(ValueError, match=says):
        arrangement(asked)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"scheme": "[rope, nope]"}, r"depth=1.* 2 .*\[rope, nope\]"),
        ({"scheme": "rope", "width": 6, "heads": 2}, "pairs"),
        ({"task": "copy", "model": "encoder"}, "causal"),
        ({"length": 1, "task": "token_at_index(indices=8)"}, "at least 8"),
        ({"scheme": "fox"}, "causal"),
        ({"length": 10**6}, "GiB"),
        ({"task": f"token_k_back(symbols={2**24})", "width": 4096}, "16777217.*GiB"),
        ({"task": f"token_k_back(symbols={2**20})", "batch": 2**16}, "1048576.*GiB"),
    ],
)
def test_a_cell_that_cannot_run_is_refused_before_anything_trains(change, says):
    with pytest.raises(ValueError, match=says):
        rehearsed(dataclasses.replace(RUN, **change), Plan(sizes=SIZES))


@pytest.mark.guard
@pytest.mark.parametrize(
    ("task", "usual"),
    [("copy", "decoder"), ("reverse_string", "encoder"), ("before", "encoder"), ("s2s_copy", "encoder_decoder")],
)
def test_a_run_without_a_model_takes_the_one_that_its_task_allows(task, usual):
    open, named = (resolve(Run(task=task, model=model, length=8, scheme="nope")) for model in (None, usual))
    assert open.run.model == usual and open == named
    assert plan.identity(open, Knobs(), 5) == plan.identity(named, Knobs(), 5)
