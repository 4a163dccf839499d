"""Scores before and after; the released code fills the upper triangle with a distance of 0 or with zeros."""

import numpy as np

from tests.golden.case import Check, NotCovered
from tests.golden.through import cotangent, run, scheme, scored

schemes = ("kerple",)


def compare(case):
    kind, arrays = case.args["kind"].removeprefix("kerple_"), case.arrays
    if kind.split("_")[0] not in ("log", "power"):
        raise NotCovered(f"the kernel {case.args['kind']}")
    log, weight = kind == "log", "wei_a" in arrays or "wei_p" in arrays
    kerple = scheme(f"kerple(kernel={'log' if log else 'power'!r}, weight={weight})")
    # their p multiplies the logarithm, but is the exponent of the power; what a kind leaves out is 1
    ours = {"r1": "bias_p", "r2": "bias_a"} if log else {"r1": "bias_a", "r2": "bias_p"}
    ours |= {"w1": "wei_a", "w2": "wei_p"} if weight else {}
    names = ["scores_in", *(n for n in ours.values() if n in arrays)]
    heads = arrays["scores_in"].shape[1]
    lower = np.tril(np.ones(arrays["scores_in"].shape[-2:], bool))[None, None]

    def f(scores, *given):
        p = dict(zip(names[1:], given, strict=True))
        p = {n: p[a].reshape(heads) if a in p else np.ones(heads, scores.dtype) for n, a in ours.items()}
        return scored(kerple, {"layer": {}, "heads": p}, scores) * lower

    out, back = run(f, cotangent(case), *(arrays[n] for n in names))
    yield Check("scores_out", out, arrays["scores_out"] * lower, case.forward)
    for name, ours in zip(names, back, strict=False):
        theirs = arrays[f"grad_{name}"]
        yield Check(f"grad_{name}", ours, theirs * lower if name == "scores_in" else theirs, case.backward)
