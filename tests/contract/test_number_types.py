"""Numbers of tokens stay whole whatever type they come in, or the type is refused when it is handed over."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc

DIMS = posenc.Dims(width=16, heads=2, head=8, trained=512)
NARROW = ("float16", "bfloat16", "int8", "uint8", "int16", "uint16", "uint32")


def qkv(length, seed=0):
    return np.random.default_rng(seed).normal(size=(3, 1, length, 2, 8)).astype(np.float32)


@pytest.mark.parametrize("kind", NARROW)
def test_a_cache_is_not_made_with_a_type_that_cannot_hold_its_index(kind):
    with pytest.raises(TypeError, match=kind):
        posenc.Cache.empty(posenc.parse("alibi"), None, DIMS, batch=1, capacity=9, positions=jnp.dtype(kind))


@pytest.mark.parametrize("text", ["shaw", "t5", "learned", "music_transformer"])
def test_a_cache_of_real_positions_is_refused_by_a_scheme_of_whole_ones(text):
    scheme = posenc.bind(text, DIMS)
    params = posenc.init(scheme, jax.random.key(0), DIMS)
    with pytest.raises(TypeError, match="whole|integers"):
        posenc.Cache.empty(scheme, params, DIMS, batch=1, capacity=9, positions=jnp.float32)


def test_a_real_index_that_a_cache_cannot_count_gives_nan():
    scheme = posenc.parse("alibi + window(3)")
    q, k, v = qkv(2)
    cache = posenc.Cache.empty(scheme, None, DIMS, batch=1, capacity=4, positions=jnp.float32, ring=True)
    for start, holds in ((2**24 - 3, True), (2**24 - 1, False)):
        within = cache._replace(length=jnp.int32(start), document=jnp.ones(1, jnp.int32))
        out, _ = posenc.attend(scheme, None, q, k, v, cache=within)
        assert np.isfinite(out).all() == holds


@pytest.mark.parametrize("lib", [np, jnp], ids=["numpy", "jax"])
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize(
    ("text", "farthest"),
    [
        ("offset(120)", 220),
        ("offset(60000)", 60100),
        ("given('digit', shift=99)", None),
        ("axes('digit', 'index', shift=300)", None),
        ("skip(70000)", None),
    ],
)
def test_sums_of_placed_integers_do_not_wrap(text, farthest, kind, lib):
    scheme = posenc.parse(f"{'nope' if 'axes' not in text else 'rope_2d'} @ {text}")
    given = {"index": np.arange(100), "digit": np.arange(100) + 20, "length": 100}
    narrow = given | {name: lib.asarray(given[name], kind) for name in ("index", "digit")}
    for train in (True, False):
        wide, ours = (posenc.place(scheme, jax.random.key(3), g, train=train) for g in (given, narrow))
        np.testing.assert_array_equal(np.asarray(ours).astype(int), np.asarray(wide).astype(int))
    assert farthest is None or int(np.max(ours)) == farthest


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_positions_of_16_bit_floats_are_refused_wherever_they_are_handed_over(kind):
    positions, scheme = jnp.arange(9).astype(kind), posenc.parse("rope")
    for call in (
        lambda: posenc.attend(scheme, None, *qkv(9), positions=positions),
        lambda: jax.jit(lambda p: posenc.attend(scheme, None, *qkv(9), positions=p))(positions),
        lambda: posenc.embed(posenc.parse("sinusoidal"), None, jnp.ones((9, 16)), positions=positions),
        lambda: posenc.place(posenc.parse("rope @ offset(3)"), jax.random.key(0), {"index": positions, "length": 9}),
    ):
        with pytest.raises(TypeError, match=kind):
            call()


@pytest.mark.parametrize("text", ["rope", "alibi", "xpos", "sinusoidal"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_positions_that_are_no_numbers_are_refused_unless_they_are_of_padding(text, bad):
    scheme, q, k, v = posenc.bind(text, DIMS), *qkv(4)
    positions = np.array([0, 1, 2, bad], np.float32)
    with pytest.raises(ValueError, match=f"positions holds {bad}"):
        posenc.attend(scheme, None, q, k, v, positions=positions)
    if np.isnan(bad):
        posenc.attend(scheme, None, q, k, v, positions=positions, segments=np.array([1, 1, 1, 0]))
    inside = jax.jit(lambda p: posenc.attend(scheme, None, q, k, v, positions=p))
    assert np.isnan(inside(positions)).all()


@pytest.mark.parametrize("text", ["rope", "alibi", "yarn"])
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float64"])
def test_64_bit_positions_are_exact_or_refused(text, kind):
    with jax.enable_x64(True):
        scheme, dtype = posenc.bind(text, DIMS), jnp.dtype(kind)
        q, k, v = (jnp.asarray(a, dtype) for a in qkv(4))
        near = np.arange(4) + 2**20
        far = near - 2**20 + 2**31 - 8
        run = lambda p: posenc.attend(scheme, None, q, k, v, positions=p)  # noqa: E731
        at, expected = (np.asarray(run(p.astype(np.int64)), np.float32) for p in (far, near))
        np.testing.assert_allclose(at, expected, atol=2e-2 if kind == "bfloat16" else 2e-5)
        with pytest.raises(ValueError, match="2147483651"):
            run(np.arange(4) + 2**31)
        assert np.isnan(jax.jit(run)(np.arange(4) + 2**31)).all()


def test_unsigned_positions_inside_jit_do_not_wrap_to_small_ones():
    scheme, q, k, v = posenc.parse("rope"), *qkv(4)
    run = jax.jit(lambda p: posenc.attend(scheme, None, q, k, v, positions=p))
    assert np.isnan(run(np.array([2**32 - 2, 2**32 - 1, 0, 1], np.uint32))).all()
    assert np.isfinite(run(np.arange(4, dtype=np.uint32))).all()
