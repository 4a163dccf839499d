"""Biases of a perceptron given as weights; their normaliser is of the query's position on both sides."""

from tests.golden.case import Check, NotCovered
from tests.golden.through import bias, cotangent, gradients, run, scheme

schemes = ("fire",)
NAMES = ("mlp.0.weight", "mlp.0.bias", "mlp.2.weight", "mlp.2.bias", "c", "L_multiplier")


def compare(case):
    said, arrays = case.args, case.arrays
    if said["activation"] != "relu":
        raise NotCovered(f"FIRE with {said['activation']}")
    settings = f"{said['mlp_width']}, {float(arrays['init_L'])!r}, eps={said['eps']!r}, bidirectional=False"
    fire = scheme(f"fire({settings})")

    def f(w1, b1, w2, b2, c, m):
        params = {"layer": {"c": c, "m": m, "w1": w1[:, 0], "b1": b1}, "heads": {"w2": w2, "b2": b2}}
        return bias(fire, params, said["heads"], said["length"], said["length"], w1.dtype)[None]

    out, back = run(f, cotangent(case), *(arrays[n] for n in NAMES))
    yield Check("bias", out, arrays["bias"], case.forward)
    yield from gradients(case, NAMES, back)
