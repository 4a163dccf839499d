"""Likhomanenko et al. (2021), §3: a cosine and a sine of a wave for each pair of features."""

import math

import numpy as np

WIDTH = 8


def embed(scheme, layer, x, pos):
    return axes(scheme, x, pos) if scheme.form == "axes" else waves(x, pos)


def axes(scheme, x, pos):
    """Dosovitskiy et al. (2021), §D.4: sines and cosines of each axis in features of its own."""
    width = x.shape[1]
    bands = math.ceil(width / 4)
    place = {
        "halves": lambda axis, wave, band: (2 * axis + wave) * bands + band,
        "sines_first": lambda axis, wave, band: (2 * wave + axis) * bands + band,
        "interleaved": lambda axis, wave, band: 2 * (axis * bands + band) + wave,
    }[scheme.layout]
    out = np.array(x, float)
    for i in range(len(x)):
        for axis in range(2):
            p = float(pos[i][axis if scheme.order == "straight" else 1 - axis])
            for band in range(bands):
                for wave, f in enumerate((math.sin, math.cos)):
                    c = place(axis, wave, band)
                    if c < width:
                        out[i, c] += f(p * scheme.base ** (-band / bands))
    return out


def waves(x, pos):
    out, half = np.array(x, float), x.shape[1] // 2
    for i in range(len(x)):
        u, w = (float(a) for a in pos[i])
        for c in range(half):
            rho = 10 ** (c / (half - 1)) if half > 1 else 1.0
            phase = math.pi * (u * rho * math.cos(c) + w * rho * math.sin(c))
            out[i, c] += math.cos(phase)
            out[i, half + c] += math.sin(phase)
    return out
