"""Scores before and after; the released code fills the upper triangle with a distance of 0 or with zeros."""

import numpy as np

from tests.golden.case import Check, NotCovered
from tests.golden.through import cotangent, run, scheme, scored

schemes = ("kerple",)


def compare(case):
    arrays = case.arrays
    kerple, parameters = _form(case.args["kind"].removeprefix("kerple_"))
    names = ["scores_in", *(n for n in parameters.values() if n in arrays)]
    heads = arrays["scores_in"].shape[1]
    lower = np.tril(np.ones(arrays["scores_in"].shape[-2:], bool))[None, None]

    def f(scores, *given):
        p = dict(zip(names[1:], given, strict=True))
        p = {n: p[a].reshape(heads) if a in p else np.ones(heads, scores.dtype) for n, a in parameters.items()}
        return scored(kerple, {"layer": {}, "heads": p}, scores) * lower

    out, back = run(f, cotangent(case), *(arrays[n] for n in names))
    yield Check("scores_out", out, arrays["scores_out"] * lower, case.forward)
    for name, gradient in zip(names, back, strict=False):
        theirs = arrays[f"grad_{name}"]
        yield Check(f"grad_{name}", gradient, theirs * lower if name == "scores_in" else theirs, case.backward)


def _form(kind):
    """Our scheme of their kind, and the name of their parameter for each of ours; one that a kind leaves out is 1.

    Their p multiplies the logarithm, but is the exponent of the power. A kind such as power_ap_n names the parameters
    of the bias and of the weight; n, or nothing, stands for neither.
    """
    if kind == "log":
        return scheme("kerple"), {"r1": "bias_p", "r2": "bias_a"}
    family, *letters = kind.split("_")
    if family != "power" or len(letters) != 2 or not all(set(one) <= set("apn") for one in letters):
        raise NotCovered(f"the kernel {kind}")
    bias, weight = (set(one) & set("ap") for one in letters)
    if not bias and not weight:
        return scheme("nope"), {}
    kernel = "power" if bias else "none"
    parameters = {"r1": "bias_a", "r2": "bias_p"} if bias else {}
    parameters |= {"w1": "wei_a", "w2": "wei_p"} if weight else {}
    return scheme(f"kerple(kernel={kernel!r}, weight={bool(weight)})"), parameters
