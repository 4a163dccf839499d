"""Words as complex numbers of a recorded length and no first angle, with frequencies of their own."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Case, Check
from tests.golden.through import gradients, run

schemes = ("complex_order",)


def compare(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    scheme = posenc.parse(f"complex_order(words={args['vocabulary']})")
    dims = posenc.Dims(2 * args["dim"], 1, 2 * args["dim"], args["length"])
    start = posenc.init(scheme, jax.random.key(0), dims)["layer"]["frequency"]
    yield Check("frequency_init", start, a["frequency_init"], 1e-5)
    positions = np.stack([a["positions"], a["tokens"]], -1)
    cotangent = np.concatenate([a["cotangent_real"], a["cotangent_imag"]], -1)

    def f(amplitude, frequency):
        x = amplitude[a["tokens"]]
        x = jnp.concatenate([x, jnp.zeros_like(x)], -1)
        return posenc.embed(scheme, {"layer": {"frequency": frequency}, "heads": {}}, x, positions=positions)

    out, grads = run(f, cotangent, a["amplitude"], a["frequency"])
    yield Check("real and imag", out, np.concatenate([a["real"], a["imag"]], -1), 1e-5)
    yield from gradients(case, ("amplitude", "frequency"), grads, 5e-5)
