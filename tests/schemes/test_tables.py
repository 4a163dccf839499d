"""Tables of vectors and digits: what has no row is refused, and never another row in silence."""

import jax
import numpy as np
import pytest

import posenc

DIMS = posenc.Dims(width=8, heads=2, head=4, trained=10)
CASES = [
    ("abacus(rows=11)", 11),
    ("learned", 10),
    ("binary(bits=5)", 32),
    ("complex_order(words=5)", 5),
    ("tupe", 10),
    ("tupe(reset=True)", 10),
]


@pytest.mark.guard
@pytest.mark.parametrize(("text", "rows"), CASES)
def test_what_has_no_row_is_refused_and_inside_jit_nan_among_others_that_are_themselves(text, rows):
    """JAX would repeat the last row."""
    scheme = posenc.bind(text, DIMS)
    params = posenc.init(scheme, jax.random.key(0), DIMS)
    x = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)

    def run(rows_read):
        at = rows_read if scheme.axes == 1 else rows_read[:, None] * np.array([[0, 1]]) + np.array([[3, 0]])
        if scheme.overrides("embed"):
            return posenc.embed(scheme, params, x, positions=at)
        return posenc.attend(scheme, params, *[x.reshape(3, 2, 4)] * 3, positions=at)

    right = run(np.array([0, rows - 1, 2]))
    for wrong in (rows, rows + 5, 10**6, -1, -rows):
        advice = "count from 0" if wrong < 0 else "larger|more digits"
        with pytest.raises(ValueError, match=rf"{wrong}\b.*({advice})"):
            run(np.array([0, rows - 1, wrong]))
        inside = jax.jit(run)(np.array([0, rows - 1, wrong]))
        np.testing.assert_allclose(inside[:2], right[:2], atol=1e-6)
        assert np.isnan(inside[2]).all()
