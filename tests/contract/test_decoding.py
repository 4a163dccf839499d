"""Decoding: rings for windows, prompts of different lengths side by side, whole generations from one compilation.

That a whole cache equals the full forward, for every scheme and schedule, is in the contract (`posenc.check`).
"""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Cache, Dims, Window, attend
from posenc.contract.case import restarted
from posenc.core.compose import normal_form
from tests.contract.test_attention import refused
from tests.night import by_day

H, G, D, LONG = 4, 2, 8, 60
DIMS = Dims(width=H * D, heads=H, head=D, trained=16, longest=64, key_heads=G)
NONE = {"layer": {}, "heads": {}}
LOOK, PLACES = Window(4, 0), 8
"""Four neighbours and chunks of up to four tokens: the smallest ring that may serve them."""
MIXED = (4, 4, 1, 3, 1, 1, 4, 3, 3, 1)
ACTING = ("query", "key", "value", "score", "normalize", "value_bias", "output", "locate")


def batch():
    """A plain, a packed, a left-padded and a gapped example; documents are longer than the ring, and shorter."""
    packed, padded, gapped = (np.ones(LONG, np.int32) for _ in range(3))
    packed[3:], packed[30:], packed[31:], packed[57:] = 2, 3, 4, 5
    padded[:11] = 0
    gapped[12:], gapped[5:8], gapped[17:20], gapped[33:44] = 2, 0, 0, 0
    return np.stack([np.ones(LONG, np.int32), packed, padded, gapped])


SEGMENTS = batch()


def made(text):
    """A scheme fitted to these sizes, and parameters away from where they start."""
    scheme = posenc.bind(posenc.parse(text), DIMS)
    rng = np.random.default_rng(0)
    params = posenc.init(scheme, jax.random.key(0), DIMS)
    return scheme, jax.tree.map(lambda a: np.asarray(a) * 1.0 + 0.1 * rng.normal(size=np.shape(a)), params)


def drawn(rows, length):
    rng = np.random.default_rng(1)
    q, k, v = (rng.normal(size=(rows, length, heads, D)) for heads in (H, G, G))
    return q, k, v, rng.normal(size=(rows, length, H * D))


def empty(scheme, params, rows, capacity, **about):
    return Cache.empty(scheme, params, DIMS, batch=rows, capacity=capacity, dtype=jnp.float64, **about)


def stepper(scheme, params, **about):
    """One call, compiled once for each size of chunk."""
    return jax.jit(lambda q, k, v, x, here, cache: attend(scheme, params, q, k, v, x=x, cache=cache, **here, **about))


def full(scheme, params, tokens, **about):
    """All at once, as one program."""
    run = jax.jit(lambda q, k, v, x: attend(scheme, params, q, k, v, x=x, **about))
    return run(*tokens)


def decode(step, cache, tokens, schedule=MIXED, **here):
    """What all calls return, one after another, and the last cache; `here` is passed a chunk at a time."""
    out, start, length, chunks = [], 0, tokens[0].shape[1], list(schedule)
    while start < length:
        size = min(chunks[0], length - start)
        chunks.append(chunks.pop(0))
        part = slice(start, start := start + size)
        given, told = jax.tree.map(operator.itemgetter((slice(None), part)), (tokens, here))
        o, cache = step(*given, told, cache)
        out.append(np.asarray(o))
    return np.concatenate(out, 1), cache


def same(ours, theirs):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), atol=1e-11, rtol=0)


def in_a_ring():
    """Schemes that a ring serves, without those that act on the input alone, which attention does not see."""
    for name in posenc.names():
        scheme = normal_form(posenc.bind(posenc.parse(name), DIMS)).scheme
        if (
            scheme.reads not in ("row", "heads")
            and not scheme.limits.keys() & {"cache", "reencoded"}
            and scheme.overrides(*ACTING)
        ):
            yield name


SUMS = ("ssmax + shaw(reach=3)", "log_n + rope + fox")
CHOSEN = ("nope", "rope", "t5", "fox", "deberta", "selective_rope", "rerope", "vo_rope", *SUMS)
RINGS = by_day(dict.fromkeys(("nope", *in_a_ring(), *SUMS)), CHOSEN)
"""All that a ring serves; some stand for all by day."""


