"""Features and encodings of points of one and two coordinates, and the gradients of everything."""

import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.through import cotangent, gradients, run, scheme

schemes = ("fourier",)
NAMES = {"W_r": "frequency", "W_1": "w1", "b_1": "b1", "W_2": "w2", "b_2": "b2"}


def compare(case):
    a, said = case.arrays, case.args
    axes, features, hidden = (said[n] for n in ("coordinates", "features", "hidden"))
    fourier = scheme(f"fourier({axes}, {features}, {hidden})", width=said["dim"])

    def f(x, *given):
        p = dict(zip(NAMES.values(), given, strict=True))
        p["frequency"] = p["frequency"].T
        return _embedded(fourier, p, x, said["dim"])

    out, back = run(f, cotangent(case), *(a[n] for n in ("x", *NAMES)))
    yield Check("out", out, a["out"], 1e-12)
    yield from gradients(case, ("x", *NAMES), back, 1e-9)  # finite differences reach this far
    yield Check("features", _features(a["x"], a["W_r"], said), a["features"], 1e-12)


def _embedded(fourier, p, x, width):
    position = x if fourier.axes > 1 else x[:, 0]
    nothing = jnp.zeros((len(x), width), x.dtype)
    return posenc.embed(fourier, {"layer": p, "heads": {}}, nothing, positions=position)


def _features(x, frequency, said):
    """The features themselves, by a perceptron that lets each through: far above 0 gelu is its input, to the bit."""
    n, axes, far = said["features"], said["coordinates"], 64.0
    fourier = scheme(f"fourier({axes}, {n}, {n})", width=n)
    eye, shift = np.eye(n), np.full(n, far)
    p = {"frequency": frequency.T, "w1": eye, "b1": shift, "w2": eye, "b2": -shift}
    return _embedded(fourier, p, jnp.asarray(x), n)
