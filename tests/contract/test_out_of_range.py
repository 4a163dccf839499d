"""What 32 bits, a type or the memory cannot hold: refused in one sentence where it is known, NaN inside jit, never a
number."""

from dataclasses import fields

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Cache, Dims, Prefix, Window, attend, embed
from posenc.core.scheme import SCHEMES
from posenc.numerics import sizes
from tests.contract.test_attention import ALIBI, DIMS, NONE, NOPE, ROPE, D, H, close, draw, qkv, refused
from tests.night import by_day

ENDS = np.array([-(2**31), 0, 1, 2, 3, 4, 5, 6, 2**31 - 1], np.int32)
NEAR = np.array([-(2**30) + 1, 0, 1, 2, 3, 4, 5, 6, 2**30 - 1], np.int32)
DISTANT = (
    "alibi",
    "t5(bidirectional=True)",
    "kerple",
    "shaw",
    "sandwich",
    "log_cpb",
    "deberta",
    "rope",
    "rope + alibi",
)


def made(text):
    scheme = posenc.bind(posenc.parse(text), DIMS)
    return scheme, posenc.init(scheme, jax.random.key(0), DIMS)


def traced(scheme, params, tokens=9, **about):
    """Attention inside jit, where the values of `about` are unknown."""
    q, k, v = qkv(tokens, tokens)
    return np.asarray(jax.jit(lambda about: attend(scheme, params, q, k, v, **about))(about))


@pytest.mark.parametrize("text", by_day(DISTANT, DISTANT[::4]))
def test_positions_whose_differences_wrap_are_refused_and_nan_inside_jit(text):
    (scheme, params), (q, k, v) = made(text), qkv(9, 9)
    run = lambda positions, **about: attend(scheme, params, q, k, v, positions=positions, **about)  # noqa: E731
    refused(ValueError, "holds 2147483647; differences of positions fit", lambda: run(ENDS))
    refused(ValueError, "holds -1073741824;", lambda: run(NEAR - 1))
    assert np.isfinite(run(NEAR)).all() and np.isfinite(traced(scheme, params, positions=NEAR)).all()
    for wrong in (ENDS, NEAR - 1, NEAR + 1):
        assert np.isnan(traced(scheme, params, positions=wrong)).all()


def test_real_positions_are_served_inside_jit_as_outside():
    q, k, v = qkv(9, 9)
    near, far = np.arange(9, dtype=np.float32) / 2, np.full(9, 2.0**31, np.float32)
    close(traced(ALIBI, NONE, positions=near), attend(ALIBI, NONE, q, k, v, positions=near))
    refused(ValueError, "holds 2147483648.0", lambda: attend(ALIBI, NONE, q, k, v, positions=far))
    assert np.isnan(traced(ALIBI, NONE, positions=far)).all()


def test_positions_that_are_known_inside_jit_are_refused_there():
    q, k, v = qkv(9, 9)
    refused(ValueError, "give numbers between", jax.jit(lambda: attend(ALIBI, NONE, q, k, v, positions=ENDS)))


def test_positions_of_padding_may_be_anything():
    segments, (q, k, v) = np.array([0, 1, 1, 1, 1, 2, 2, 2, 0]), qkv(9, 9)
    calm = np.where(segments > 0, ENDS, 0)
    out = attend(ALIBI, NONE, q, k, v, positions=ENDS, segments=segments)
    close(out, attend(ALIBI, NONE, q, k, v, positions=calm, segments=segments))
    close(traced(ALIBI, NONE, positions=ENDS, segments=segments), out)


def test_one_sequence_of_a_batch_is_nan_and_the_others_are_not():
    q, k, v = qkv(9, 9, batch=(2,))
    positions = np.stack([np.arange(9, dtype=np.int32), ENDS])
    out = jax.jit(lambda p: attend(ALIBI, NONE, q, k, v, positions=p))(positions)
    assert np.isnan(out[1]).all()
    close(out[0], attend(ALIBI, NONE, q[0], k[0], v[0]))


