"""SHAPE: sinusoids of the index and a random shift. The draws are inputs, those of evaluation are ours."""

from collections.abc import Iterator

import jax
import numpy as np

import posenc
from tests.golden.case import Case, Check, NotCovered

schemes = ("sinusoidal",)


def compare(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    if args["source"] != "shape":
        raise NotCovered("no coordinates draw shifts for each token and a global scale")
    x, offsets, length = a["x"].swapaxes(0, 1) * args["dim"] ** 0.5, a["offsets"], args["length"]
    limit = max(args["noise_size"] - 1, 0)
    scheme = posenc.parse(f"sinusoidal @ offset({limit}, evaluate={'largest' if args['noise_size'] else 'zero'!r})")
    index = np.broadcast_to(np.arange(length, dtype=np.int32), (args["batch"], length))
    place = jax.jit(lambda key: posenc.place(scheme, key, {"index": index, "length": length}, train=args["training"]))
    ours = np.asarray(place(jax.random.key(0)))
    if args["training"]:
        yield Check(
            "a draw is below noise_size, theirs and ours", (ours[:, 0] > limit) | (offsets > limit), offsets < 0, 0
        )
        ours = index + offsets[:, None]
    else:
        yield Check("offsets", ours[:, 0], offsets, 0)
    embed = jax.jit(lambda x, p: posenc.embed(scheme, {"layer": {}, "heads": {}}, x, positions=p))
    yield Check("out", embed(x, ours).swapaxes(0, 1), a["out"], 1e-5 if ours.max() < 100 else 5e-5)
