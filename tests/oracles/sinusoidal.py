"""Vaswani et al. (2017), §3.5: sines and cosines of the position, feature by feature."""

import math

import numpy as np


def embed(scheme, layer, x, pos):
    out = np.array(x, float)
    length, width = out.shape
    scale = float(layer["scale"]) if scheme.learned_scale else 1.0
    for i in range(length):
        for c in range(width):
            out[i, c] += scale * feature(scheme, float(pos[i]), c, width)
    return out


def feature(scheme, p, c, width):
    if scheme.spacing == "t2t":
        n = width // 2
        if c >= 2 * n:
            return 0.0
        exponent = lambda pair: pair / max(n - 1, 1)  # noqa: E731
    else:
        n = (width + 1) // 2
        exponent = lambda pair: 2 * pair / width  # noqa: E731
    cosine, pair = (c % 2 == 1, c // 2) if scheme.layout == "interleaved" else (c >= n, c % n)
    angle = p / scheme.base ** exponent(pair)
    return math.cos(angle) if cosine else math.sin(angle)
