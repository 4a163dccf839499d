"""The digits of the position in base two, lowest first, each adding or subtracting its vector."""

import numpy as np


def embed(scheme, layer, x, pos):
    vectors = np.asarray(layer["digits"], float)
    out = np.array(x, float)
    for i, p in enumerate(pos):
        digits = format(int(p), f"0{scheme.bits}b")[::-1]
        for k in range(scheme.bits):
            out[i] += vectors[k] if digits[k] == "1" else -vectors[k]
    return out
