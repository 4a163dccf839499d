"""Parameters and caches belong to a scheme and to sizes: others are refused by name, in one sentence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.core import freeze

import posenc
from posenc import Cache, Dims, attend, embed
from posenc.core.scheme import SCHEMES
from posenc.core.shapes import KnownSizes, check_params
from tests.contract.test_attention import ALIBI, DIMS, FOX, NONE, NOPE, ROPE, H, draw, qkv, refused

T5 = posenc.parse("t5(bidirectional=False)")
OTHER = Dims(width=64, heads=8, head=8, trained=16)


def made(scheme, dims=DIMS):
    return posenc.init(scheme, jax.random.key(0), dims)


@pytest.mark.parametrize("name", posenc.names())
def test_parameters_of_any_table_and_the_right_sizes_serve(name):
    cls = SCHEMES.find(name)
    for settings in ({}, *cls.samples):
        scheme = posenc.bind(cls(**settings), DIMS)
        for longest in (5, 77):
            params = made(scheme, Dims(DIMS.width, DIMS.heads, DIMS.head, trained=11, longest=longest))
            check_params(scheme, params, KnownSizes(DIMS.width, DIMS.heads, DIMS.head))
            check_params(scheme, params, KnownSizes(width=DIMS.width), shared=True)
            check_params(scheme, posenc.split(scheme, params)[0], KnownSizes(width=DIMS.width), shared=True)


WRONG = {
    "heads": (T5, made(T5, OTHER), r"'table' of 't5' has the shape \(8, 32\), but .* needs \(4, 32\)"),
    "names": (T5, {"layer": {}, "heads": {"tabel": np.ones((4, 32))}}, "lack 'table' of 't5'"),
    "more": (ROPE, made(T5), "'rope' has no parameter 'table'"),
    "width": (FOX, made(FOX, Dims(16, 4, 8, 16)), r"'w' of 'fox' .*\(4, 16\).*\(4, 32\)"),
    "a part": (NOPE + T5, (NONE, made(T5, OTHER)), "'table' of 't5'"),
    "a part of a part": (
        posenc.parse("nope + (rope + t5(bidirectional=False)) @ index"), (NONE, NONE, made(T5, OTHER)), "'table'",
    ),
    "rank": (T5, {"layer": {}, "heads": {"table": np.ones(4)}}, r"has the shape \(4\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_parameters_of_others_are_refused(name):
    scheme, params, match = WRONG[name]
    q, k, v = qkv(9, 9)
    run = lambda: attend(scheme, params, q, k, v, x=draw(9, 32), positions=np.arange(9))  # noqa: E731
    refused(ValueError, match, run)
    refused(ValueError, match, jax.jit(run))


def test_the_input_is_held_to_its_parameters_too():
    learned, x = posenc.parse("learned"), draw(9, 32)
    refused(ValueError, r"'table' of 'learned' has the shape \(16, 64\).*\(any, 32\)",
            lambda: embed(learned, made(learned, OTHER), x))  # fmt: skip
    refused(ValueError, "lack 'table' of 'learned'", lambda: embed(learned, NONE, x))
    both = learned + posenc.parse("shaw")
    shared = posenc.split(both, made(both))[0]
    np.testing.assert_array_equal(
        embed(both, shared, x), embed(learned, made(learned), x) * 0 + embed(both, made(both), x)
    )


def test_frozen_parameters_serve():
    q, k, v = qkv(9, 9)
    np.testing.assert_array_equal(attend(T5, freeze(made(T5)), q, k, v), attend(T5, made(T5), q, k, v))
    learned, x = posenc.parse("learned"), draw(9, 32)
    np.testing.assert_array_equal(embed(learned, freeze(made(learned)), x), embed(learned, made(learned), x))
    about = {"batch": 1, "capacity": 9, "dtype": jnp.float32}
    cache = Cache.empty(T5, freeze(made(T5)), DIMS, **about)
    assert jax.tree.structure(cache) == jax.tree.structure(Cache.empty(T5, made(T5), DIMS, **about))


@pytest.mark.parametrize(
    "kind, match, given",
    [
        (TypeError, "posenc.init", {"params": {"layers": {}}}),
        (ValueError, "'table' of 't5'", {"scheme": T5, "params": made(T5, OTHER)}),
        (TypeError, "dims is of type dict", {"dims": {}}),
        (TypeError, "dtype is 'foo'; it is a floating type", {"dtype": "foo"}),
        (TypeError, "dtype is .*int32.*; it is a floating type", {"dtype": jnp.int32}),
        (TypeError, "dtype is None", {"dtype": None}),
        (TypeError, "dtype is .*float8.*; it is a floating type of 16 bits", {"dtype": jnp.float8_e4m3fn}),
        (TypeError, "positions is 'x'", {"positions": "x"}),
        (ValueError, "batch is True", {"batch": True}),
    ],
)
def test_empty_caches_without_a_meaning_are_refused(kind, match, given):
    given = {"scheme": ROPE, "params": NONE, "dims": DIMS, "batch": 2, "capacity": 9, "dtype": jnp.float32} | given
    first = [given.pop(name) for name in ("scheme", "params", "dims")]
    refused(kind, match, lambda: Cache.empty(*first, **given))


def empty(scheme=ROPE, params=NONE, dims=DIMS, dtype=jnp.float32):
    return Cache.empty(scheme, params, dims, batch=2, capacity=9, dtype=dtype)


FEW, NARROW, DEEP = Dims(32, H, 8, 16, key_heads=2), Dims(32, H, 4, 16), posenc.parse("transformer_xl")


@pytest.mark.parametrize(
    "kind, match, cache",
    [
        (TypeError, "cache is of type int", lambda: 5),
        (TypeError, "holds bfloat16, but q, .* are float32; make it with", lambda: empty(dtype="bfloat16")),
        (ValueError, r"\(2, 2, 9, 8\), is not one of 'alibi' with 4 key heads", lambda: empty(dims=FEW)),
        (ValueError, r"\(2, 4, 9, 4\), is not one of 'alibi' with 4 key heads of 8", lambda: empty(dims=NARROW)),
        (ValueError, "is not one of 'alibi'", lambda: empty(FOX, made(FOX))),
        (ValueError, "is not one of 'alibi'", lambda: empty(NOPE + ROPE, (NONE, NONE))),
        (ValueError, "is not one of 'alibi'", lambda: empty(DEEP, made(DEEP))),
    ],
)  # fmt: skip
def test_caches_of_others_are_refused(kind, match, cache):
    q, k, v = qkv(2, 2, batch=(2,))
    refused(kind, match, lambda: attend(ALIBI, NONE, q, k, v, cache=cache()))


@pytest.mark.parametrize(
    "scheme, match",
    [
        (NOPE, "made for 'rope', and is now given to 'nope'; make one with"),
        (posenc.parse("rope(base=500.0)"), "made for 'rope' with other settings, and is now given to 'rope'"),
    ],
    ids=["another", "another base"],
)
def test_a_cache_goes_on_under_its_own_scheme_alone(scheme, match):
    q, k, v = qkv(2, 2, batch=(2,))
    run = lambda scheme, cache: attend(scheme, NONE, q, k, v, cache=cache)[1]  # noqa: E731
    longer = jax.jit(lambda cache: run(ROPE, cache))(empty())
    run(posenc.parse("rope + window(4)"), longer)  # whose mask may differ in each call
    refused(ValueError, match, lambda: run(scheme, longer))
    refused(ValueError, match, lambda: jax.jit(lambda cache: run(scheme, cache))(longer))


KEYS = {"a number": 0, "two": jax.random.split(jax.random.key(0)), "long": np.zeros(3, np.uint32), "real": np.zeros(2)}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_what_is_not_one_random_key_is_refused_wherever_one_is_read(key):
    q, k, v = qkv(3, 3)
    sentence = "key is .*; give one random key, such as jax.random.key"
    refused(TypeError, sentence, lambda: attend(ROPE, NONE, q, k, v, dropout=0.1, dropout_key=key))
    refused(TypeError, sentence, lambda: posenc.equinox.Attention("rope", DIMS, key=key))
    refused(TypeError, sentence, lambda: posenc.init(ROPE, key, DIMS))


@pytest.mark.parametrize(
    "match, call",
    [
        ("query_start is 'a'; it is an array of numbers", lambda q: attend(ROPE, NONE, q, q, q, query_start="a")),
        (r"x is int32 of the shape \(3, 32\)", lambda q: attend(FOX, made(FOX), q, q, q, x=np.ones((3, 32), np.int32))),
        ("x is bool of", lambda q: attend(FOX, made(FOX), q, q, q, x=np.ones((3, 32), bool))),
        ("path is of type NoneType; it is a run folder", lambda q: posenc.load(None)),
        ("not those of this scheme; make them with posenc.init", lambda q: posenc.split(ROPE, 5)),
        ("not those of this scheme; make them with posenc.init", lambda q: posenc.split(FOX, {"layer": 5})),
        ("not those of this scheme; make them with posenc.init", lambda q: posenc.split(NOPE + ROPE, (NONE,))),
    ],
)
def test_arguments_of_a_wrong_type_are_refused(match, call):
    refused(TypeError, match, lambda: call(qkv(3, 3)[0]))


def test_a_cache_is_as_wide_as_its_keys():
    q, k, v = qkv(2, 2, batch=(2,), width=3)
    refused(ValueError, "v has 3 features, and k 8", lambda: attend(ALIBI, NONE, q, k, v, cache=empty()))


@pytest.mark.ci
def test_caches_that_cannot_serve_are_refused():
    make = lambda scheme=ROPE, dims=DIMS, **about: Cache.empty(  # noqa: E731
        scheme, NONE, dims, **{"batch": 2, "capacity": 9, "dtype": jnp.float32} | about
    )
    refused(ValueError, "batch is 0", lambda: make(batch=0))
    refused(ValueError, "capacity is 2.5", lambda: make(capacity=2.5))
    refused(ValueError, "causal=True", lambda: make(dims=Dims(32, 4, 8, 16, causal=False)))
    refused(TypeError, "a pattern of layers", lambda: make(posenc.parse("[rope, nope]")))
    cache, (q, k, v) = make(), qkv(2, 2, batch=(2,))
    run = lambda q=q, k=k, v=v, **about: attend(ROPE, NONE, q, k, v, cache=cache, **about)  # noqa: E731
    refused(ValueError, "of a batch of 2", lambda: run(q[0], k[0], v[0]))
    refused(ValueError, "sees no future", lambda: run(mask="full"))
    refused(ValueError, "leave query_start out", lambda: run(query_start=0))
    refused(ValueError, "same new tokens; 1 and 2", lambda: run(q[:, :1]))
    refused(ValueError, "same new tokens", lambda: run(key_positions=np.arange(2)))
    refused(TypeError, "Cache.empty.positions=", lambda: run(positions=np.arange(2) / 2))
    assert run(positions=np.arange(2))[0].shape == q.shape
    real = make(positions=jnp.float32)
    assert attend(ROPE, NONE, q, k, v, cache=real, positions=np.arange(2) / 2)[0].shape == q.shape


@pytest.mark.parametrize(
    "given, match",
    [
        ({"heads": 0}, "heads is 0; it is a whole number of at least 1"),
        ({"heads": -1}, "heads is -1"),
        ({"heads": 2.5}, "'heads' of 'Dims' takes a whole number, not 2.5"),
        ({"heads": True}, "'heads' of 'Dims' takes a whole number, not True"),
        ({"key_heads": 3}, "3 key heads do not divide 4 heads"),
        ({"trained": 0}, "trained is 0"),
        ({"longest": "64"}, "'longest' of 'Dims' takes a whole number or None"),
        ({"causal": 1}, "'causal' of 'Dims' takes True or False, not 1"),
    ],
)
def test_sizes_without_a_meaning_are_refused(given, match):
    refused(ValueError, match, lambda: Dims(**{"width": 32, "heads": 4, "head": 8, "trained": 16} | given))
