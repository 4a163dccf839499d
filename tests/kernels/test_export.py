"""One exported program serves every batch and length: the same numbers as attention at each of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import posenc
from posenc.attention.kernels import serves
from tests.night import by_day

DIMS = posenc.Dims(width=32, heads=4, head=8, trained=600)
CASES = [
    (name, kernel)
    for name in posenc.names()
    for kernel in ("auto", "rows", "tiled")
    if not serves(posenc.bind(posenc.parse(name), DIMS)).get(kernel)
]
DAY = [("alibi", "auto"), ("fox", "rows"), ("t5", "tiled")]


@pytest.mark.parametrize(("text", "kernel"), by_day(CASES, DAY))
def test_one_program_serves_every_batch_and_length(text, kernel):
    scheme = posenc.bind(posenc.parse(text), DIMS)
    params = posenc.init(scheme, jax.random.key(0), DIMS)
    b, n = export.symbolic_shape("b, n")
    of = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)  # noqa: E731
    run = jax.jit(lambda *a: posenc.attend(scheme, params, *a[:3], x=a[3], segments=a[4], kernel=kernel))
    segments = jax.ShapeDtypeStruct((n,), jnp.int32)
    program = export.export(run)(*(of(b, n, 4, 8),) * 3, of(b, n, 32), segments)
    dense = jax.jit(lambda *a: posenc.attend(scheme, params, *a[:3], x=a[3], segments=a[4], kernel="dense"))
    for batch, length in ((1, 1), (3, 13), (2, 300)):
        q, k, v = jax.random.normal(jax.random.key(1), (3, batch, length, 4, 8))
        x = jax.random.normal(jax.random.key(2), (batch, length, 32))
        segments = jnp.minimum(1 + jnp.arange(length, dtype=jnp.int32) // 7, 2)
        np.testing.assert_allclose(program.call(q, k, v, x, segments), dense(q, k, v, x, segments), atol=3e-5)


def test_tables_that_no_length_is_known_to_fit_give_nan_beyond_their_rows():
    dims = posenc.Dims(width=32, heads=4, head=8, trained=8)
    scheme = posenc.bind(posenc.parse("tupe"), dims)
    params = posenc.init(scheme, jax.random.key(0), dims)
    (n,) = export.symbolic_shape("n")
    of = jax.ShapeDtypeStruct((n, 4, 8), jnp.float32)
    program = export.export(jax.jit(lambda *a: posenc.attend(scheme, params, *a)))(of, of, of)
    q, k, v = jax.random.normal(jax.random.key(1), (3, 12, 4, 8))
    out = program.call(q, k, v)
    np.testing.assert_allclose(
        program.call(q[:8], k[:8], v[:8]), posenc.attend(scheme, params, q[:8], k[:8], v[:8]), atol=1e-5
    )
    assert np.isnan(out[8:]).all()
