"""Attention itself: who sees whom against a loop in NumPy, the cache, what positions may be, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Cache, Dims, Window, attend, embed
from tests.contract.toys import Grid
from tests.oracles import loop

H, D = 4, 8
DIMS = Dims(width=H * D, heads=H, head=D, trained=16)
NOPE, ALIBI, ROPE, FOX = (posenc.parse(name) for name in ("nope", "alibi", "rope", "fox"))
NONE = {"layer": {}, "heads": {}}
TWO = np.array([1, 1, 1, 1, 2, 2, 2, 2, 2], np.int32)
PADS = np.array([0, 0, 1, 1, 1, 0, 3, 3, 0], np.int32)
MASKS = ("causal", "full", Window(2, 0), Window(0, 3), Window(1, 1), Window(None, 2), Window(0, 0))


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def qkv(queries, keys, groups=H, batch=(), width=D):
    return draw(*batch, queries, H, D), draw(*batch, keys, groups, D, seed=1), draw(*batch, keys, groups, width, seed=2)


def sees(mask, queries, keys, start=0, qs=None, ks=None):
    """Who sees whom, said once more and pair by pair."""
    seen = np.zeros((queries, keys), bool)
    for i in range(queries):
        for j in range(keys):
            back = start + i - j
            left = getattr(mask, "left", None)
            right = getattr(mask, "right", 0 if mask == "causal" else None)
            inside = (left is None or back <= left) and (right is None or -back <= right)
            seen[i, j] = inside and (ks is None or (qs[i] == ks[j] and ks[j] > 0))
    return seen


def expected(q, k, v, seen, penalty=lambda h, i, j: 0.0):
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    k, v = (np.stack([a[:, h * a.shape[1] // H] for h in range(H)], 1) for a in (k, v))
    score = lambda h, p, i, j: loop.dot(q, k, h, i, j) - penalty(h, i, j)  # noqa: E731
    return loop.attend([None] * H, q, k, v, seen, score)


def close(ours, theirs):
    np.testing.assert_allclose(np.asarray(ours), theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("segments", [None, TWO, PADS], ids=["one", "packed", "padded"])
def test_masks_and_documents_are_those_of_the_loop(mask, segments):
    q, k, v = qkv(9, 9)
    seen = sees(mask, 9, 9, qs=segments, ks=segments)
    close(attend(NOPE, NONE, q, k, v, mask=mask, segments=segments), expected(q, k, v, seen))


@pytest.mark.parametrize("mask", ["causal", "full", Window(2, 1)], ids=str)
@pytest.mark.parametrize("queries, keys, start", [(3, 9, None), (9, 3, None), (3, 9, 4), (1, 9, 8), (5, 1, 0)])
def test_queries_and_keys_of_different_lengths_are_those_of_the_loop(mask, queries, keys, start):
    q, k, v = qkv(queries, keys)
    slope = lambda h, i, j: 2.0 ** (-8 * (h + 1) / H) * abs((start or 0) + i - j)  # noqa: E731
    theirs = expected(q, k, v, sees(mask, queries, keys, start or 0), slope)
    close(attend(ALIBI, NONE, q, k, v, mask=mask, query_start=start), theirs)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("width", [D, 3])
def test_query_heads_share_key_heads_in_order(groups, width):
    q, k, v = qkv(6, 6, groups, width=width)
    close(attend(NOPE, NONE, q, k, v), expected(q, k, v, sees("causal", 6, 6)))


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=str)
def test_batch_axes_of_any_number_are_one_sequence_after_another(batch):
    q, k, v = qkv(9, 9, batch=batch)
    segments = np.broadcast_to(PADS, (*batch, 9))
    out = attend(NOPE, NONE, q, k, v, segments=segments)
    seen = sees("causal", 9, 9, qs=PADS, ks=PADS)
    assert out.shape == q.shape
    for place in np.ndindex(*batch):
        close(out[place], expected(q[place], k[place], v[place], seen))
    np.testing.assert_array_equal(out, attend(NOPE, NONE, q, k, v, segments=PADS))


@pytest.mark.parametrize("batch, queries, keys", [((), 0, 0), ((), 0, 5), ((), 5, 0), ((2,), 0, 0), ((0,), 4, 4)])
@pytest.mark.parametrize("scheme", ["nope", "rope + alibi", "fox"])
def test_nothing_in_is_nothing_out(scheme, batch, queries, keys):
    q, k, v = qkv(queries, keys, batch=batch)
    s = posenc.parse(scheme)
    x, key_x = np.zeros((*batch, queries, H * D), np.float32), np.zeros((*batch, keys, H * D), np.float32)
    out = attend(s, posenc.init(s, jax.random.key(0), DIMS), q, k, v, x=x, key_x=None if queries == keys else key_x)
    assert out.shape == q.shape and not np.any(np.asarray(out))
    assert embed(posenc.parse("sinusoidal"), NONE, x).shape == x.shape


@pytest.mark.ci
def test_keys_default_to_the_queries_where_lengths_agree():
    """Whatever is said of the keys apart, the rest is the queries': a document stays closed."""
    q, k, v = qkv(9, 9)
    told = {"positions": np.arange(9) * 2, "segments": TWO}
    whole = attend(ALIBI, NONE, q, k, v, **told)
    for name, value in told.items():
        close(attend(ALIBI, NONE, q, k, v, **told, **{f"key_{name}": value}), whole)
    x, params = draw(9, H * D, seed=3), posenc.init(FOX, jax.random.key(0), DIMS)
    close(attend(FOX, params, q, k, v, x=x, key_x=x, segments=TWO), attend(FOX, params, q, k, v, x=x, segments=TWO))


