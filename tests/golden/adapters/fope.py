"""Fourier series on queries, as released and as described; coefficients are the recorded ones."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.core.scheme import SCHEMES
from posenc.numerics.rotation import frequencies
from tests.golden.case import Case, Check
from tests.golden.through import gradients, run

schemes = ("fope",)


def compare(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    dropped, heads, d = args["drop_zero_frequencies"], args["heads"], args["head_dim"]
    settings = {
        "length": args["max_sequence_length"],
        "zeros": "dropped" if dropped else "kept",
        "separate": args["separate_sin_cos"],
        "shared": not args["per_head"],
        "learned": True,  # for the recorded gradients
        "base": float(args["rope_theta"]),
    }
    names = {"sin_coef": "sin", "cos_coef": "cos"} if args["separate_sin_cos"] else {"fourier_coef": "both"}
    dims = posenc.Dims(heads * d, heads, d, args["max_sequence_length"])
    index = jnp.arange(args["length"], dtype=jnp.int32)

    def turned(scheme, side):
        def f(x, *coefficients):
            every = [c if args["per_head"] else jnp.broadcast_to(c, (heads, *c.shape)) for c in coefficients]
            p = dict(zip(names.values(), every, strict=True))
            each = jax.vmap(lambda p, x: getattr(scheme, side)(p, x, index)[0])
            return jax.vmap(each, (None, 0))(p, x)

        return f

    for form in ("as_released", "as_described"):
        scheme = posenc.bind(SCHEMES.find("fope")(form=form, **settings), dims)
        for side in ("query", "key"):
            out, back = run(turned(scheme, side), a["cotangent"], a["x"], *(a[n] for n in names))
            yield Check(f"out, {form}", out, a[f"out_{form}" if dropped else "out"], 1e-5)
        if form == "as_released":  # the recorded gradients are those of the released form
            yield from gradients(case, ("x", *names), back, 5e-5)
        made = posenc.init(scheme, jax.random.key(0), dims)["heads" if args["per_head"] else "layer"]
        theirs = {ours: a[name].shape for name, ours in names.items()}
        np.testing.assert_equal({name: x.shape for name, x in made.items()}, theirs)
    high = frequencies(d, float(args["rope_theta"]))
    high = np.where(high >= 2 * np.pi / args["max_sequence_length"], high, 0)
    yield Check("inv_freq", high[high > 0] if dropped else high, a["inv_freq"], 1e-5)
