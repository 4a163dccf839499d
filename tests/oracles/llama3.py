"""Llama 3.1: by wavelength, three cases: longer than L0 / low, shorter than L0 / high, and between."""

import math

from tests.oracles import turned


def attend(scheme, heads, q, k, v, x, pos, seen):
    rates = [_scaled(scheme, w) for w in turned.plain(scheme, turned.width(scheme, q))]
    rates = turned.tapered(rates, scheme.taper)
    return turned.attend(scheme, heads, q, k, v, pos, seen, lambda p: rates)


def _scaled(scheme, w):
    wavelength, low, high = 2 * math.pi / w, scheme.low_freq_factor, scheme.high_freq_factor
    if wavelength > scheme.original / low:
        return w / scheme.factor
    if wavelength < scheme.original / high:
        return w
    smooth = (scheme.original / wavelength - low) / (high - low)
    return (1 - smooth) * w / scheme.factor + smooth * w