@pytest.mark.parametrize("kernel", ["dense", "tiled", "rows"])
@pytest.mark.parametrize(
    "segments", [[1, 1, 2, 2, 1, 1, 3, 3, 3], [1, 1, -1, 2, 2, 2, 2, 3, 3], [2, 1, 0, 2, 0, 0, 0, 0, 0]]
)
def test_documents_that_eager_attention_refuses_are_nan_inside_jit(segments, kernel):
    segments, (q, k, v) = np.array(segments), qkv(9, 9)
    with pytest.raises(ValueError, match="after another|-1"):
        attend(NOPE, NONE, q, k, v, segments=segments)
    assert np.isnan(traced(NOPE, NONE, segments=segments) if kernel == "dense" else jax.jit(
        lambda s: attend(NOPE, NONE, q, k, v, segments=s, kernel=kernel))(segments)).all()  # fmt: skip


@pytest.mark.parametrize("segments", [[3, 3, 0, 3, 1, 0, 0, 1, 2], [0, 2, 2, 1, 1, 1, 1, 0, 0], [0] * 9, [7] * 9])
def test_documents_that_eager_attention_takes_are_the_same_inside_jit(segments):
    segments, (q, k, v) = np.array(segments), qkv(9, 9)
    close(traced(ALIBI, NONE, segments=segments), attend(ALIBI, NONE, q, k, v, segments=segments))


def test_the_input_is_nan_too():
    (scheme, params), x = made("sinusoidal"), draw(9, H * D)
    run = jax.jit(lambda **about: embed(scheme, params, x, **about))
    assert np.isnan(run(positions=ENDS)).all() and np.isnan(run(segments=np.array([1, 2, 1] * 3))).all()
    assert np.isfinite(run(positions=NEAR)).all()
    refused(ValueError, "give numbers between", lambda: embed(scheme, params, x, positions=ENDS))


def decoder(scheme=ALIBI, params=NONE, ring=False):
    cache = Cache.empty(scheme, params, DIMS, batch=1, capacity=9, dtype=jnp.float32, ring=ring)
    q, k, v = qkv(9, 9, batch=(1,))

    def step(n, cache, **about):
        cut = lambda a: a[:, n : n + 1]  # noqa: E731
        mask = Window(2, 0) if ring else "causal"
        return attend(scheme, params, cut(q), cut(k), cut(v), cache=cache, mask=mask, **about)

    return cache, step


@pytest.mark.parametrize("compiled", [False, True])
def test_a_document_that_comes_again_in_a_cache_is_nan_from_then_on(compiled):
    cache, step = decoder()
    step = jax.jit(step, static_argnums=0) if compiled else step
    for n, document in enumerate([1, 1, 2, 2, 1, 1]):
        out, cache = step(n, cache, segments=np.array([[document]]))
        assert np.isnan(out).all() == (n >= 4), n


def test_positions_out_of_range_stay_nan_in_a_cache():
    cache, step = decoder()
    run = jax.jit(step, static_argnums=0)
    for n, position in enumerate([0, 1, 2**31 - 1, 3, 4]):
        out, cache = run(n, cache, positions=np.array([[position]], np.int32))
        assert np.isnan(out).all() == (n >= 2), n
    refused(ValueError, "give numbers between", lambda: step(5, cache, positions=np.array([[2**30]], np.int32)))


def test_a_start_or_a_prefix_out_of_range_is_refused_and_nan_inside_jit():
    q, k, v = qkv(9, 9)
    for start in (2**31, 2**30 - 8, 10**30):
        refused(ValueError, "query_start is ", lambda s=start: attend(ALIBI, NONE, q, k, v, query_start=s))
    assert np.isnan(traced(ALIBI, NONE, query_start=np.int32(-1))).all()
    assert np.isnan(traced(ALIBI, NONE, query_start=np.int32(2**30))).all()
    refused(ValueError, "prefix is 2147483648", lambda: attend(ALIBI, NONE, q, k, v, mask=Prefix(2**31)))
    cut = jax.jit(lambda n: attend(ALIBI, NONE, q, k, v, mask=Prefix(n)))
    assert np.isnan(cut(np.int32(-3))).all() and np.isfinite(cut(np.int32(3))).all()


