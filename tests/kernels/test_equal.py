"""Every kernel is the dense one, in output and every gradient, for every scheme; and only the dense one makes a square.

Blocks are made small, so that short sequences have whole tiles, cut ones and empty ones.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import posenc
from posenc import Dims, Window, attend
from posenc.attention import kernels
from posenc.attention.kernels import tiled
from posenc.attention.kernels.form import Pairs, Side, count_visible
from posenc.core.masks import sees
from tests.effort import LITTLE
from tests.jaxprs import equations
from tests.night import by_day

H, D, WIDTH = 4, 8, 32
SEGMENTS = np.array([0, 0, 1, 1, 1, 0, 1, 2, 2, 3, 3, 3, 0], np.int32)
REAL = np.array([0, 3, 1, 1, 7, 2, 30, 5, 5, 4, 9, 11, 12], np.int32)
TYPICAL = ("rope", "alibi", "t5", "kerple", "fire", "shaw", "transformer_xl", "fox")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(kernels, "block", lambda queries, keys: 4)
    monkeypatch.setattr("posenc.attention.kernels.band.STRIP", 2)


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


class Problem:
    """A scheme with parameters away from where they start, and inputs in float64."""

    def __init__(self, text, length=13, keys=None, groups=None, causal=True, dtype=np.float64):
        dims = Dims(WIDTH, H, D, trained=16, longest=64, key_heads=groups, causal=causal)
        self.scheme, self.length = posenc.bind(posenc.parse(text), dims), length
        start = posenc.init(self.scheme, jax.random.key(0), dims)
        self.params = jax.tree.map(lambda a: np.asarray(a + 0.1 * drawn(*a.shape), dtype), start)
        keys, groups = keys or length, groups or H
        self.arrays = [drawn(length, H, D), drawn(keys, groups, D, seed=1), drawn(keys, groups, D, seed=2)]
        self.arrays = [a.astype(dtype) for a in (*self.arrays, drawn(length, WIDTH, seed=3))]
        self.weight = drawn(length, H, D, seed=4)

    def run(self, kernel, **about):
        """The output, and the gradients of ⟨weight, output⟩."""

        def loss(params, q, k, v, x):
            out = attend(self.scheme, params, q, k, v, x=x, kernel=kernel, **about)
            return (out * self.weight.astype(out.dtype)).sum(), out

        f = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3, 4), has_aux=True), compiler_options=LITTLE)
        return jax.device_get(f(self.params, *self.arrays))

    def agrees(self, kernel, tolerance=1e-9, **about):
        ours, dense = self.run(kernel, **about), self.run("dense", **about)
        jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=0, atol=tolerance), ours, dense)


BY_DAY = {
    *TYPICAL,
    *"cope dape stick_breaking vo_rope selective_rope deberta grape_m rerope sandwich path wall".split(),
}
"""One of each way to enter attention; every scheme takes its turn at night."""
NAMES = by_day(posenc.names(), BY_DAY)


def served(text, kernel):
    return not kernels.serves(posenc.bind(posenc.parse(text), Dims(WIDTH, H, D, 16)))[kernel]


@pytest.mark.parametrize("name", NAMES)
def test_every_scheme_is_the_dense_one(name, x64):
    problem = Problem(name)
    if served(name, "tiled"):
        problem.agrees("tiled")
        return
    problem.agrees("rows")
    with pytest.raises(ValueError, match="kernel='rows'"):
        problem.run("tiled")


@pytest.mark.nightly
@pytest.mark.parametrize("name", posenc.names())
def test_blocks_of_rows_serve_every_scheme(name, x64):
    Problem(name).agrees("rows")


HARD = {
    "packed": {"segments": SEGMENTS},
    "packed and placed": {"segments": SEGMENTS, "positions": REAL},
    "a window": {"mask": Window(5, 0)},
    "a window of one": {"mask": Window(0, 0)},
    "both ways": {"mask": "full"},
    "both ways in a window": {"mask": Window(3, 6), "segments": SEGMENTS},
    "all ahead": {"mask": Window(0, None)},
}


def causal(about):
    mask = about.get("mask", "causal")
    return mask == "causal" or getattr(mask, "right", 1) == 0


def hard():
    for name in posenc.names():
        late = () if name in ("t5", "shaw", "stick_breaking") else pytest.mark.nightly
        for case, about in HARD.items():
            if causal(about) or "bidirectional" not in posenc.parse(name).limits:
                yield pytest.param(name, about, id=f"{name}-{case}", marks=late)


@pytest.mark.parametrize(("name", "about"), list(hard()))
def test_masks_documents_and_positions(name, about, x64):
    if posenc.parse(name).axes > 1 and "positions" in about:
        about = about | {"positions": np.stack([about["positions"]] * posenc.parse(name).axes, -1)}
    problem = Problem(name, causal=causal(about))
    for kernel in ("tiled", "rows"):
        if served(name, kernel):
            problem.agrees(kernel, **about)


@pytest.mark.parametrize("length", [1, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("text", ["alibi", "rope + fire"])
def test_lengths_around_a_block(text, length, x64):
    Problem(text, length).agrees("tiled")


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("text", ["t5", "rope(frequencies='learned')", "fox"])
def test_key_heads_may_be_few(text, groups, x64):
    Problem(text, groups=groups).agrees("tiled")


PARTS = [(mask, part) for mask in ("causal", "full", Window(3, 1)) for part in ((5, 13, 8), (5, 13, 3), (2, 13, 0))]


@pytest.mark.ci
@pytest.mark.parametrize(("mask", "part"), by_day(PARTS, PARTS[::4]))
def test_queries_may_be_some_of_the_keys(mask, part, x64):
    queries, keys, start = part
    for text in ("t5", "rope + kerple"):
        problem = Problem(text, queries, keys, causal=mask == "causal")
        about = {"mask": mask, "query_start": start}
        problem.agrees("tiled", **about)
        problem.agrees("rows", **about)


@pytest.mark.ci
def test_positions_have_a_gradient(x64):
    """Of real positions, a distance's share comes from every tile of its row and column."""
    problem = Problem("rope + kerple")
    q, k, v, _ = problem.arrays
    place = np.sort(drawn(13, seed=5)) * 9

    def slope(kernel):
        loss = lambda at: (attend(problem.scheme, problem.params, q, k, v, positions=at, kernel=kernel) ** 2).sum()  # noqa: E731
        return jax.jit(jax.grad(loss), compiler_options=LITTLE)(place)

    np.testing.assert_allclose(slope("tiled"), slope("dense"), atol=1e-9)
    assert np.all(np.abs(slope("dense")) > 1e-9)


