"""Transformer-XL: four terms by two wider products, memory, and the shift that leaked."""

import numpy as np
import pytest

import posenc
from tests.golden.through import scores
from tests.oracles.transformer_xl import sinusoid
from tests.schemes.helpers import DIMS, attend, made, tokens


@pytest.mark.ci
def test_the_widened_product_is_the_gathered_form_also_where_lengths_differ_and_keys_lie_ahead(x64):
    scheme, params = made("transformer_xl")
    q, k, _, _ = tokens(8, dtype=np.float64)
    u, v, w = (np.asarray(params["heads"][n]) for n in "uvw")
    for queries in (8, 3, 1):
        at = np.arange(queries)[:, None] + 8 - queries - np.arange(8)[None, :]
        r = np.array([[sinusoid(d, DIMS.width, 1e4) for d in row] for row in at])
        content = np.einsum("qhd,khd->hqk", q[-queries:] + u, k)
        place = np.einsum("qhd,hwd,qkw->hqk", q[-queries:] + v, w, r)
        np.testing.assert_allclose(scores(scheme, params, q[-queries:], k), (content + place) / 2, atol=1e-12)


def test_memory_and_then_a_segment_is_one_sequence_down_to_the_first_slot_of_memory():
    scheme, params = made("transformer_xl")
    q, k, v, _ = tokens(9)
    whole = attend(scheme, params, q, k, v)
    part = attend(scheme, params, q[5:], k, v, query_start=5)
    np.testing.assert_allclose(part, whole[5:], atol=1e-6)
    changed = attend(scheme, params, q[5:], k, np.concatenate([v[:1] + 1, v[1:]]), query_start=5)
    assert (np.abs(changed - part) > 1e-4).any(-1).all()


def test_the_biases_are_of_all_layers_and_the_projection_of_each():
    scheme, params = made("transformer_xl")
    shared, unshared = posenc.split(scheme, params)
    assert shared["heads"].keys() == {"u", "v"} and unshared["heads"].keys() == {"w"}
    assert {n: a.shape for n, a in params["heads"].items()} == {"u": (4, 4), "v": (4, 4), "w": (4, 6, 4)}
    assert 0.015 < np.concatenate([np.ravel(a) for a in params["heads"].values()]).std() < 0.025
