"""Likhomanenko et al. (2021), §3: a cosine and a sine of a wave for each pair of features."""

import math

import numpy as np


def embed(scheme, layer, x, pos):
    out, half = np.array(x, float), x.shape[1] // 2
    for i in range(len(x)):
        u, w = (float(a) for a in pos[i])
        for c in range(half):
            rho = 10 ** (c / (half - 1)) if half > 1 else 1.0
            phase = math.pi * (u * rho * math.cos(c) + w * rho * math.sin(c))
            out[i, c] += math.cos(phase)
            out[i, half + c] += math.sin(phase)
    return out
