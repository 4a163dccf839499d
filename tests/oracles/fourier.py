"""Li et al., 2021, §3, alg. 1: r = [cos(W_r x); sin(W_r x)] / √|F|, Y = GeLU(r W_1 + B_1) W_2 + B_2."""

import math

import numpy as np


def gelu(z):
    return z / 2 * (1 + math.erf(z / math.sqrt(2)))


def embed(scheme, layer, x, pos):
    pos, out = np.reshape(pos, (len(pos), scheme.axes)).astype(float), np.array(x, float)
    for i, place in enumerate(pos):
        turns = [float(place @ w) for w in layer["frequency"].T]
        r = np.array([math.cos(a) for a in turns] + [math.sin(a) for a in turns]) / math.sqrt(scheme.features)
        hidden = [gelu(float(r @ w) + b) for w, b in zip(layer["w1"].T, layer["b1"], strict=True)]
        out[i] += np.array(hidden) @ layer["w2"] + layer["b2"]
    return out
