"""Transformer-XL: four terms by two wider products, memory, and the shift that leaked."""

import numpy as np

import posenc
from tests.schemes.helpers import made


def test_the_biases_are_of_all_layers_and_the_projection_of_each():
    scheme, params = made("transformer_xl")
    shared, unshared = posenc.split(scheme, params)
    assert shared["heads"].keys() == {"u", "v"} and unshared["heads"].keys() == {"w"}
    assert {n: a.shape for n, a in params["heads"].items()} == {"u": (4, 4), "v": (4, 4), "w": (4, 6, 4)}
    assert 0.015 < np.concatenate([np.ravel(a) for a in params["heads"].values()]).std() < 0.025
