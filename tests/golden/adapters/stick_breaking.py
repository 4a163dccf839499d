"""Values mixed with what is left dropped, with it given to the token itself, and what is left."""

import jax
import jax.numpy as jnp

import posenc
from tests.golden.case import Check
from tests.golden.through import cotangent, gradients, run, scheme

schemes = ("stick_breaking",)


def compare(case):
    a, current = case.arrays, case.args["attend_current"]

    def mixed(remainder):
        breaking = scheme(f"stick_breaking(current={current}, remainder={remainder})")

        def f(q, k, v):
            q, k, v = (t.swapaxes(1, 2) for t in (q, k, v))
            return posenc.attend(breaking, {"layer": {}, "heads": {}}, q, k, v).swapaxes(1, 2)

        return f

    q, k, v = (a[n] for n in "qkv")
    yield Check("out", jax.jit(mixed(False))(q, k, v), a["out"], case.forward)
    taken = jax.jit(mixed(False))(q, k, jnp.ones_like(v))[..., 0]
    yield Check("remainder", 1 - taken, a["remainder"], case.forward)
    out, back = run(mixed(True), cotangent(case), q, k, v)
    yield Check("out_with_remainder", out, a["out_with_remainder"], case.forward)
    yield from gradients(case, "qkv", back)
