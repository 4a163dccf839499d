"""Stems token by token: a short convolution, a shift by one token, and a gated recurrent unit (Cho et al., 2014)."""

import math

import numpy as np


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def document(segment, t):
    """The real tokens of this token's document, in order, and where it is among them."""
    mine = [i for i in range(len(segment)) if segment[i] == segment[t]]
    return mine, mine.index(t)


def conv(p, x, segment, causal):
    k, out = len(p["taps"]), np.array(x, float)
    ahead = 0 if causal else (k - 1) // 2
    for t in range(len(x)):
        if segment[t]:
            mine, place = document(segment, t)
            for n in range(k):
                at = place + n - (k - 1 - ahead)
                if 0 <= at < len(mine):
                    out[t] += p["taps"][n] * x[mine[at]]
    return out


def shift(p, x, segment, causal):
    out, (width, heads) = np.array(x, float), p["mix"].shape
    for t in range(len(x)):
        for c in range(width):
            h = c // (width // heads)
            share = sigmoid(float(x[t] @ p["mix"][:, h]) + p["bias"][h])
            mine, place = document(segment, t)
            before = x[mine[place - 1]][c] if segment[t] and place else 0.0
            out[t, c] = share * before + (1 - share) * x[t, c]
    return out


def gru(p, x, segment, causal):
    out, width = np.array(x, float), x.shape[1]
    for way in range(len(p["w"])):
        w, u, b, c = (p[name][way] for name in "wubc")
        for name in sorted({s for s in segment if s}):
            h = np.zeros(width)
            order = [t for t in range(len(x)) if segment[t] == name]
            for t in order if way == 0 else order[::-1]:
                told, past, new = x[t] @ w + b, h @ u, np.zeros(width)
                for n in range(width):
                    z, r = sigmoid(told[n] + past[n]), sigmoid(told[width + n] + past[width + n])
                    fresh = math.tanh(told[2 * width + n] + r * (past[2 * width + n] + c[n]))
                    new[n] = (1 - z) * fresh + z * h[n]
                h = new
                out[t] += h
    return out