@pytest.mark.ci
def test_two_sequences_may_be_of_any_lengths(x64):
    for queries, keys in ((13, 6), (2, 13)):
        for mask in ("causal", "full", Window(3, 1)):
            Problem("alibi", queries, keys, causal=mask == "causal").agrees("tiled", mask=mask)


@pytest.mark.ci
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    length=some.integers(1, 14),
    left=some.none() | some.integers(0, 14),
    right=some.none() | some.integers(0, 14),
    documents=some.none() | some.lists(some.integers(0, 1), min_size=14, max_size=14),
    text=some.sampled_from(["nope", "alibi"]),
)
def test_any_window_and_any_padding(length, left, right, documents, text):
    with jax.enable_x64(True):
        segments = None if documents is None else np.asarray(documents[:length], np.int32)
        Problem(text, length, causal=right == 0).agrees("tiled", mask=Window(left, right), segments=segments)


@pytest.mark.ci
def test_nan_in_padding_stays_there(x64):
    problem = Problem("rope + alibi")
    about = {"segments": np.array([1] * 7 + [0] * 6, np.int32)}
    whole = problem.run("tiled", **about)[1]
    for a in problem.arrays:
        a[7:] = np.nan
    np.testing.assert_array_equal(problem.run("tiled", **about)[1], whole)


@pytest.mark.ci
def test_sequences_and_lanes_may_be_mapped(x64):
    """Under vmap, of sequences or of parameters, each is itself."""
    problem = Problem("kerple")
    q, k, v, _ = (np.stack([a, -a]) for a in problem.arrays)
    one = lambda p, q, k, v: attend(problem.scheme, p, q, k, v, kernel="tiled")  # noqa: E731
    both = jax.jit(one, compiler_options=LITTLE)(problem.params, q, k, v)
    params = jax.tree.map(lambda a: np.stack([a, a * 1.1]), problem.params)
    lanes = jax.jit(jax.vmap(one), compiler_options=LITTLE)(params, q, k, v)
    for n in range(2):
        np.testing.assert_allclose(both[n], one(problem.params, q[n], k[n], v[n]), atol=1e-12)
        np.testing.assert_allclose(
            lanes[n], one(jax.tree.map(lambda a, n=n: a[n], params), q[n], k[n], v[n]), atol=1e-12
        )


