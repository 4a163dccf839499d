"""Scans along documents equal a loop over tokens, for whole sequences and in chunks."""

import jax
import numpy as np
import pytest

from posenc.numerics import segment_scans

RNG = np.random.default_rng(0)
SEGMENT = np.array([0, 0, 1, 1, 0, 1, 1, 0, 2, 3, 3, 0, 0, 3, 3, 3], np.int32)
CHUNKS = [(16,), (1,) * 16, (3, 1, 4, 2, 6), (5, 11)]


def documents():
    """The real tokens of each document, by index."""
    return [[t for t in range(16) if SEGMENT[t] == d] for d in (1, 2, 3)]


def chunked(run, x, sizes, carry):
    out, start = [], 0
    for size in sizes:
        part = slice(start, start + size)
        made, carry = run(x[part], SEGMENT[part], carry)
        out.append(np.asarray(made))
        start += size
    return np.concatenate(out)


@pytest.mark.parametrize("sizes", CHUNKS, ids=str)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_sums_restart_with_each_document_and_pass_over_padding(sizes, shape, x64):
    x = RNG.normal(size=(16, *shape))
    ours = chunked(jax.jit(segment_scans.total), x, sizes, segment_scans.start(*shape))
    for tokens in documents():
        for n, t in enumerate(tokens):
            np.testing.assert_allclose(ours[t], sum(x[u] for u in tokens[: n + 1]), atol=1e-14)


@pytest.mark.parametrize("sizes", CHUNKS, ids=str)
@pytest.mark.parametrize("n", [1, 3, 5])
def test_recent_tokens_are_those_of_the_document(sizes, n):
    x = RNG.normal(size=(16, 2)).astype(np.float32)
    ours = chunked(jax.jit(segment_scans.recent), x, sizes, segment_scans.none(n, 2))
    assert ours.shape == (16, n + 1, 2)
    for tokens in documents():
        for place, t in enumerate(tokens):
            expected = np.zeros((n + 1, 2), np.float32)
            here = tokens[max(0, place - n) : place + 1]
            expected[n + 1 - len(here) :] = x[here]
            np.testing.assert_array_equal(ours[t], expected)
