"""Other devices without having one: every kernel lowers for them; and what fits no memory or no kernel is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Dims, attend
from posenc.attention import kernels
from posenc.attention.kernels import dispatch
from tests.kernels.test_equal import TYPICAL, served
from tests.night import by_day

DIMS = Dims(width=32, heads=2, head=16, trained=64)


def one(text):
    scheme = posenc.bind(posenc.parse(text), DIMS)
    params = posenc.init(scheme, jax.random.key(0), DIMS)
    return scheme, params


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("text", by_day(posenc.names(), (*TYPICAL, "cope")))
def test_training_and_decoding_lower_for_a_gpu(text, dtype, monkeypatch):
    monkeypatch.setattr(kernels, "block", lambda queries, keys: 32)
    scheme, params = one(text)
    kernel = "tiled" if served(text, "tiled") else "rows"
    q, x = (jax.ShapeDtypeStruct((1, 64, *shape), dtype) for shape in ((2, 16), (32,)))

    def loss(params, q, k, v, x):
        return attend(scheme, params, q, k, v, x=x, kernel=kernel).astype(jnp.float32).sum()

    train = jax.export.export(jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3))), platforms=["cuda"])(params, q, q, q, x)
    assert train.platforms == ("cuda",) and "stablehlo.while" in train.mlir_module()
    if "cache" in scheme.limits:
        return
    cache = posenc.Cache.empty(scheme, params, DIMS, batch=1, capacity=64, dtype=dtype)
    q, x = (jax.ShapeDtypeStruct((1, 1, *shape), dtype) for shape in ((2, 16), (32,)))
    step = jax.jit(lambda p, q, x, cache: attend(scheme, p, q, q, q, x=x, cache=cache))
    assert jax.export.export(step, platforms=["cuda"])(params, q, x, cache).platforms == ("cuda",)


def test_scores_that_no_memory_holds_are_refused_and_tiles_are_not(monkeypatch):
    monkeypatch.setattr(dispatch, "memory", lambda: 2**30)
    monkeypatch.setattr(jax, "device_count", lambda: 1)
    scheme, params = one("rope")
    q = jax.ShapeDtypeStruct((4, 8192, 2, 16), np.float32)
    run = lambda kernel: jax.eval_shape(lambda q: attend(scheme, params, q, q, q, kernel=kernel), q)  # noqa: E731
    said = r"8192 queries and 8192 keys of 2 heads and 4 sequences make scores and weights of 4 GiB, and there are 1;"
    with pytest.raises(ValueError, match=said):
        run("dense")
    assert run("tiled").shape == run("auto").shape == (4, 8192, 2, 16)


@pytest.mark.parametrize(
    ("text", "kernel", "said"),
    [
        ("cope", "tiled", "'cope'.*kernel='rows'"),
        ("dape", "tiled", "'dape'.*kernel='rows'"),
        ("rope", "flash", "'flash'"),
    ],
)
def test_a_kernel_that_cannot_serve_is_refused(text, kernel, said):
    scheme, params = one(text)
    q = np.zeros((3, 2, 16), np.float32)
    with pytest.raises(ValueError, match=said):
        attend(scheme, params, q, q, q, kernel=kernel)


@pytest.mark.guard
@pytest.mark.parametrize(("text", "queries", "expected"), [
    ("rope", 1023, "dense"), ("rope", 1024, "tiled"), ("cope", 1023, "dense"), ("cope", 1024, "rows"),
    ("dape", 1024, "rows"), ("rope", 1, "dense"),
])  # fmt: skip
def test_the_number_of_scores_decides(text, queries, expected, monkeypatch):
    monkeypatch.setitem(dispatch.CROSSING, "cpu", 1024**2)
    scheme = posenc.bind(posenc.parse(text), DIMS)
    keys = 16 * 1024 if queries == 1 else queries
    assert kernels.choose(scheme, "auto", jax.ShapeDtypeStruct((1, queries, 2, 16), np.float32), keys) == expected
