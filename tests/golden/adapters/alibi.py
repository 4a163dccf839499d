"""Slopes, and biases in the forms of three codebases; all are ours up to a constant for each row."""

import jax.numpy as jnp
import numpy as np

from tests.golden.case import Check, NotCovered
from tests.golden.through import bias, scheme

schemes = ("alibi",)
NONE = {"layer": {}, "heads": {}}


def compare(case):
    heads = case.args["heads"]
    alibi = scheme("alibi", heads=heads)
    for name in ("slopes", "slopes_mpt"):
        if name in case.arrays:
            slopes = -bias(alibi, NONE, heads, 1, 2)[:, 0, 0]
            yield Check(name, slopes, case.arrays[name], case.tolerance(1e-7, 1e-12))
    if "mask" in case.arrays:
        yield _padded(case, alibi)
    elif "bias" in case.arrays:
        ours = bias(alibi, NONE, heads, case.args["q_len"], case.args["k_len"])
        yield Check("bias", ours, case.arrays["bias"], 1e-6)


def _padded(case, alibi):
    """Their bias grows from the first real token, ours falls from the last: the same up to a constant."""
    mask, heads = case.arrays["mask"], case.args["heads"]
    if "key-only" not in case.args["form"]:
        raise NotCovered(f"a bias of the form {case.args['form']}")
    rows = []
    for real in mask.astype(bool):
        position = np.cumsum(real) - 1
        ours = bias(alibi, NONE, heads, 1, len(real), positions=position[real][-1:], key_positions=position)
        ours = ours - ours[:, :, np.flatnonzero(real)[:1]]
        rows.append(jnp.where(jnp.asarray(real)[None, None, :], ours, 0))
    theirs = np.where(mask[:, None, None, :] > 0, case.arrays["bias"], 0)
    return Check("bias", jnp.stack(rows), theirs, 1e-6)
