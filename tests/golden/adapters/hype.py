"""Queries of layers without rotation, sharpened by a logarithm of their position with an offset."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Case, Check
from tests.golden.turned import turned

schemes = ("log_n",)


def compare(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    log_n = posenc.bind(posenc.parse(f"log_n(offset={args['offset']!r})"), posenc.Dims(1, 1, 1, 1))
    q, k, v = (jnp.asarray(a[n]).swapaxes(1, 2) for n in "qkv")
    q_out = turned(log_n, "query", a["q"], a["positions"])
    yield Check("q_out", q_out, a["q_out"], 1e-5)
    rounded = q_out.astype(jnp.bfloat16).astype(jnp.float32)
    yield Check("q_out_bf16", rounded, a["q_out_bf16"], 2.0**-7 * float(np.abs(a["q"]).max()))
    one = np.ones((1, 1, len(a["positions"]), 1))
    yield Check("factor", turned(log_n, "query", one.astype(np.float32), a["positions"])[0, 0, :, 0], a["factor"], 1e-6)
    with jax.enable_x64(True):
        yield Check("factor_f64", turned(log_n, "query", one, a["positions"])[0, 0, :, 0], a["factor_f64"], 1e-12)
    out = posenc.attend(log_n, None, q, k, v, positions=a["positions"])
    yield Check("out", out.swapaxes(1, 2), a["out"], 1e-5)
