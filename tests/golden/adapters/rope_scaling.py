"""Frequencies and attention factors of transformers' rope types, through the hooks of the schemes that they are."""

from collections.abc import Iterator

import numpy as np

import posenc
from posenc.huggingface import from_hf
from tests.golden.case import Case, Check
from tests.golden.spectrum import said, spectrum

schemes = ("pi", "ntk", "dynamic_ntk", "yarn", "longrope", "llama3", "rope")


def compare(case: Case) -> Iterator[Check]:
    args, a, head = case.args, case.arrays, case.args["head_dim"]
    length = args.get("seq_len") or 1
    ours, size = spectrum(scheme(args), head, length)
    theirs = a["inv_freq"].astype(float)
    turned = theirs != 0
    yield Check("frequencies of 0", ours[~turned], theirs[~turned], 1e-12)
    yield Check("inv_freq, relative", ours[turned] / theirs[turned], np.ones(turned.sum()), 1e-6)
    factor = a["attention_factor"] if "attention_factor" in a else 1.0
    yield Check("attention_factor, relative", size / factor, np.ones(len(size)), 1e-7)


def scheme(args):
    """The scheme that the arguments of a case describe."""
    if args["rope_type"].startswith("ntk"):
        return said("ntk", args["head_dim"], factor=args["alpha"], base=args["rope_theta"])
    outside = {name: args[name] for name in ("head_dim", "max_position_embeddings")}
    about = {name: value for name, value in args.items() if name not in (*outside, "seq_len", "source")}
    kind = "phi" if args["rope_type"] == "yarn" and "partial_rotary_factor" in args else "llama"
    config = {"model_type": kind, "rope_parameters": about, **outside}
    return posenc.bind(from_hf(config), posenc.Dims(args["head_dim"], 1, args["head_dim"], 16))
