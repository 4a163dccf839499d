"""Wang et al. (2020), §3: every complex dimension of a word's embedding turns with its position."""

import cmath

import numpy as np


def embed(scheme, layer, x, pos):
    out, half = np.array(x, float), x.shape[1] // 2
    for i in range(len(x)):
        place, table = (pos[i][0], layer["frequency"][pos[i][1]]) if scheme.words else (pos[i], layer["frequency"])
        for c in range(half):
            z = complex(x[i, c], x[i, c + half]) * cmath.exp(1j * float(place) * float(table[c]))
            out[i, c], out[i, c + half] = z.real, z.imag
    return out
