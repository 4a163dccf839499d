"""What is one scheme under two names, and what is not: each test is a theorem, said in its docstring.

Elsewhere: CABLE is FoX and a constant gate ALiBi (`schemes/test_fox.py`), a factor of 1 scales nothing
(`schemes/test_scaled_rope.py`), and Transformer-XL by wider queries and keys is its dense definition (its oracle).
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import posenc
from posenc import Dims

L, HEADS, D = 6, 2, 8
DIMS = Dims(width=HEADS * D, heads=HEADS, head=D, trained=16)
PLACES = np.array([0, 3, 4, 9, 2, 30])
SHUFFLE = np.array([0, 2, 4, 6, 1, 3, 5, 7])  # from interleaved pairs to halves

pytestmark = pytest.mark.usefixtures("x64")


def tokens(seed=0):
    return np.random.default_rng(seed).normal(size=(3, L, HEADS, D))


@functools.partial(jax.jit, static_argnums=0, static_argnames="mask")
def run(scheme, p, q, k, v, positions=None, x=None, mask="causal"):
    return posenc.attend(scheme, p, q, k, v, positions=positions, x=x, mask=mask)


def attend(text, q, k, v, positions=None, x=None, mask="causal", **heads):
    """Attention under a scheme, `heads` in the place of what it starts with."""
    scheme = posenc.bind(posenc.parse(text), DIMS)
    p = posenc.init(scheme, jax.random.key(0), DIMS)
    if heads:
        p = p | {"heads": p["heads"] | {name: jnp.asarray(a, float) for name, a in heads.items()}}
    return np.asarray(run(scheme, p, q, k, v, positions, x, mask=mask))


def same(a, b, bound=1e-9):
    np.testing.assert_allclose(a, b, rtol=0, atol=bound)


def differ(a, b):
    assert np.abs(a - b).max() > 1e-2


def cayley(s):
    return np.linalg.solve(np.eye(D) + s, np.eye(D) - s)


def skew(seed):
    a = np.random.default_rng(seed).normal(size=(D, D))
    return a - a.T


def planes(seed):
    """A turn in each of the planes of the coordinates."""
    a = np.zeros((D, D))
    for c, w in enumerate(np.random.default_rng(seed).uniform(0.1, 1, D // 2)):
        a[2 * c + 1, 2 * c], a[2 * c, 2 * c + 1] = w, -w
    return a


def circulant(seed):
    row = np.random.default_rng(seed).normal(size=D)
    c = np.stack([np.roll(row, n) for n in range(D)])
    return c - c.T


def commuting(seed):
    """Two blocks of four: whatever generates a turn within each."""
    a = skew(seed)
    a[:4, 4:] = a[4:, :4] = 0
    return a


GENERATORS = {
    "LieRE": skew,
    "STRING, circulant": circulant,
    "STRING, Cayley": lambda seed: cayley(skew(seed + 9)) @ planes(seed) @ cayley(skew(seed + 9)).T,
    "ComRoPE": commuting,
    "GRAPE-M, commuting": planes,
}


def normal_form(a):
    """Frequencies ω and an orthogonal Q with A = Q (turns by ω in pairs of coordinates) Qᵀ."""
    values, vectors = np.linalg.eigh(-1j * a)
    turning = values > 1e-9
    pairs = np.stack([vectors[:, turning].real, -vectors[:, turning].imag], -1).reshape(D, -1) * 2**0.5
    still = scipy.linalg.null_space(a, rcond=1e-9)
    return np.pad(values[turning], (0, still.shape[1] // 2)), np.concatenate([pairs, still], 1)


@pytest.mark.parametrize("kind", GENERATORS)
def test_along_one_axis_every_generator_is_rope_at_learned_frequencies_in_another_basis(kind):
    """1-D LieRE = STRING = ComRoPE = commuting GRAPE-M = RoPE with learned frequencies: A = Q (J ω) Qᵀ, and Q is
    absorbed by the projections to queries and keys."""
    made = [GENERATORS[kind](seed) for seed in range(HEADS)]
    q, k, v = tokens()
    above = np.stack([a[np.triu_indices(D, 1)] for a in made])[:, None, None]
    theirs = attend("liere(axes=1, extent=1.0)", q, k, v, PLACES, generator=above)
    forms = [normal_form(a) for a in made]
    basis = np.stack([columns for _, columns in forms])
    in_basis = lambda x: np.einsum("hdc,lhd->lhc", basis, x)  # noqa: E731
    text = "rope(frequencies='learned', layout='interleaved')"
    ours = attend(text, in_basis(q), in_basis(k), v, PLACES, frequency=np.stack([w for w, _ in forms]))
    same(ours, theirs)
    if kind != "GRAPE-M, commuting":  # whose basis is that of the features, up to signs and order
        differ(attend(text, q, k, v, PLACES, frequency=np.stack([w for w, _ in forms])), theirs)


def test_generators_of_two_axes_that_do_not_commute_are_no_rope():
    """In two dimensions scores of LieRE are not a function of the difference of positions, while RoPE-Mixed's are."""
    q, k, v = tokens()
    places = np.stack([PLACES, PLACES[::-1]], -1) / 10
    for text, invariant in (("liere(extent=1.0)", False), ("rope_2d(frequencies='mixed')", True)):
        here, there = attend(text, q, k, v, places), attend(text, q, k, v, places + 1)
        same(there, here) if invariant else differ(there, here)


