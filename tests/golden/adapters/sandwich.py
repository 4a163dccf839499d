"""Biases with frequencies counted from 0, and from 1 with half the width taken off, as distance 0 has it."""

import jax.numpy as jnp

from tests.golden.case import Check
from tests.golden.through import bias, scheme

schemes = ("sandwich",)


def compare(case):
    said, arrays = case.args, case.arrays
    sizes = said["heads"], said["length"], said["length"]
    none = {"layer": {}, "heads": {}}
    for first, name in enumerate(("bias_index_from_0", "bias_index_from_1_minus_half_dim")):
        if name in arrays:
            ours = bias(scheme(f"sandwich({said['dim']}, {first})"), none, *sizes)
            zero = jnp.diagonal(ours, 0, 1, 2)[:, :1, None] if first else 0
            yield Check(name, ours - zero, arrays[name], 1e-5)
