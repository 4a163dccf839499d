"""Tokens without a place, such as registers: no bias or rotation is theirs, in every kernel."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.contract.test_decoding import decode, stepper
from tests.kernels.test_equal import small_blocks  # noqa: F401  # a fixture
from tests.planting import Fault
from tests.planting import plant as plant  # a fixture

B, L, H, G, D = 2, 13, 4, 2, 8
DIMS = posenc.Dims(width=H * D, heads=H, head=D, trained=L, longest=32, key_heads=G, causal=False)
PLACES = np.array([-1, -1, *range(10), -1], np.int32)
"""A class token, a register, ten tokens, and one more register."""
OUTSIDE = PLACES < 0
DRAW = np.random.default_rng(0).normal
Q, (K, V), X = DRAW(size=(B, L, H, D)), DRAW(size=(2, B, L, G, D)), DRAW(size=(B, L, H * D))
TEXTS = [
    "alibi", "t5(bidirectional=True)", "kerple", "rope", "rope + alibi", "bam", "sandwich", "log_cpb", "shaw(reach=3)",
    "dape", "{alibi, rope}",
]  # fmt: skip
KERNELS = ["dense", "tiled", "rows"]


class Problem:
    def __init__(self, text, trailing=" + unplaced"):
        self.scheme, self.plain = posenc.bind(text + trailing, DIMS), posenc.bind(text, DIMS)
        start = posenc.init(self.scheme, jax.random.key(0), DIMS)
        self.params = jax.tree.map(lambda a: a + 0.3 * np.cos(np.arange(a.size).reshape(a.shape)), start)

    def attend(self, scheme=None, **about):
        scheme, about = scheme or self.scheme, {"positions": PLACES, "mask": "full"} | about
        return jax.jit(functools.partial(posenc.attend, scheme, **about))(self.params, Q, K, V)


def weights(problem, scheme, **about):
    """The weights of attention, `[B, H, L, L]`, without what is added to values."""
    columns, about = [], {"positions": PLACES, "mask": "full"} | about
    run = jax.jit(lambda v: posenc.attend(scheme, problem.params, Q, K, v, **about))
    for n in range(0, L, D):
        hot = np.broadcast_to(np.eye(L, D, -n)[None, :, None], (B, L, G, D))
        columns.append((run(hot) - run(np.zeros_like(hot)))[..., : L - n])
    return np.moveaxis(np.concatenate(columns, -1), 1, 2)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("text", TEXTS)
def test_pairs_with_a_token_without_a_place_score_as_without_a_scheme(text, kernel, small_blocks, x64):  # noqa: F811
    problem = Problem(text)
    if kernel == "tiled" and problem.plain.reads in ("row", "heads"):
        pytest.skip("tiles hold no whole rows and no scores of all heads")
    ours = np.log(weights(problem, problem.scheme, kernel=kernel))
    turned = text in ("rope", "rope + alibi", "{alibi, rope}")
    places = np.where(OUTSIDE, 0, PLACES)  # a rotation by 0 is none
    whole = np.log(weights(problem, problem.plain, positions=places))
    scale = problem.plain.scale(D) if "{" not in text else D**-0.5
    logits = np.einsum("bihd,bjhd->bhij", Q, np.repeat(K, H // G, 2)) * scale
    if not turned:  # a row of two kinds of pairs is known up to a number of its own
        both = ~(OUTSIDE[:, None] | OUTSIDE[None, :])
        relative = lambda a: a - a[..., :1]  # noqa: E731  # the first key has no place
        for rows, expected in ((OUTSIDE, logits), (~OUTSIDE, logits)):
            keys = np.ones(L, bool) if rows is OUTSIDE else OUTSIDE
            part = relative(ours)[:, :, rows][..., keys]
            np.testing.assert_allclose(part, relative(expected)[:, :, rows][..., keys], atol=1e-9)
        inner = lambda a: (a - a[..., 2:3])[..., both[3]][:, :, ~OUTSIDE]  # noqa: E731
        np.testing.assert_allclose(inner(ours), inner(whole), atol=1e-9)
    np.testing.assert_allclose(problem.attend(kernel=kernel), problem.attend(kernel="dense"), atol=1e-11)


def test_rotations_leave_them_unturned(x64):
    problem = Problem("rope")
    np.testing.assert_allclose(
        problem.attend(), problem.attend(problem.plain, positions=np.where(OUTSIDE, 0, PLACES)), atol=1e-12
    )


def test_where_all_tokens_have_a_place_nothing_changes(x64):
    problem = Problem("alibi")
    for about in ({"positions": None}, {"positions": np.arange(L)}):
        np.testing.assert_allclose(problem.attend(**about), problem.attend(problem.plain, **about), atol=1e-12)


def test_what_is_added_to_the_input_is_not_added_to_them():
    scheme = posenc.bind("learned + unplaced", DIMS)
    params = posenc.init(scheme, jax.random.key(0), DIMS)
    x = X.astype(np.float32)
    out = posenc.embed(scheme, params, x, positions=PLACES)
    np.testing.assert_array_equal(out[:, OUTSIDE], x[:, OUTSIDE])
    plain = posenc.embed(posenc.bind("learned", DIMS), params, x[:, 2:-1], positions=PLACES[2:-1])
    np.testing.assert_array_equal(out[:, 2:-1], plain)


def test_of_two_numbers_both_are_below_0_where_a_token_has_no_place(x64):
    problem = Problem("rope_axes(widths=(4, 4))")
    plane = np.stack([np.where(OUTSIDE, -1, 2 - PLACES), 3 * PLACES % 5 - OUTSIDE], -1)
    plane[OUTSIDE] = -1
    assert (plane[~OUTSIDE] == -1).any()  # a place on one axis
    at_zero = np.where(OUTSIDE[:, None], 0, plane)
    out = problem.attend(positions=plane)
    np.testing.assert_allclose(out, problem.attend(problem.plain, positions=at_zero), atol=1e-12)


@pytest.mark.parametrize(
    ("text", "weights"), [("rope + key_weight(form='plain')", PLACES - 3.0), ("rope + rope", PLACES + 5)]
)
def test_positions_of_the_first_scheme_of_a_sum_say_who_has_no_place(text, weights, x64):
    """A later scheme may have any number there, and -1 elsewhere."""
    problem = Problem(text)
    first = text.split(" + ")[0]
    out = problem.attend(positions=(PLACES, weights))
    if "key_weight" not in text:
        zero = lambda a: np.where(OUTSIDE, 0, a)  # noqa: E731
        expected = problem.attend(problem.plain, positions=(zero(PLACES), zero(weights)))
    else:
        inside = ~(OUTSIDE[:, None] | OUTSIDE[None, :])
        turned = posenc.rotate(posenc.parse(first), None, Q, K, np.where(OUTSIDE, 0, PLACES), mask="full")
        logits = np.einsum("bihd,bjhd->bhij", turned[0], np.repeat(turned[1], H // G, 2)) * D**-0.5
        weighed = jax.nn.softmax(logits + np.where(inside, weights[None, :], 0), -1)
        expected = np.einsum("bhij,bjhd->bihd", weighed, np.repeat(V, H // G, 2))
    np.testing.assert_allclose(out, expected, atol=1e-12)


def test_a_window_in_positions_keeps_them_in_sight(small_blocks, x64):  # noqa: F811
    problem = Problem("alibi", " + window(3, of='positions') + unplaced")
    apart = np.abs(PLACES[:, None] - PLACES[None, :])
    seen = (apart <= 1) | OUTSIDE[:, None] | OUTSIDE[None, :]
    listed = Problem("alibi").attend(mask=("full", seen))
    for kernel in KERNELS:
        np.testing.assert_allclose(problem.attend(kernel=kernel), listed, atol=1e-11)


def test_a_cache_keeps_who_has_no_place(x64):
    problem = Problem("rope + alibi")
    whole = problem.attend(mask="causal")
    dims = posenc.Dims(width=H * D, heads=H, head=D, trained=L, key_heads=G)
    cache = posenc.Cache.empty(problem.scheme, None, dims, batch=B, capacity=L, dtype=jnp.float64)
    step, places = stepper(problem.scheme, problem.params), np.stack([PLACES] * B)
    np.testing.assert_allclose(decode(step, cache, (Q, K, V, X), (5, 1, 7), positions=places)[0], whole, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_pass_them_by(kernel, small_blocks, x64):  # noqa: F811
    problem = Problem("kerple + rope")
    run = lambda p, kernel: (  # noqa: E731
        posenc.attend(problem.scheme, p, Q, K, V, positions=PLACES, mask="full", kernel=kernel) ** 2
    ).sum()
    ours, square = (jax.jit(jax.grad(run), static_argnums=1)(problem.params, k) for k in (kernel, "dense"))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11), ours, square)
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(ours))


@pytest.mark.parametrize(("text", "says"), [
    ("alibi + unplaced(0)", "below 0"), ("alibi + unplaced(-1.5)", "below 0"), ("unplaced", "cannot|neither"),
    ("dual_triangle + unplaced", "scores or weights of its own"), ("tupe + unplaced", "more features"),
    ("path + unplaced", "scores or weights of its own"), ("convit + unplaced", "scores or weights of its own"),
    ("alibi + unplaced + unplaced", "once"), ("alibi + unplaced(-1, -2)", "one position"),
    ("{alibi + unplaced, rope}", "stand behind"),
])  # fmt: skip
def test_what_has_no_meaning_is_refused(text, says):
    with pytest.raises(ValueError, match=says):
        posenc.parse(text)


@pytest.mark.parametrize(
    "text", ["alibi + unplaced", "rope + t5 + window(9) + unplaced(-7)", "{alibi, rope} + unplaced"]
)
def test_its_text_names_it(text):
    assert posenc.spec(posenc.parse(text)) == text


FAULTS = {
    "tiles score what has no place": Fault(
        "posenc.attention.kernels.tiled:_Tile.score", "made if self.both is None else", "made if True else",
        "alibi", "tiled",
    ),
    "queries have a place, whatever is said": Fault(
        "posenc.attention.kernels.form:placed", "query.unplaced[:, None] | ", "", "alibi", "dense"
    ),
}  # fmt: skip


@pytest.mark.guard
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name, plant, small_blocks, x64):  # noqa: F811
    plant(FAULTS[name])
    with pytest.raises(AssertionError):
        test_pairs_with_a_token_without_a_place_score_as_without_a_scheme("alibi", FAULTS[name].caught, None, None)