@pytest.mark.ci
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
def test_the_type_of_the_output_is_that_of_the_values(dtype):
    """Scores, weights and sums are float32 at least, so tiles lose no more than the square does."""
    problem = Problem("rope + alibi", dtype=np.float32)
    exact = attend(problem.scheme, problem.params, *problem.arrays[:3])
    short = [jnp.asarray(a, dtype) for a in problem.arrays[:3]]
    ours, dense = (attend(problem.scheme, problem.params, *short, kernel=kernel) for kernel in ("tiled", "dense"))
    assert ours.dtype == dense.dtype == dtype
    off = lambda a: float(np.abs(np.asarray(a, np.float32) - exact).max())  # noqa: E731
    assert off(ours) <= 1.5 * off(dense) + 1e-6


def squares(jaxpr, size):
    """Every array of a program with as many numbers as a square of scores."""
    for equation in equations(jaxpr):
        for value in equation.outvars:
            if np.prod(getattr(value.aval, "shape", ()), dtype=int) >= size:
                yield f"{equation.primitive} {value.aval.shape}"


def program(text, kernel, length=1024, **about):
    """The forward and backward pass of one head of one feature, where nothing else is as large as a square."""
    dims = Dims(width=2, heads=1, head=2, trained=16)
    scheme = posenc.bind(posenc.parse(text), dims)
    params = posenc.init(scheme, jax.random.key(0), dims)
    q, x = jax.ShapeDtypeStruct((length, 1, 2), np.float32), jax.ShapeDtypeStruct((length, 2), np.float32)
    loss = lambda p, q, k, v, x: attend(scheme, p, q, k, v, x=x, kernel=kernel, **about).sum()  # noqa: E731
    return jax.grad(loss, argnums=(0, 1, 2, 3)), (params, q, q, q, x)


@pytest.mark.parametrize("text", [*TYPICAL, "stick_breaking", "cope"])
@pytest.mark.parametrize("segments", [False, True], ids=["one", "packed"])
def test_no_kernel_but_the_dense_one_makes_a_square(text, segments, monkeypatch):
    monkeypatch.setattr(kernels, "block", lambda queries, keys: 32)
    length = 1024
    about = {"segments": np.ones(length, np.int32)} if segments else {}
    kernel = "tiled" if served(text, "tiled") else "rows"

    def found(kernel):
        f, args = program(text, kernel, length, **about)
        return list(squares(jax.make_jaxpr(f)(*args), length**2))

    assert found("dense") and not found(kernel)


@pytest.mark.parametrize("text, fewer", [("wall", True), ("wall + fox", True), ("fox", False), ("tapa", False)])
def test_products_that_a_scheme_replaces_have_no_gradient(text, fewer, monkeypatch):
    """Each block of tiles, with a mask and without, saves the gradients of queries and of keys."""
    problem = Problem(text, dtype=np.float32)
    loss = lambda q, k: attend(problem.scheme, problem.params, q, k, k, x=problem.arrays[3], kernel="tiled").sum()  # noqa: E731

    def products():
        made = jax.make_jaxpr(jax.grad(loss, (0, 1)))(*problem.arrays[:2])
        return sum(str(e.primitive) == "dot_general" for e in equations(made.jaxpr))

    few = products()
    monkeypatch.setattr(tiled._Tile, "reads_logits", lambda self: True)
    assert products() - few == (4 if fewer else 0)


@pytest.mark.guard
@pytest.mark.parametrize("mask", ["causal", "full", Window(5, 0), Window(0, 0), Window(2, 7), Window(None, 3)], ids=str)
@pytest.mark.parametrize("segments", [None, SEGMENTS], ids=["one", "packed"])
def test_what_a_query_sees_is_counted_without_a_square(mask, segments):
    from posenc.core.masks import window

    for queries, keys, start in ((13, 13, 0), (5, 13, 4)):
        mine = None if segments is None else segments[start : start + queries]
        query = Side(None, start + jnp.arange(queries), mine)
        key = Side(None, jnp.arange(keys), segments)
        expected = sees(window(mask), query.index, key.index, mine, segments).sum(-1)
        np.testing.assert_array_equal(count_visible(window(mask), query, key, 3, Pairs()), expected)