@pytest.mark.parametrize("text", RINGS)
def test_a_ring_equals_the_full_forward_at_every_step(text, x64):
    """For many times its places, packed, padded and gapped, with chunks that fill it to the last place."""
    scheme, params = made(text)
    tokens = drawn(4, LONG)
    whole = full(scheme, params, tokens, segments=SEGMENTS, mask=LOOK)
    cache = empty(scheme, params, 4, PLACES, ring=True)
    out, cache = decode(stepper(scheme, params, mask=LOOK), cache, tokens, (4, 4, 1, 1), segments=SEGMENTS)
    same(out, whole)
    assert int(cache.length) == LONG and sorted(np.asarray(cache.index)) == list(range(LONG - PLACES, LONG))


def test_a_ring_holds_under_positions_that_are_given(x64):
    """Repeated, unordered and real ones: a ring counts places, never positions."""
    scheme, params = made("rope + kerple")
    tokens = drawn(4, LONG)
    told = np.random.default_rng(2).integers(0, 20, (4, LONG)) / 2
    whole = full(scheme, params, tokens, positions=told, mask=LOOK)
    cache = empty(scheme, params, 4, PLACES, ring=True, positions=jnp.float64)
    same(decode(stepper(scheme, params, mask=LOOK), cache, tokens, positions=told)[0], whole)


@pytest.mark.parametrize("text", ["key_weight + t5", "rope + key_weight", "{key_weight + t5, alibi}"])
def test_each_scheme_of_a_sum_has_positions_of_its_own_type(text, x64):
    """Areas are real, and positions of buckets are whole."""
    scheme, params = made(text)
    rng = np.random.default_rng(3)
    areas, index = rng.uniform(0.5, 2, (4, LONG)), np.broadcast_to(np.arange(LONG, dtype=np.int32), (4, LONG))
    told = tuple(areas if part.name == "key_weight" else index for part in scheme.parts)
    tokens, types = drawn(4, LONG), tuple(a.dtype for a in told)
    whole = full(scheme, params, tokens, positions=told)
    cache = empty(scheme, params, 4, LONG, positions=types)
    same(decode(stepper(scheme, params), cache, tokens, positions=told)[0], whole)
    refused(
        TypeError,
        "Positions are int32, .*, and the cache's (float64, int32|int32, float64)",
        lambda: attend(scheme, params, *(a[:, :1] for a in tokens[:3]), positions=index[:, :1], cache=cache),
    )


def test_a_document_outlives_its_first_token(x64):
    """Its positions go on where the ring forgot where it began, and a whole cache of it says the same."""
    scheme, params = made("sandwich + rope")
    tokens = drawn(4, LONG)
    run = stepper(scheme, params, mask=LOOK)
    ring, ours = decode(run, empty(scheme, params, 4, PLACES, ring=True), tokens, segments=SEGMENTS)
    whole, theirs = decode(run, empty(scheme, params, 4, LONG), tokens, segments=SEGMENTS)
    same(ring, whole)
    for n, segments in enumerate(SEGMENTS):
        began = LONG - 1 - restarted(segments)[-1]
        for cache in (ours, theirs):
            assert (int(cache.document[n]), int(cache.began[n])) == (segments[segments > 0][-1], began)
    places = np.asarray(ours.index)
    for stored, all_of_them in zip(ours.position, theirs.position, strict=True):
        np.testing.assert_array_equal(stored, np.asarray(all_of_them)[:, places])


@pytest.mark.parametrize("text", ["rope", "t5", "fox", "selective_rope", "ssmax", "log_n + shaw", "cope"])
def test_prompts_of_different_lengths_decode_side_by_side(text, x64):
    """Each row is what its tokens are alone, whichever side was padded: padding takes a place in the cache and,
    positions being given, none in the text."""
    scheme, params = made(text)
    prompts, new = (slice(6), slice(4, 6), slice(2)), 4
    tokens, total = drawn(3, 6 + new), 6 + new
    segments, positions = np.zeros((2, 3, total), np.int32)
    for n, prompt in enumerate(prompts):
        segments[n, prompt] = segments[n, 6:] = 1
        positions[n, segments[n] > 0] = np.arange(segments[n].sum())
    about = {"segments": segments, "positions": positions}
    out, cache = decode(stepper(scheme, params), empty(scheme, params, 3, total), tokens, (6, 1, 1, 1), **about)
    assert int(cache.length) == total
    alone = jax.jit(lambda q, k, v, x: attend(scheme, params, q, k, v, x=x))
    for n in range(3):
        real = segments[n] > 0
        same(out[n, real], alone(*(a[n, real] for a in tokens)))
        assert not np.any(out[n, ~real])


