"""One exported program serves every batch and length: the same numbers as attention at each of them."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import posenc
from posenc.attention.kernels import serves
from posenc.core import shapes
from tests.night import by_day

DIMS = posenc.Dims(width=32, heads=4, head=8, trained=600)
CASES = [
    (name, kernel)
    for name in posenc.names()
    for kernel in ("auto", "rows", "tiled")
    if not serves(posenc.bind(posenc.parse(name), DIMS)).get(kernel)
]
DAY = [("alibi", "auto"), ("fox", "rows"), ("t5", "tiled"), ("grape_m", "auto")]


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


CACHED = [name for name in posenc.names() if "cache" not in posenc.bind(name, DIMS).limits]


@pytest.mark.parametrize(
    "text", by_day([*CACHED, "rope + alibi + window(5)"], ["alibi", "cope", "rope + alibi + window(5)"])
)
def test_an_exported_step_of_decoding_is_written_to_bytes_and_read_again(text):
    scheme = posenc.bind(text, DIMS)
    params = posenc.init(scheme, jax.random.key(0), DIMS)
    cache = posenc.Cache.empty(scheme, params, DIMS, batch=1, capacity=4)
    q, x = jnp.ones((1, 1, 4, 8)), jnp.ones((1, 1, 32))
    step = jax.jit(lambda p, q, x, cache: posenc.attend(scheme, p, q, q, q, x=x, cache=cache))
    again = export.deserialize(export.export(step)(params, q, x, cache).serialize())
    (ours, longer), (theirs, longer_still) = step(params, q, x, cache), again.call(params, q, x, cache)
    np.testing.assert_allclose(theirs, ours, atol=1e-6)
    step(params, q, x, longer_still)  # it is a cache of this scheme
    assert jax.tree.structure(longer) == jax.tree.structure(longer_still)


def test_a_step_over_the_leaves_of_a_cache_decodes_in_a_process_without_posenc(tmp_path):
    scheme = posenc.bind("rope", DIMS)
    empty = posenc.Cache.empty(scheme, None, DIMS, batch=1, capacity=4)
    leaves, tree = jax.tree.flatten(empty)

    def step(q, leaves):
        out, cache = posenc.attend(scheme, None, q, q, q, cache=jax.tree.unflatten(tree, leaves))
        return out, jax.tree.leaves(cache)

    q = jax.random.normal(jax.random.key(0), (3, 1, 1, 4, 8))
    (tmp_path / "step").write_bytes(export.export(jax.jit(step))(q[0], leaves).serialize())
    np.savez(tmp_path / "q.npz", q=q, **{str(n): a for n, a in enumerate(leaves)})
    code = """
import sys, numpy as np
from jax import export
sys.modules["posenc"] = None
step, held = export.deserialize(bytearray(open("step", "rb").read())), np.load("q.npz")
leaves, outs = [held[str(n)] for n in range(len(held.files) - 1)], []
for q in held["q"]:
    out, leaves = step.call(q, leaves)
    outs.append(out)
np.save("out.npy", np.concatenate(outs, 1))
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    whole = q.swapaxes(0, 1)[:, :, 0]
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), posenc.attend(scheme, None, *(whole,) * 3), atol=1e-5)


@pytest.mark.parametrize("text", ["t5", "fox", "rope_2d(frequencies='mixed')"])
def test_no_start_is_drawn_that_another_library_s_tracing_cannot_draw(text, monkeypatch):
    """Converters such as jax2onnx put functions of their own in the place of jax.random's while they trace."""
    scheme = posenc.bind(text, DIMS)
    params = posenc.init(scheme, jax.random.key(0), DIMS)

    def refuse(*_, **__):
        raise NotImplementedError("Batching rule for 'jax.random.normal' not implemented")

    q, x = jnp.ones((7, 4, 8)), jnp.ones((7, 32))
    positions = np.zeros((7, 2)) if text.startswith("rope_2d") else None
    run = lambda p, q, x: posenc.attend(scheme, p, q, q, q, x=x, positions=positions)  # noqa: E731
    expected = run(params, q, x)
    shapes._made.cache_clear()
    for name in ("normal", "uniform", "truncated_normal"):
        monkeypatch.setattr(jax.random, name, refuse)
    np.testing.assert_allclose(jax.jit(run)(params, q, x), expected, atol=1e-6)


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
