"""Windows that count positions: in every kernel, beside documents, sinks, key heads and caches."""

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
DIMS = posenc.Dims(width=H * D, heads=H, head=D, trained=L, key_heads=G)
PLACES = np.stack(
    [np.array([0, 1, 1, 1, 2, 3, 5, 5, 6, 9, 10, 11, 11]), np.array([4, 2, 0, 1, 3, 9, 8, 8, 2, 5, 6, 7, 7])]
)
SEGMENTS = np.array([[1, 1, 1, 1, 1, 0, 2, 2, 2, 2, 2, 2, 2], [0, 3, 3, 3, 3, 3, 3, 3, 3, 0, 0, 4, 4]], np.int32)
DRAW = np.random.default_rng(0).normal
Q, (K, V), X = DRAW(size=(B, L, H, D)), DRAW(size=(2, B, L, G, D)), DRAW(size=(B, L, H * D))


def attend(text, **about):
    scheme = posenc.bind(text, DIMS)
    run = jax.jit(functools.partial(posenc.attend, scheme, **about))
    return run(posenc.init(scheme, jax.random.key(0), DIMS), Q, K, V)


def seen(places, mask, near, sinks=0, segments=None):
    """Which keys each query sees, pair by pair."""
    out = np.zeros((B, L, L), bool)
    for b in range(B):
        for i in range(L):
            for j in range(L):
                apart = int(places[b, i]) - int(places[b, j])
                inside = j <= i and apart < near if mask == "causal" else abs(apart) <= near // 2
                if segments is None:
                    first, fits = 0, True
                else:
                    s = segments[b]
                    fits = s[i] == s[j] > 0
                    first = int(np.argmax(s == s[j]))
                out[b, i, j] = fits and (inside or (mask == "causal" and j <= i and j - first < sinks))
    return out


@pytest.mark.parametrize("kernel", ["dense", "tiled", "rows"])
@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize("text", ["rope", "alibi", "{rope, nope}"])
def test_a_window_in_positions_is_what_it_says_of_each_pair(text, mask, kernel, small_blocks, x64):  # noqa: F811
    window = attend(f"{text} + window(3, of='positions')", positions=PLACES, mask=mask, kernel=kernel)
    listed = attend(text, positions=PLACES, mask=("full", seen(PLACES, mask, 3)), kernel="dense")
    np.testing.assert_allclose(window, listed, atol=1e-11)
    packed = attend(
        f"{text} + window(3, of='positions')", positions=PLACES, mask=mask, kernel=kernel, segments=SEGMENTS
    )
    listed = attend(text, positions=PLACES, mask=("full", seen(PLACES, mask, 3, 0, SEGMENTS)), kernel="dense")
    real = (SEGMENTS > 0)[:, :, None, None]
    np.testing.assert_allclose(np.where(real, packed, 0), np.where(real, listed, 0), atol=1e-11)


@pytest.mark.parametrize("kernel", ["dense", "tiled", "rows"])
def test_sinks_stay_in_sight(kernel, small_blocks, x64):  # noqa: F811
    text = "rope + window(2, sinks=2, of='positions')"
    for segments in (None, SEGMENTS):
        ours = attend(text, positions=PLACES, kernel=kernel, segments=segments)
        listed = attend("rope", positions=PLACES, mask=("full", seen(PLACES, "causal", 2, 2, segments)))
        real = 1 if segments is None else (segments > 0)[:, :, None, None]
        np.testing.assert_allclose(ours * real, listed * real, atol=1e-11)


def test_without_positions_it_is_the_window_of_the_index(x64):
    for about in ({}, {"segments": SEGMENTS}, {"mask": "full"}):
        ours, index = (attend(f"rope + window(3{of})", **about) for of in (", of='positions'", ""))
        np.testing.assert_array_equal(ours, index)


