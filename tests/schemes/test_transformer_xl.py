"""Transformer-XL: where its parameters start; its oracle has the four terms."""

import numpy as np

from tests.schemes.helpers import made


def test_parameters_start_small():
    _, params = made("transformer_xl")
    assert 0.015 < np.concatenate([np.ravel(a) for a in params["heads"].values()]).std() < 0.025