def test_algebraic_sequences_start_as_rope():
    """The first W of an algebraic sequence is the interleaved rotation of RoPE."""
    q, k, v = tokens()
    same(attend("algebraic", q, k, v, PLACES), attend("rope(layout='interleaved')", q, k, v, PLACES), 1e-5)


def test_a_constant_gate_makes_contextual_grape_m_rope_turning_backwards():
    """Contextual GRAPE-M with a constant gate g = RoPE with the frequencies -g e^f."""
    q, k, v = tokens()
    x = np.random.default_rng(2).normal(size=(L, DIMS.width))
    gate = 1 / (1 + np.exp(-np.log(np.expm1(1e-3)) / 16))  # where it starts
    rates = -gate * 10000.0 ** (-np.arange(D // 2) / (D // 2))
    ours = attend("rope(frequencies='learned')", q, k, v, frequency=np.stack([rates] * HEADS))
    same(attend("grape_m", q, k, v, x=x), ours, 1e-6)


def test_partial_rope_is_no_p_rope():
    """Turning half of the features ≠ keeping half of the frequencies, in whatever order the features stand."""
    x, place = np.eye(D), np.full(D, 5)
    maps = [np.asarray(posenc.parse(text).query({}, x, place)[0]) for text in ("rope(fraction=0.5)", "rope(p=0.5)")]
    turned = [np.sort(np.angle(np.linalg.eigvals(m))) for m in maps]  # what no permutation changes
    differ(*turned)


def test_layouts_are_one_scheme_under_a_permutation_of_both_queries_and_keys():
    """Interleaved pairs = halves after one permutation of the features of q and k; of q alone it is another scheme."""
    q, k, v = tokens()
    interleaved = attend("rope(layout='interleaved')", q, k, v, PLACES)
    same(attend("rope", q[..., SHUFFLE], k[..., SHUFFLE], v, PLACES), interleaved)
    differ(attend("rope", q[..., SHUFFLE], k, v, PLACES), interleaved)


RELATIVE = "rope rope_2d rope_2d(frequencies='mixed') mrope liere(axes=1) vo_rope pope alibi music_transformer".split()
SCALED = "vo_rope(base=50.0, factor=4.0, original=64)"


@pytest.mark.parametrize("text", [*RELATIVE, SCALED, "algebraic(structure='grid', decay=0.9)"])
def test_an_offset_of_all_positions_changes_nothing(text):
    """RoPE ∘ offset = RoPE, and so for every scheme that knows differences alone."""
    q, k, v = tokens()
    axes = posenc.parse(text).axes
    places = PLACES if axes == 1 else np.stack([PLACES, PLACES[::-1], PLACES % 5][:axes], -1)
    shift = -1000 if axes == 1 else np.array([1000, 17, -3][:axes])
    same(attend(text, q, k, v, places + shift), attend(text, q, k, v, places), 1e-8)


def test_values_turn_at_the_frequencies_of_yarn():
    """VO-RoPE with a factor = YaRN without its magnitude, and values that turn at the same frequencies."""
    q, k, v = tokens()
    values = SCALED.replace("(", "(queries_and_keys=False, ")
    yarn = "yarn(base=50.0, original=64, attention_factor=1.0)"
    same(attend(f"{values} + {yarn}", q, k, v, PLACES), attend(SCALED, q, k, v, PLACES))
    differ(attend(f"{values} + rope(base=50.0)", q, k, v, PLACES), attend(SCALED, q, k, v, PLACES))


def test_forms_of_alibi_agree_under_a_causal_mask_alone():
    """-m |i - j| = m (j - i) = m j after softmax where no key stands after the query, and nowhere else."""
    q, k, v = tokens()
    slopes = 2.0 ** (-8 * np.arange(1, HEADS + 1) / HEADS)[:, None, None]
    i, j = np.arange(L)[:, None], np.arange(L)[None, :]
    for mask in ("causal", "full"):
        ours = attend("alibi", q, k, v, mask=mask)
        for bias in (slopes * (j - i), slopes * (j + 0 * i)):
            s = np.einsum("qhd,khd->hqk", q, k) / D**0.5 + bias
            a = jax.nn.softmax(np.where((j <= i) | (mask == "full"), s, -np.inf), -1)
            theirs = np.einsum("hqk,khd->qhd", a, v)
            same(ours, theirs) if mask == "causal" else differ(ours, theirs)


def test_sandwich_is_an_inner_product_of_sinusoids():
    """Sandwich = attention whose queries and keys are widened by sinusoidal embeddings, those of queries over the
    compression: no array of distances is needed."""
    q, k, v = tokens()
    sin, cos = (f(np.outer(PLACES, 10000.0 ** (-2 * np.arange(64) / 128))) for f in (np.sin, np.cos))
    e = np.broadcast_to(np.concatenate([sin, cos], -1)[:, None], (L, HEADS, 128))
    compression = (HEADS / (8 * np.arange(1, HEADS + 1)))[None, :, None]
    wide = np.concatenate([q * D**-0.5, e * compression], -1) * (D + 128) ** 0.5, np.concatenate([k, e], -1)
    padded = np.concatenate([v, np.zeros((L, HEADS, 128))], -1)
    theirs = run(posenc.parse("nope"), {"layer": {}, "heads": {}}, *wide, padded)[..., :D]
    same(attend("sandwich", q, k, v, PLACES), theirs)
