"""Blocks of sequences and of heads are the whole square, in output and every gradient, on a processor alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Prefix, attend
from posenc.attention import kernels
from posenc.attention.kernels import blocks
from tests.effort import LITTLE, MUCH
from tests.jaxprs import equations, largest
from tests.kernels.test_equal import SEGMENTS, H, Problem
from tests.planting import Fault
from tests.planting import plant as plant  # a fixture

B, L = 6, 13
SQUARE = L * L
DROPOUT = {"dropout": 0.3, "dropout_key": jax.random.key(7)}
BLOCKS = "posenc.attention.kernels.blocks:"


@pytest.fixture(autouse=True)
def few_scores(monkeypatch):
    """Blocks from the first token on, each of one sequence for each device."""
    monkeypatch.setattr(blocks, "LONG", 1)
    monkeypatch.setattr(blocks, "SCORES", H * SQUARE)
    monkeypatch.setattr(kernels, "block", lambda queries, keys: 5)


class Sequences(Problem):
    """The same scheme on sequences that differ."""

    def __init__(self, text, groups=None):
        super().__init__(text, L, groups=groups)
        more = np.random.default_rng(8).normal(size=(B, 1, 1, 1))
        self.arrays = [a * (more if a.ndim == 3 else more[..., 0]) for a in self.arrays]
        self.weight = np.random.default_rng(9).normal(size=(B, *self.weight.shape))


HOOKS = ("rope", "t5", "fire", "shaw", "stick_breaking", "fox", "dape", "learned + ssmax + kerple")
"""Schemes without a score, by distance, with `value_bias`, with `normalize`, by content, and of all heads at once."""
CASES = {
    "packed, an array, dropout": {
        "segments": np.stack([SEGMENTS, *[np.ones(L, np.int32)] * (B - 1)]),
        "mask": np.random.default_rng(3).random((B, L, L)) < 0.7,
        **DROPOUT,
    },
    "a prefix for each, a cap": {"mask": Prefix(np.arange(B)), "cap": 0.8},
    "sinks, dropout": {"sinks": np.array([0.5, -1.0, 2.0, 0.0]), **DROPOUT},
}


@pytest.mark.parametrize("squares", [1, H], ids=["heads", "sequences"])
@pytest.mark.parametrize("text", HOOKS)
def test_every_hook_gives_what_it_gives_at_once(text, squares, x64, monkeypatch):
    monkeypatch.setattr(blocks, "SCORES", squares * SQUARE)
    Sequences(text).agrees("auto", **DROPOUT)


@pytest.mark.parametrize("squares", [1, H], ids=["heads", "sequences"])
@pytest.mark.parametrize("case", CASES)
def test_masks_documents_and_draws_are_those_of_the_whole(case, squares, x64, monkeypatch):
    monkeypatch.setattr(blocks, "SCORES", squares * SQUARE)
    Sequences("alibi", groups=2 if squares == H else None).agrees("auto", **CASES[case])


@pytest.mark.parametrize(("text", "kernel"), [("t5", "tiled"), ("cope", "rows")])
def test_tiles_and_rows_go_by_blocks_of_sequences(text, kernel, x64, monkeypatch):
    monkeypatch.setattr(blocks, "SCORES", 5 * L)
    Sequences(text).agrees(kernel, **DROPOUT)


def test_gradients_may_be_mapped_and_taken_again(x64):
    problem = Sequences("alibi")
    q, k, v, _ = problem.arrays

    def slopes(kernel):
        loss = lambda q, factor: (attend(problem.scheme, problem.params, q * factor, k, v, kernel=kernel) ** 2).sum()  # noqa: E731
        each = jax.vmap(jax.grad(loss), (None, 0))(q, jnp.array([1.0, 2.0]))
        return each, jax.jvp(lambda q: jax.grad(loss)(q, 1.0), (q,), (k,))

    ours, dense = (jax.jit(slopes, static_argnums=0, compiler_options=MUCH)(kernel) for kernel in ("auto", "dense"))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), ours, dense)


def test_the_first_tokens_of_a_cache_go_by_blocks(x64):
    problem = Sequences("alibi")
    q, k, v, _ = problem.arrays
    dims = posenc.Dims(H * 8, H, 8, trained=16)
    cache = posenc.Cache.empty(problem.scheme, problem.params, dims, batch=B, capacity=L + 2, dtype=q.dtype)
    run = lambda kernel: attend(problem.scheme, problem.params, q, k, v, cache=cache, kernel=kernel)  # noqa: E731
    np.testing.assert_allclose(run("auto")[0], run("dense")[0], atol=1e-12)
    assert loops(lambda: run("auto")[0]) > loops(lambda: run("dense")[0])


FAULTS = {
    "a block takes its neighbours' sequences back": Fault(
        BLOCKS + "_in_blocks", "out.swapaxes(0, 1)", "jnp.roll(out.swapaxes(0, 1), 1, 1)", "nope", "sequences"
    ),
    "a block is put back in another order": Fault(
        BLOCKS + "_in_blocks", "return out.swapaxes(0, 1)", "return out", "nope", "sequences"
    ),
    "heads are numbered from 0 in each block": Fault(
        BLOCKS + "squares", "jnp.arange(form.heads)", "jnp.arange(form.heads) * 0", "alibi + fire", "heads"
    ),
    "a bias of distance is that of the first heads": Fault(
        "posenc.attention.kernels.dense:_bias", "gaps, heads", "gaps, jnp.arange(heads.size)", "alibi", "heads"
    ),
    "a bias of distance is that of one token farther": Fault(
        "posenc.attention.kernels.dense:_bias", "1 - keys, queries", "2 - keys, queries + 1", "t5", "sequences"
    ),
    "heads of a block have the parameters of others": Fault(
        BLOCKS + "squares",
        "head_params, form.sinks",
        "jax.tree.map(jnp.flip, head_params), form.sinks",
        "fire",
        "heads",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name, plant, x64, monkeypatch):
    fault = FAULTS[name]
    monkeypatch.setattr(blocks, "SCORES", SQUARE * (1 if fault.caught == "heads" else H))
    problem = Sequences(fault.scheme)
    plant(fault)
    with pytest.raises(AssertionError, match="Not equal|Mismatch"):
        problem.agrees("auto", **DROPOUT)


def loops(f, *args):
    """How many loops a program has."""
    return sum(str(equation.primitive) == "scan" for equation in equations(jax.make_jaxpr(f)(*args)))


@pytest.mark.parametrize("longest", [1, L * L + 1], ids=["in blocks", "at once"])
def test_a_bias_of_distance_is_computed_for_distances_and_not_for_pairs(longest, x64, monkeypatch):
    monkeypatch.setattr(blocks, "LONG", longest)
    problem = Sequences("sandwich(dim=8)")
    q, k, v, _ = problem.arrays
    run = lambda **how: attend(problem.scheme, problem.params, q, k, v, **how)  # noqa: E731
    cosines = lambda **how: largest("cos", jax.make_jaxpr(lambda: run(**how))())  # noqa: E731
    assert cosines() == (2 * L - 1) * 4  # by no head
    assert cosines(positions=np.arange(L)) >= SQUARE * 4
    assert cosines(kernel="dense") >= SQUARE * 4, "the reference takes each score from the scheme's own hook"


@pytest.mark.parametrize("text", ["kerple", "alibi + t5"])
def test_short_sequences_take_the_bias_of_each_distance_to_the_reference(text, x64, monkeypatch):
    monkeypatch.setattr(blocks, "LONG", L * L + 1)
    Sequences(text, groups=2).agrees("auto", segments=CASES["packed, an array, dropout"]["segments"], **DROPOUT)


def attention(length, kernel):
    q = jax.ShapeDtypeStruct((16, length, 8, 32), np.float32)
    nope = posenc.parse("nope")
    return jax.grad(lambda q: attend(nope, None, q, q, q, kernel=kernel).sum()), q


def test_blocks_are_for_long_texts_on_a_processor(monkeypatch):
    monkeypatch.undo()
    program = lambda length, kernel: str(jax.make_jaxpr(attention(length, kernel)[0])(attention(length, kernel)[1]))  # noqa: E731
    assert loops(*attention(256, "auto")) and not loops(*attention(256, "dense"))
    for length in (16, 64, 128):
        assert program(length, "auto") == program(length, "dense")
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert program(256, "auto") == program(256, "dense")


def test_a_block_is_what_the_cache_holds_and_what_devices_share(monkeypatch):
    monkeypatch.undo()
    for devices, sizes in {1: (2, 1, 5, 7, 1), 2: (4, 2, 10, 7, 2)}.items():
        monkeypatch.setattr(jax, "device_count", lambda devices=devices: devices)
        asked = ((16, 2**19), (16, 2**21), (10, 2**17), (7, 2**16), (6, 2**20))
        assert tuple(blocks.fitting(*each) for each in asked) == sizes


def test_an_attention_takes_half_of_the_memory(monkeypatch):
    monkeypatch.undo()

    def scratch(kernel):
        f, q = attention(256, kernel)
        return jax.jit(f, compiler_options=LITTLE).lower(q).compile().memory_analysis().temp_size_in_bytes

    assert scratch("auto") < scratch("dense") / 2