@pytest.mark.parametrize("ring", [False, True], ids=["whole", "ring"])
def test_one_compilation_serves_a_whole_generation(ring, x64):
    scheme, params = made("rope + fox")
    traces = []

    @jax.jit
    def step(q, k, v, x, here, cache):
        traces.append(q.shape)
        return attend(scheme, params, q, k, v, x=x, mask=LOOK, cache=cache)

    cache = empty(scheme, params, 2, PLACES if ring else LONG, ring=ring)
    first = jax.tree.map(lambda a: (jnp.shape(a), jnp.result_type(a)), cache)
    _, cache = decode(step, cache, drawn(2, LONG), (1,))
    assert len(traces) == 1 and int(cache.length) == LONG
    assert jax.tree.map(lambda a: (jnp.shape(a), jnp.result_type(a)), cache) == first


def test_a_whole_cache_never_overwrites(x64):
    """Past its end it gives NaN for good, and what is stored stays: on the host it is refused."""
    scheme, params = made("rope")
    q, k, v, x = drawn(1, 12)
    run, cache = stepper(scheme, params, mask=LOOK), empty(scheme, params, 1, 10)
    _, cache = decode(run, cache, tuple(a[:, :9] for a in (q, k, v, x)), (9,))
    part = tuple(a[:, 9:11] for a in (q, k, v, x))
    refused(ValueError, "9 of 10 slots and 2 more", lambda: attend(scheme, params, *part[:3], mask=LOOK, cache=cache))
    out, over = run(*part, {}, cache)
    assert np.all(np.isnan(out)) and np.all(np.isnan(run(*part, {}, over)[0]))
    np.testing.assert_array_equal(over.k[:, :, :9], cache.k[:, :, :9])


def test_rings_that_cannot_serve_are_refused():
    alibi, (q, k, v, _) = posenc.parse("alibi"), (a.astype(np.float32) for a in drawn(1, 9))
    make = lambda scheme=alibi, params=NONE, **about: Cache.empty(  # noqa: E731
        scheme, params, DIMS, **{"batch": 1, "capacity": PLACES, "dtype": jnp.float32, "ring": True} | about
    )
    ring = make()

    def run(new=1, mask=LOOK, **about):
        return attend(alibi, NONE, *(a[:, :new] for a in (q, k, v)), mask=mask, cache=ring, **about)

    refused(ValueError, "under this mask each needs all before it", lambda: run(mask="causal"))
    refused(ValueError, "8 slots was given 5 new tokens that see 4 before them, which takes 9", lambda: run(5))
    refused(
        ValueError,
        "8 slots was given 1 new tokens that see 8 before them, which takes 9",
        lambda: run(mask=Window(8, 0)),
    )
    refused(
        ValueError, "8 slots was given 9 new tokens that see 0 before them, which takes 9", lambda: run(9, Window(0, 0))
    )
    refused(ValueError, "sees no future", lambda: run(mask=Window(4, 1)))
    for kernel in ("tiled", "rows"):
        refused(ValueError, f"kernel='dense', not '{kernel}'", lambda kernel=kernel: run(kernel=kernel))
    refused(ValueError, "kernel is 'fast'", lambda: run(kernel="fast"))
    for text in ("stick_breaking", "cope", "path", "dape", "rope + cope"):
        refused(ValueError, "reads whole rows .* in the order of their indices", lambda text=text: make(*made(text)))
    refused(TypeError, "ring is 1; it is True or False", lambda: make(ring=1))
    for kernel in ("auto", "dense"):
        assert run(4, kernel=kernel)[0].shape == (1, 4, H, D)


@pytest.mark.parametrize("text", ["rope + fox", "{rope + t5, key_offset}"])
def test_a_cache_is_named_arrays_and_is_made_of_them_again(text):
    dims = Dims(width=32, heads=4, head=8, trained=16)
    scheme = posenc.bind(text, dims)
    params = posenc.init(scheme, jax.random.key(0), dims)
    q = np.random.default_rng(0).normal(size=(1, 3, 4, 8)).astype(np.float32)
    x = np.random.default_rng(1).normal(size=(1, 3, 32)).astype(np.float32)
    empty = posenc.Cache.empty(scheme, params, dims, batch=1, capacity=6)
    _, cache = posenc.attend(scheme, params, q, q, q, x=x, cache=empty)
    named = {name: np.asarray(a) for name, a in cache.flatten().items()}
    again = empty.unflatten(named)
    one, other = (posenc.attend(scheme, params, q, q, q, x=x, cache=c)[0] for c in (cache, again))
    np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="'more' is in one of the two alone"):
        empty.unflatten(named | {"more": np.zeros(1)})
    with pytest.raises(ValueError, match="'length' is float32"):
        empty.unflatten(named | {"length": np.float32(1)})
