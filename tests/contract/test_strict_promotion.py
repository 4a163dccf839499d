"""Attention, input, caches and positions under strict promotion of types trace the same program as without it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.core.compose import axes
from tests.night import by_day

DIMS = posenc.Dims(width=16, heads=2, head=8, trained=512)
TEXTS = [*posenc.names(), "rope + alibi", "cope + fox", "rope + window(3)", "rope(frequencies='learned')"]
SEGMENTS = np.array([[1, 1, 1, 2, 2, 0]])


def calls(text, dtype):
    """What one may do with a scheme, as functions of its parameters and features, by a name."""
    scheme = posenc.bind(text, DIMS)
    params = posenc.init(scheme, jax.random.key(1), DIMS)
    of = lambda *shape: jax.ShapeDtypeStruct(shape, dtype)  # noqa: E731
    args = jax.tree.map(lambda a: a.astype(dtype), params), of(1, 6, 2, 8), of(1, 6, 16)

    def run(p, q, x, **more):
        return posenc.attend(scheme, p, q, q, q, x=x, **more)

    def decode(p, q, x, positions=jnp.int32):
        cache, outs = posenc.Cache.empty(scheme, p, DIMS, batch=1, capacity=8, dtype=dtype, positions=positions), []
        for part in (slice(0, 4), slice(4, 5)):
            out, cache = run(p, q[:, part], x[:, part], cache=cache)
            outs.append(out)
        return outs

    n = axes(scheme)
    wide = np.arange(6) + 3 if isinstance(n, tuple) or n == 1 else np.stack([np.arange(6) + 3] * n, -1)
    yield from (
        ("init", lambda: posenc.init(scheme, jax.random.key(1), DIMS), ()),
        *((kernel, lambda *a, kernel=kernel: run(*a, kernel=kernel), args) for kernel in ("dense", "tiled", "rows")),
        ("segments", lambda *a: run(*a, segments=SEGMENTS), args),
        ("full", lambda *a: run(*a, mask="full"), args),
        ("array", lambda *a: run(*a, mask=("causal", np.ones((6, 6), bool))), args),
        ("prefix", lambda *a: run(*a, mask=posenc.Prefix(3)), args),
        ("dropout", lambda *a: run(*a, dropout=0.3, dropout_key=jax.random.key(0)), args),
        ("cap", lambda *a: run(*a, cap=5.0), args),
        ("sinks", lambda *a: run(*a[:3], sinks=a[3]), (*args, jax.ShapeDtypeStruct((2,), jnp.float32))),
        ("integers", lambda *a: run(*a, positions=wide), args),
        ("real", lambda *a: run(*a, positions=wide.astype(np.float32)), args),
        ("gradient", jax.grad(lambda *a: run(*a).astype(jnp.float32).sum(), (0, 1, 2)), args),
        ("input", lambda p, _, x: posenc.embed(scheme, p, x, segments=SEGMENTS), args),
        ("cache", decode, args),
        ("real cache", lambda *a: decode(*a, positions=jnp.float32), args),
    )


@pytest.mark.ci
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("text", by_day(TEXTS, ["alibi", "cope", "kerple", "t5"]))
def test_strict_promotion_traces_the_same_program(text, dtype):
    ran = 0
    for name, call, args in calls(text, jnp.dtype(dtype)):
        try:
            expected = jax.make_jaxpr(call)(*args)
        except (TypeError, ValueError):
            continue  # this scheme refuses it
        with jax.numpy_dtype_promotion("strict"):
            # a new function, so that jax traces it anew
            traced = jax.make_jaxpr(lambda *a, call=call: call(*a))(*args)
        assert str(traced) == str(expected), name
        ran += 1
    assert ran >= 8