def test_a_query_of_a_prompt_that_is_padded_sees_as_many_real_keys(x64):
    """Gemma counts positions, which padding between two tokens leaves out."""
    segments, places = np.array([1, 1, 0, 0, 1], np.int32), np.array([0, 1, 1, 1, 2], np.int32)
    q = DRAW(size=(5, 1, D))

    def by(of):
        scheme = posenc.parse(f"nope + window(2{of})")
        return jax.jit(functools.partial(posenc.attend, scheme, None, positions=places, segments=segments))(q, q, q)

    alone = posenc.attend(posenc.parse("nope + window(2)"), None, *[q[[0, 1, 4]]] * 3)
    np.testing.assert_allclose(by(", of='positions'")[4], alone[2], atol=1e-12)
    assert not np.allclose(by("")[4], alone[2])


def test_a_scheme_that_counts_keys_counts_those_of_the_window(x64):
    text = "ssmax + rope"
    window = attend(f"{text} + window(3, of='positions')", positions=PLACES)
    listed = attend(text, positions=PLACES, mask=("full", seen(PLACES, "causal", 3)))
    np.testing.assert_allclose(window, listed, atol=1e-11)


def test_a_cache_sees_what_the_whole_text_sees(x64):
    scheme = posenc.bind("rope + window(3, of='positions')", DIMS)
    whole = posenc.attend(scheme, None, Q, K, V, positions=PLACES, segments=SEGMENTS)
    cache = posenc.Cache.empty(scheme, None, DIMS, batch=B, capacity=L, dtype=jnp.float64, positions=jnp.int64)
    out, _ = decode(stepper(scheme, None), cache, (Q, K, V, X), (6, 1, 6), positions=PLACES, segments=SEGMENTS)
    np.testing.assert_allclose(out, whole, atol=1e-11)


def test_gradients_through_tiles_are_those_of_the_square(small_blocks, x64):  # noqa: F811
    scheme = posenc.parse("rope + alibi + window(4, of='positions')")
    run = lambda q, kernel: (  # noqa: E731
        posenc.attend(scheme, None, q, K, V, positions=PLACES.astype(float), kernel=kernel) ** 2
    ).sum()
    tiles, square = (jax.jit(jax.grad(run), static_argnums=1)(Q, kernel) for kernel in ("tiled", "dense"))
    np.testing.assert_allclose(tiles, square, atol=1e-11)


@pytest.mark.parametrize(("text", "about", "says"), [
    ("rope_2d + window(3, of='positions')", {"positions": np.zeros((L, 2), np.int32)}, "counts one number"),
    ("rope + window(3, of='tokens')", {}, "of='index' or of='positions'"),
    ("rope + window(4, of='positions')", {"mask": "full"}, "odd number"),
])  # fmt: skip
def test_what_a_window_cannot_count_is_refused(text, about, says, x64):
    with pytest.raises(ValueError, match=says):
        attend(text, **about)


def test_a_ring_is_refused():
    scheme = posenc.bind("rope + window(3, of='positions')", DIMS)
    with pytest.raises(ValueError, match="by their positions; leave ring out"):
        posenc.Cache.empty(scheme, None, DIMS, batch=1, capacity=8, ring=True)


def test_its_text_names_it():
    text = "rope + window(3, sinks=2, of='positions')"
    assert posenc.spec(posenc.parse(text)) == text
    assert posenc.parse("rope + window(3, of='index')") == posenc.parse("rope + window(3)")


FAULTS = {
    "tiles read no positions": Fault(
        "posenc.attention.kernels.layout:over_keys", "a.qs is not None or tiling.window.of_positions",
        "a.qs is not None", "rope", "tiled",
    ),
    "the window is one too wide": Fault("posenc.core.masks:sees", "apart) <= window.back", "apart) <= window.back + 1",
                                        "rope", "dense"),
}  # fmt: skip


@pytest.mark.guard
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name, plant, small_blocks, x64):  # noqa: F811
    plant(FAULTS[name])
    with pytest.raises(AssertionError):
        test_a_window_in_positions_is_what_it_says_of_each_pair("rope", "causal", FAULTS[name].caught, None, None)
