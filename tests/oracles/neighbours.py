"""Tokens that read those before them: what stands at a place, or zeros where nothing does."""

import numpy as np


def before(a, i, steps):
    """The token so many steps before i, zeros where there is none."""
    return a[i - steps] if i >= steps else np.zeros_like(a[0])
