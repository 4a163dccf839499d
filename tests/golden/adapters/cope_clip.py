"""RoPE whose lowest frequencies are tapered, or cut: plain, or after YaRN and Llama 3 scaled them."""

from collections.abc import Iterator

import jax
import numpy as np

import posenc
from tests.golden.case import Case, Check
from tests.golden.spectrum import said, spectrum
from tests.golden.turned import pull, reach, turned

schemes = ("rope", "yarn", "llama3")
NAMES = {"original_max_position_embeddings": "original"}


def compare(case: Case) -> Iterator[Check]:
    args, a, head = case.args, case.arrays, case.args["head_dim"]
    share = args["tapered"] / args["frequencies"]
    clip = {"taper": share} if args["form"] == "soft" else {"p": 1 - share}
    scaled = {NAMES.get(name, name): value for name, value in args.get("scaling_args", {}).items()}
    name = {"default": "rope"}.get(args["scaling"], args["scaling"])
    scheme = said(name, head, base=args["rope_theta"], layout=args["layout"], **clip, **scaled)
    ours, size = spectrum(scheme, head)
    yield Check("inv_freq", ours, a["inv_freq"], 1e-6)
    yield Check("attention_factor", size, np.full(len(size), args["attention_factor"]), 1e-7)
    recorded = tuple(a["inv_freq"].tolist())  # rounded to float32, which far positions magnify
    given = posenc.parse(f"rope(frequencies={recorded!r}, layout={args['layout']!r})")
    for side, x in (("query", "q"), ("key", "k")):
        with jax.enable_x64(True):
            exact = args["attention_factor"] * turned(given, side, a[x].astype(float), a["positions"])
            yield Check(f"{x}_out_f64", exact, a[f"{x}_out_f64"], 1e-10)
        yield Check(f"{x}_out", turned(scheme, side, a[x], a["positions"]), a[f"{x}_out"], reach(a["positions"]))
    grad = pull(lambda q: turned(scheme, "query", q, a["positions"]), a["q"], a["cotangent"])
    yield Check("grad_q", grad, a["grad_q"], reach(a["positions"]))
