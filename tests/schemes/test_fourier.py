"""Learned Fourier features: a bell of the distance at the start, of one axis or several, and real positions."""

import numpy as np

from tests.schemes.helpers import made


def test_the_products_of_features_start_as_a_bell_of_the_distance_whose_width_is_gamma():
    for axes, gamma in ((1, 3.0), (2, 0.5)):
        frequency = np.asarray(made(f"fourier(axes={axes}, features=8192, gamma={gamma})")[1]["layer"]["frequency"])
        for distance in (0.2, 1.0, 2.0):
            apart = np.full(axes, gamma * distance / axes**0.5)
            product = np.cos(apart @ frequency).mean()  # [cos a; sin a] · [cos b; sin b] is cos(a - b)
            np.testing.assert_allclose(product, np.exp(-(distance**2) / 2), atol=0.05)