def test_a_window_narrows_the_mask_and_is_part_of_the_scheme():
    q, k, v = qkv(9, 9)
    s = posenc.parse("nope + window(3)")
    close(attend(s, NONE, q, k, v), attend(NOPE, NONE, q, k, v, mask=Window(2, 0)))
    close(attend(s, NONE, q, k, v, mask="full"), attend(NOPE, NONE, q, k, v, mask=Window(1, 1)))
    close(attend(s, NONE, q, k, v, mask=Window(1, 0)), attend(NOPE, NONE, q, k, v, mask=Window(1, 0)))
    changed = attend(NOPE, NONE, q, np.where(np.arange(9)[:, None, None] == 5, 9, k), v, mask=Window(2, 0))
    same = np.all(np.asarray(changed == attend(NOPE, NONE, q, k, v, mask=Window(2, 0))), (1, 2))
    np.testing.assert_array_equal(same, [True] * 5 + [False] * 3 + [True])


@pytest.mark.ci
def test_positions_have_as_many_axes_as_each_part_has():
    q, k, v = qkv(9, 9, batch=(2,))
    grid = np.stack([np.arange(9) // 3, np.arange(9) % 3], -1)
    whole = attend(Grid(), NONE, q, k, v, positions=grid)
    close(attend(Grid(), NONE, q, k, v, positions=np.stack([grid, grid])), whole)
    both = attend(ROPE + Grid(), (NONE, NONE), q, k, v, positions=(np.zeros(9, np.int32), grid))
    close(both, whole)
    close(attend(Grid(), NONE, q, k, v), attend(Grid(), NONE, q, k, v, positions=np.stack([np.arange(9)] * 2, -1)))
    refused(ValueError, "it is .9, 2", lambda: attend(Grid(), NONE, q, k, v, positions=np.arange(9)))
    refused(ValueError, "as a tuple", lambda: attend(ROPE + Grid(), (NONE, NONE), q, k, v, positions=grid))


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("text", ["mrope(sections=(2, 1, 1))", "rope_2d", "rope_2d + rope"])
def test_there_may_be_as_many_tokens_as_axes(text, batch):
    """Positions of padding are set aside, token by token, and no others."""
    scheme, far = posenc.bind(text, DIMS), 2**30
    axes = 3 if "mrope" in text else 2
    q, k, v = qkv(axes, axes, batch=(batch,))
    segments = (np.arange(axes)[None, :] < axes - np.arange(batch)[:, None] % 2).astype(np.int32)
    plane = np.where(segments[..., None] > 0, np.arange(axes, dtype=np.int32), far)
    placed = lambda plane: (plane, plane[..., 0]) if "+" in text else plane  # noqa: E731
    run = lambda plane: attend(scheme, None, q, k, v, positions=placed(plane), segments=segments)  # noqa: E731
    close(run(plane), run(np.where(plane == far, 0, plane)))
    plane[0, 0, -1] = far
    refused(ValueError, f"positions holds {far}", lambda: run(plane))


def test_a_part_that_refuses_positions_refuses_them_in_a_sum():
    table = posenc.parse("learned + rope")
    params = posenc.init(table, jax.random.key(0), DIMS)
    x = draw(3, H * D)
    refused(ValueError, "Position 16 has no row", lambda: embed(table, params, x, positions=np.array([3, 16, 4])))


def test_positions_of_padding_are_not_judged_and_documents_begin_anew():
    table = posenc.parse("learned")
    params = posenc.init(table, jax.random.key(0), DIMS)
    x, segments = draw(24, H * D), np.repeat([1, 2], 12)
    out = embed(table, params, x, segments=segments)
    close(np.asarray(out - x)[:12], np.asarray(out - x)[12:])
    padded = embed(table, params, x, positions=np.arange(24) + 2, segments=(np.arange(24) < 10).astype(np.int32))
    assert np.all(np.isfinite(np.asarray(padded)))
    refused(ValueError, "Position 23 has no row", lambda: embed(table, params, x))


@pytest.mark.ci
def test_queries_may_be_lists_of_numbers():
    q, k, v = qkv(3, 3)
    np.testing.assert_array_equal(attend(ROPE, NONE, *(a.tolist() for a in (q, k, v))), attend(ROPE, NONE, q, k, v))


def refused(kind, match, act):
    """One sentence: what was given, what is allowed."""
    with pytest.raises(kind, match=match) as caught:
        act()
    said = str(caught.value)
    assert said.endswith(".") and "\n" not in said and len(said) < 300, said


Q, K, V = qkv(9, 9)
ACT = {
    "ranks": (ValueError, "alike; given were q .9, 4.", {"q": Q[:, :, 0]}),
    "types": (TypeError, "share one floating type; given were .*bfloat16", {"q": Q.astype(jnp.bfloat16)}),
    "integers": (TypeError, "floating type", {n: a.astype(np.int32) for n, a in zip("qkv", (Q, K, V), strict=True)}),
    "float64": (TypeError, "q is float64", {"q": Q.astype(np.float64)}),
    "8 bits": (
        TypeError,
        "have 16 bits or more; given were q .* float8_e4m3fn",
        {n: a.astype(jnp.float8_e4m3fn) for n, a in zip("qkv", (Q, K, V), strict=True)},
    ),
    "key length": (ValueError, "key length", {"v": V[:5]}),
    "features": (ValueError, "features", {"k": K[..., :4]}),
    "key heads": (ValueError, "3 key heads do not divide 4", {"k": K[:, :3], "v": V[:, :3]}),
    "mask's name": (ValueError, "mask is 'past'; it is 'causal', 'full', a posenc.Window", {"mask": "past"}),
    "no mask": (ValueError, "mask is None, .* write mask='full' for that, or mask='causal'", {"mask": None}),
    "mask of numbers": (TypeError, "mask is an array of float64", {"mask": np.ones((9, 9))}),
    "kernel": (ValueError, "kernel is 'fast'; it is one of 'auto'", {"kernel": "fast"}),
    "positions' shape": (ValueError, r"positions has the shape \(8,\); it is \(9,\)", {"positions": np.arange(8)}),
    "positions' type": (TypeError, "type bool; it holds whole numbers or real", {"positions": np.arange(9) > 3}),
    "positions of text": (TypeError, "positions is 'abc'; it is an array of numbers", {"positions": "abc"}),
    "no queries": (TypeError, "q is None; it is an array of numbers", {"q": None}),
    "keys' document again": (ValueError, "key_segments names", {"segments": TWO, "key_segments": [1, 2, 1] * 3}),
    "positions for parts": (ValueError, "tuple of 2.*give one array", {"positions": (np.arange(9),) * 2}),
    "segments' shape": (ValueError, "segments has the shape", {"segments": TWO[:4]}),
    "segments' type": (TypeError, "type float32; it holds documents' numbers", {"segments": TWO.astype(np.float32)}),
    "x": (ValueError, r"x has the shape \(8, 32\)", {"x": draw(8, 32)}),
    "one side's positions": (ValueError, "both positions and key_positions", {"key_positions": np.arange(9)}),
    "one side's segments": (ValueError, "both segments and key_segments", {"key_segments": TWO}),
    "start": (ValueError, "query_start is -1", {"query_start": -1}),
    "start in a document": (ValueError, "start is unknown", {"query_start": 0, "segments": TWO, "key_segments": TWO}),
    "params of none": (TypeError, "make them with posenc.init", {"params": {"layers": {}}}),
    "params of two": (TypeError, "make them with posenc.init", {"params": (NONE, NONE)}),
    "params of others": (ValueError, "has no parameter 'a'", {"params": {"layer": {}, "heads": {"a": np.ones(8)}}}),
    "a pattern": (TypeError, "a pattern of layers", {"scheme": posenc.parse("[rope, nope]")}),
    "a text": (TypeError, "A scheme was expected, such as", {"scheme": "rope"}),
    "no positions": (ValueError, "posenc.place", {"scheme": posenc.parse("rope @ random_sorted(64)")}),
    "open settings": (ValueError, "leaves trained open; call posenc.bind", {"scheme": posenc.parse("log_n")}),
    "features not given": (ValueError, "pass x", {"scheme": FOX}),
    "a future": (ValueError, "causal only", {"scheme": FOX, "x": draw(9, 32), "mask": "full"}),
    "an even window": (ValueError, "take an odd", {"scheme": posenc.parse("nope + window(2)"), "mask": "full"}),
}


@pytest.mark.parametrize("name", ACT)
def test_attend_refuses(name):
    kind, match, given = ACT[name]
    given = {"scheme": NOPE, "params": NONE, "q": Q, "k": K, "v": V} | given
    first = [given.pop(name) for name in ("scheme", "params", "q", "k", "v")]
    refused(kind, match, lambda: attend(*first, **given))


@pytest.mark.ci
def test_a_scheme_of_one_sequence_refuses_two():
    table, (q, k, v) = posenc.parse("t5(bidirectional=True)"), qkv(2, 9)
    params = posenc.init(table, jax.random.key(0), DIMS)
    run = lambda **about: attend(table, params, q, k, v, mask="full", **about)  # noqa: E731
    refused(ValueError, "'t5' is undefined between two.*2 queries and 9 keys.*query_start", run)
    refused(ValueError, "2 from index 8 on are not among 9", lambda: run(query_start=8))
    assert run(query_start=7).shape == q.shape
    gates, x, key_x = posenc.init(FOX, jax.random.key(0), DIMS), draw(2, H * D), draw(9, H * D)
    refused(ValueError, "10 on", lambda: attend(FOX, gates, q, k, v, x=x, key_x=key_x, query_start=10))


def test_a_list_of_arrays_and_a_part_left_out_are_refused_for_a_sum():
    index = np.arange(9)
    run = lambda positions: attend(ROPE + ALIBI, (NONE, NONE), Q, K, V, positions=positions)  # noqa: E731
    refused(TypeError, "list of 2, given to a sum; give a tuple", lambda: run([index, index]))
    refused(TypeError, "None for a part", lambda: run((None, index)))
    close(run(list(range(9))), run((index, index)))


def test_attend_refuses_what_two_sums_disagree_on():
    refused(ValueError, "differently", lambda: posenc.bind(posenc.parse("t5(bidirectional=False)") + Rescaled(), DIMS))
    three = (np.arange(9),) * 3
    refused(ValueError, "tuple of 3", lambda: attend(ROPE + ALIBI, (NONE, NONE), Q, K, V, positions=three))
    about = {"x": draw(3, 32), "query_start": 2}
    params = posenc.init(FOX, jax.random.key(0), DIMS)
    refused(ValueError, "pass key_x", lambda: attend(FOX, params, Q[:3], K, V, **about))


class Rescaled(posenc.Scheme, name=None):
    """A scale of its own."""

    def scale(self, d):
        return 0.5


@pytest.mark.parametrize(
    "kind, match, given",
    [
        (ValueError, "floating numbers", {"x": np.zeros((9, 32), np.int32)}),
        (ValueError, r"floating numbers, \[..., length", {"x": draw(32)}),
        (TypeError, "x is float64", {"x": draw(9, 32).astype(np.float64)}),
        (TypeError, "must be integers, not float32", {"positions": np.arange(9) / 2}),
        (ValueError, "Position -1 has no row", {"positions": np.arange(9) - 1}),
        (ValueError, "Position 16 has no row in the table of 'learned'", {"positions": np.arange(9) + 8}),
        (ValueError, "positions has the shape", {"positions": np.arange(8)}),
        (TypeError, "segments is of type", {"segments": np.ones(9)}),
        (TypeError, "posenc.init", {"params": {"table": np.ones((16, 32))}}),
        (ValueError, "posenc.place", {"scheme": posenc.parse("learned @ offset")}),
    ],
)
def test_embed_refuses(kind, match, given):
    scheme = posenc.parse("learned")
    given = {"scheme": scheme, "params": posenc.init(scheme, jax.random.key(0), DIMS), "x": draw(9, 32)} | given
    first = [given.pop(name) for name in ("scheme", "params", "x")]
    refused(kind, match, lambda: embed(*first, **given))


def test_whole_numbers_of_numpy_are_whole_numbers():
    assert Window(np.int64(3), np.int32(0)) == Window(3, 0) and type(Window(np.int64(3)).left) is int
    cache = Cache.empty(ROPE, NONE, DIMS, batch=np.int64(2), capacity=np.int32(9), dtype=np.float32)
    assert cache.k.shape == (2, H, 9, D)


@pytest.mark.parametrize("given", [{"left": -1}, {"right": 1.5}, {"left": True}, {"left": np.True_}])
def test_windows_without_a_meaning_are_refused(given):
    refused(ValueError, "is a number of neighbours, at least 0, or None", lambda: Window(**given))
