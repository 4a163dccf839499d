"""Queries and keys turned for kernels of others: attention of these without positions is attention of the scheme."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.core.masks import Window
from tests.planting import Fault
from tests.planting import plant as plant  # a fixture

B, L, H, G, D = 2, 12, 4, 2, 8
DIMS = posenc.Dims(width=H * D, heads=H, head=D, trained=8, longest=64, key_heads=G)
SEGMENTS = np.array([[1] * 5 + [2] * 7, [0] * 2 + [1] * 8 + [0] * 2], np.int32)
TURNED = [
    "nope", "rope", "rope(fraction=0.5, at='end', layout='interleaved')", "rope(frequencies='learned')",
    "yarn(factor=4.0)", "llama3", "dynamic_ntk", "longrope", "log_n + rope", "ssmax + rope", "xpos", "fope", "hope",
    "liere", "algebraic", "grape_m", "selective_rope", "repo", "carope", "pope", "transformer_xl", "tupe",
    "key_offset + rope", "mrope", "rope_axes(widths=(4, 4))", "rope_2d", "asentmax", "{rope, nope}",
    "{rope(frequencies='learned'): 3, xpos: 1}",
]  # fmt: skip


class Problem:
    """Inputs under a scheme, its parameters moved from where they start."""

    def __init__(self, text, dtype=np.float64):
        self.scheme = posenc.bind(text, DIMS)
        draw = lambda *shape: np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)  # noqa: E731
        start = posenc.init(self.scheme, jax.random.key(0), DIMS)
        self.params = jax.tree.map(
            lambda a: (a + 0.3 * np.cos(np.arange(a.size).reshape(a.shape))).astype(dtype), start
        )
        self.q, self.x = draw(B, L, H, D), draw(B, L, H * D)
        self.k, self.v = draw(2, B, L, G, D)

    def agrees(self, tolerance=1e-11, **about):
        features = {"x": self.x} if self.scheme.contextual else {}
        turned = {n: about[n] for n in ("positions", "segments", "mask") if n in about}
        a, b = posenc.rotate(self.scheme, self.params, self.q, self.k, **features, **turned)
        rest = {n: about[n] for n in ("segments", "mask") if n in about}
        out = posenc.attend(posenc.parse("nope"), None, a, b, _as_many(self.v, b), **rest)
        whole = posenc.attend(self.scheme, self.params, self.q, self.k, self.v, **features, **about)
        np.testing.assert_allclose(out, whole, atol=tolerance)
        return a, b


def _as_many(v, k):
    """Values for as many key heads as came back."""
    return np.repeat(v, k.shape[2] // v.shape[2], 2)


def test_a_share_of_keys_needs_no_other_width_than_theirs():
    """A tenth of 10 features is whole, and of 8 it is not."""
    scheme = posenc.bind("key_offset(fraction=0.1)", posenc.Dims(width=10, heads=1, head=10, trained=8))
    k = np.random.default_rng(0).normal(size=(5, 1, 10)).astype(np.float32)
    moved = np.concatenate([k[..., :9], np.concatenate([k[:1], k[:-1]])[..., 9:]], -1)
    np.testing.assert_array_equal(posenc.rotate(scheme, None, k, k)[1], moved)


@pytest.mark.parametrize("text", TURNED)
def test_attention_of_turned_queries_and_keys_is_that_of_the_scheme(text, x64):
    problem = Problem(text)
    problem.agrees()
    problem.agrees(segments=SEGMENTS)
    problem.agrees(mask=Window(3, 0))


@pytest.mark.parametrize("text", ["rope", "rope(frequencies='learned')", "{rope, nope}"])
def test_positions_are_those_of_queries_and_keys(text, x64):
    problem = Problem(text)
    places = np.sort(np.random.default_rng(0).choice(99, (B, L)))
    problem.agrees(positions=places, mask="full")
    a, b = posenc.rotate(problem.scheme, problem.params, problem.q[:, 7:9], problem.k, places[:, 7:9], places)
    whole = posenc.rotate(problem.scheme, problem.params, problem.q, problem.k, places)
    np.testing.assert_allclose(a, whole[0][:, 7:9], atol=1e-12)
    np.testing.assert_allclose(b, whole[1], atol=1e-12)


def test_keys_keep_their_heads_unless_they_turn_for_each_query_head():
    for text, heads in (
        ("rope", G),
        ("rope(frequencies='learned')", H),
        ("{rope, nope}", G),
        ("{rope: 3, nope: 1}", H),
    ):
        problem = Problem(text, np.float32)
        a, b = posenc.rotate(problem.scheme, problem.params, problem.q, problem.k)
        assert (a.shape[2], b.shape[2], a.dtype) == (H, heads, np.float32)


def test_kernels_of_jax_take_them_with_their_own_factor():
    """`pope` divides by the root of the width before it doubles it, so that the queries hold the rest."""
    for text in ("rope", "pope", "xpos"):
        problem = Problem(text, np.float32)
        a, b = posenc.rotate(problem.scheme, problem.params, problem.q, problem.k)
        wide = np.pad(_as_many(problem.v, b), [(0, 0)] * 3 + [(0, a.shape[-1] - D)])
        out = jax.nn.dot_product_attention(a, b, jnp.asarray(wide), is_causal=True)[..., :D]
        whole = posenc.attend(problem.scheme, problem.params, problem.q, problem.k, problem.v)
        np.testing.assert_allclose(out, whole, atol=2e-5)


def test_inside_jit_positions_that_do_not_fit_give_nan():
    problem = Problem("rope", np.float32)
    turn = jax.jit(lambda places: posenc.rotate(problem.scheme, None, problem.q, problem.k, places))
    assert np.isfinite(turn(np.arange(L, dtype=np.float32))[0]).all()
    assert np.isnan(turn(np.full(L, np.nan, np.float32))[0]).all()


@pytest.mark.parametrize(("text", "lost"), [
    ("alibi", "what it does to scores"), ("rope + t5", "what it does to scores"), ("entmax", "its own weights"),
    ("vo_rope", "the turning of values"), ("kv_shift + rope", "turning of values"), ("canon", "turning of values"),
    ("learned + rope", "what it adds to the input"), ("shaw", "what it does to scores"), ("{rope, alibi}", "to scores"),
    ("rope + window(4)", "a window of 4 keys"), ("rope @ offset(3)", "coordinates"), ("[rope, nope]", "one layer"),
])  # fmt: skip
def test_what_a_kernel_would_lose_is_said(text, lost):
    q = np.zeros((B, L, H, D), np.float32)
    with pytest.raises((ValueError, TypeError), match=lost) as refusal:
        posenc.rotate(posenc.bind(text, DIMS), None, q, q)
    assert "\n" not in str(refusal.value)


def test_shares_of_two_widths_are_refused():
    q = np.zeros((B, L, H, D), np.float32)
    scheme = posenc.bind("{pope, rope}", DIMS)
    with pytest.raises(ValueError, match="8 and 16 features"):
        posenc.rotate(scheme, posenc.init(scheme, jax.random.key(0), DIMS), q, q)


FAULTS = {
    "keys are not turned": Fault("posenc.attention.rotate:_share", "return q if ours == theirs else",
                                 "k = t.k\n    return q if ours == theirs else", "rope", ""),
    "the factor is forgotten": Fault("posenc.attention.rotate:_share", "q if ours == theirs", "q if True", "pope", ""),
    "shares change places": Fault(
        "posenc.attention.rotate:_beside", "[q for q, _ in each]", "[q for q, _ in each[::-1]]", "{rope, nope}", ""
    ),
}  # fmt: skip


@pytest.mark.guard
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name, plant, x64):
    problem = Problem(FAULTS[name].scheme)
    problem.agrees()
    plant(FAULTS[name])
    with pytest.raises(AssertionError):
        problem.agrees()