def test_windows_beyond_32_bits_are_refused():
    refused(ValueError, "left is 2147483648; it is below", lambda: Window(2**31, 0))
    refused(ValueError, "right is 9{60}|right is 9+...;", lambda: Window(0, 10**70 - 1))
    refused(ValueError, "sinks is", lambda: Window(2**28, 0, 2**31))
    for count in ("999999999999999999999", "0x" + "f" * 4000):
        refused(ValueError, "window is .*; it is below", lambda c=count: posenc.parse(f"rope + window({c})"))


def test_heads_without_features_are_refused():
    q, k, v = qkv(9, 9)
    for scheme in (ROPE, NOPE, ALIBI):
        refused(ValueError, "at least 1 feature", lambda s=scheme: attend(s, NONE, q[..., :0], k[..., :0], v))


@pytest.mark.parametrize("name", ["trained", "longest", "width", "heads", "head"])
def test_sizes_that_no_index_counts_are_refused(name):
    about = {"width": 16, "heads": 2, "head": 8, "trained": 16} | {name: 10**12}
    refused(ValueError, f"{name} is 1000000000000; it is below", lambda: Dims(**about))


def test_parameters_and_caches_that_no_memory_holds_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(sizes, "memory", lambda: 2**30)
    monkeypatch.setattr(jax, "device_count", lambda: 1)
    learned, large = posenc.parse("learned"), Dims(64, 2, 32, 2**29)
    make = lambda key: posenc.init(learned, key, large)  # noqa: E731
    match = "parameters of 'learned'.* take 512 GiB, and this machine has 1 GiB; lower longest"
    refused(ValueError, match, lambda: make(jax.random.key(0)))
    refused(ValueError, match, lambda: jax.jit(make)(jax.random.key(0)))
    refused(ValueError, "'shaw'", lambda: posenc.init(posenc.parse("shaw(reach=1000000000)"), jax.random.key(0), DIMS))
    empty = lambda **about: Cache.empty(ROPE, NONE, DIMS, **{"batch": 1, "capacity": 9, "dtype": jnp.float32} | about)  # noqa: E731
    refused(ValueError, "capacity is 2147483648; it is below", lambda: empty(capacity=2**31))
    refused(ValueError, "take .* GiB, and this machine has 1 GiB; lower batch or capacity", lambda: empty(batch=10**7))
    assert empty().k.shape == (1, H, 9, D) and posenc.init(learned, jax.random.key(0), DIMS)


SETTINGS = [(n, f.name) for n in posenc.names() for f in fields(SCHEMES.find(n)) if type(f.default) is int]


@pytest.mark.parametrize(("name", "setting"), SETTINGS)
def test_every_whole_setting_has_a_bound(name, setting):
    for number in (2**31, 10**30, -(10**30), int("f" * 4000, 16)):
        with pytest.raises(ValueError, match=f"{setting}|'{name}'") as refusal:
            SCHEMES.find(name)(**{setting: number})
        assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    "text",
    ["t5(reach=99999999)", "deberta(reach=99999999)", "rope @ random_sorted(100000000)", "rope @ offset(99999999999)",
     "log_cpb(depth=100000)", " + ".join(["rope"] * 500), "[" + "nope," * 1100 + "]", 
     "t5(buckets=0x" + "f" * 4000 + ")"],
)  # fmt: skip
def test_texts_that_would_take_hours_or_all_memory_are_refused(text):
    with pytest.raises(ValueError) as refusal:
        posenc.parse(text if len(text) < 4096 else text[:4095])
    assert str(refusal.value).endswith(".") and len(str(refusal.value)) < 300 and "Exceeds" not in str(refusal.value)
