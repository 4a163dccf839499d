"""Programs that are compiled ahead are those that are called."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab import compiling
from posenc.lab.compiling import Programs, count_compilations, forget
from posenc.lab.spec.run import Knobs, Run
from posenc.lab.train.ahead import Ahead, Compiler
from posenc.lab.train.lanes import Arrangement, stack
from posenc.lab.train.training import as_arrays, init, program, resolve, segment

SMALL = {"width": 8, "depth": 1, "heads": 2, "hidden": 8, "batch": 4}
SIZES = (4, 8, 12)
HEAVY = {"initial_states", "draw_sizes", "make_batches", "train_segment", "examples", "sums"}


@pytest.mark.ci
@pytest.mark.parametrize(
    ("scheme", "task", "model", "devices"),
    [
        ("t5", "token_k_back(k=2)", "encoder", 1),
        ("learned", "s2s_copy", "encoder_decoder", 2),
        ("rope @ random_sorted(64)", "even_pairs", "decoder", 2),
    ],
)
def test_what_was_compiled_ahead_in_another_thread_is_called(scheme, task, model, devices):
    how = Arrangement("map", devices)
    cell = resolve(Run(scheme=scheme, task=task, model=model, length=8, **SMALL))
    lane = stack([as_arrays(Knobs(seed=seed)) for seed in range(2)], how)
    ahead = Ahead(cell, 2, 16, how, lane, SIZES)
    thread = threading.Thread(target=lambda: [part() for part in ahead.parts.values()])
    thread.start()
    thread.join()
    with count_compilations() as after:
        run = program(cell, 2, 16, how)
        state, _ = run.segment(run.init(lane), lane, 0, 4)
        state, _ = run.segment(state, lane, 2, 4)
        run.evaluate(state, lane, SIZES, [False] * len(SIZES))
    assert not HEAVY & after.each.keys()


def test_programs_that_were_called_are_dropped_and_those_made_ahead_stay():
    f = Programs(lambda k, x: k * x, static=1)
    assert f(2, jnp.ones(3)).tolist() == [2, 2, 2]
    f.lower(3, np.ones(3, np.float32)).compile()
    forget(f)
    with count_compilations() as after:
        f(3, np.ones(3, np.float32))
    assert after.programs == 0
    with count_compilations() as again:
        f(2, jnp.ones(3))
    assert again.programs == 1


def test_a_part_that_has_not_begun_is_taken_back_and_one_that_has_is_waited_for():
    compiler, begun, go, done = Compiler("compiles"), threading.Event(), threading.Event(), []
    compiler.begin("first", {"train": lambda: (begun.set(), go.wait(), done.append("first"))})
    begun.wait()
    compiler.begin("second", {"train": lambda: done.append("second"), "evaluate": lambda: 1 / 0})
    compiler.settle("second", "train")
    assert done == [], "nobody waits for what has not begun"
    go.set()
    compiler.settle("first", "train")
    compiler.settle("second", "evaluate")  # it fails again, and says why, where it is called
    assert done == ["first"]
    compiler.close()


def test_programs_with_options_are_parts_of_others(monkeypatch):
    """As where a checkpoint is read, whose shapes are those of the initial state."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    compiling.options.cache_clear()
    how, cell = Arrangement("map", 1), resolve(Run(scheme="rope", task="token_k_back(k=2)", length=8, **SMALL))
    lane, alone = stack([as_arrays(Knobs())], how), as_arrays(Knobs())
    shapes = jax.eval_shape(program(cell, 2, 16, how).init, lane)
    state = jax.jit(lambda knobs: init(cell, knobs))(alone)
    assert [a.shape[1:] for a in jax.tree.leaves(shapes)] == [a.shape for a in jax.tree.leaves(state)]
    steps = lambda state: segment(cell, 2, state, alone, np.int32(0), np.int32(4))[1]  # noqa: E731
    np.testing.assert_allclose(jax.jit(steps)(state), steps(state), rtol=1e-6)
    compiling.options.cache_clear()


def test_an_option_that_xla_does_not_know_stops_nothing(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)  # where the tests say a level
    compiling.options.cache_clear()
    wanted = (("xla_of_another_version", 1), (compiling.LEVEL, "much"), *compiling.SELDOM)
    assert compiling.options(wanted) == dict(compiling.SELDOM)
    assert Programs(lambda n, x: n * x, 1, wanted=wanted)(3, np.float32(2)) == 6
    compiling.options.cache_clear()
