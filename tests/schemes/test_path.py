"""PaTH: reflections that tokens choose, where there are none, and within a window."""

import numpy as np
import pytest

import posenc
from tests.schemes.helpers import attend, made, tokens


@pytest.mark.ci
def test_a_window_leaves_the_path_within_it():
    scheme, params = made("path(kernel=1, forget='unscaled')")
    q, k, v, x = tokens(7)
    narrow = attend(scheme, params, q, k, v, x, mask=posenc.Window(2, 0))
    three = attend(scheme, params, q[-1:], k[4:], v[4:], x[-1:], key_x=x[4:], query_start=2)
    np.testing.assert_allclose(narrow[-1:], three, atol=1e-6)
