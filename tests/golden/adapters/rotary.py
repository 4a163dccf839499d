"""Rotations of queries and keys, in both layouts, of whole heads and of parts, in three precisions."""

import re
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from posenc.numerics.rotation import frequencies
from tests.golden.case import Case, Check
from tests.golden.spectrum import said
from tests.golden.turned import pull, reach, rope, turned

schemes = ("rope", "llama3")


def compare(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    heads_first = "axes" not in args
    q = _heads_first(a["q"], heads_first)
    positions = a["positions"] if "positions" in a else args["start_position"] + np.arange(q.shape[2])
    scheme = _llama3(args, q.shape[-1]) if args.get("llama3_scaling") else rope(args, q.shape[-1])
    half = args["dtype"].startswith("bf16") if "dtype" in args else False
    kind, tolerance = (jnp.bfloat16, 2.0**-6) if half else (jnp.float32, reach(positions))
    for side, name in (("query", "q"), ("key", "k")):
        if name not in a:
            continue
        x = _heads_first(a[name], heads_first)
        ours = np.asarray(turned(scheme, side, jnp.asarray(x, kind), positions).astype(jnp.float32))
        yield Check(f"{name}_out", ours, _heads_first(a[f"{name}_out"], heads_first), tolerance)
        if f"{name}_out_f64" in a:
            exact = a[f"{name}_out_f64"]
            yield Check(f"{name}_out in float32 against float64", ours, exact, 2e-6)
            with jax.enable_x64(True):
                yield Check(f"{name}_out_f64", turned(scheme, side, x.astype(float), positions), exact, 1e-10)
    if "grad_q" in a:
        grad = pull(lambda q: turned(scheme, "query", q, positions), q, _heads_first(a["cotangent"], heads_first))
        yield Check("grad_q", grad, _heads_first(a["grad_q"], heads_first), tolerance)
    yield from _tables(case, scheme, q, positions, tolerance)


def _llama3(args, head):
    """The release's constants are said in words."""
    factor, low, high, original = re.findall(r"\d+", args["scaling_constants"])
    factors = {"factor": float(factor), "low_freq_factor": float(low), "high_freq_factor": float(high)}
    about = {"base": args["rope_theta"], "original": int(original), "layout": args["layout"]}
    return said("llama3", head, **factors, **about)


def _tables(case: Case, scheme, q, positions, tolerance) -> Iterator[Check]:
    """Cosines and sines are what becomes of a pair (1, 0)."""
    a, args = case.arrays, case.args
    width = args.get("rotary_dim", q.shape[-1])
    if "inv_freq" in a:
        yield Check(
            "inv_freq, relative", a["inv_freq"] / frequencies(width, args["rope_theta"]), np.ones(width // 2), 1e-6
        )
    names = [n for n in (("cos", "sin"), ("freqs_cos", "freqs_sin")) if n[0] in a]
    for cos, sin in names:
        first = np.zeros((1, 1, 1, width), np.float32)
        first[..., : width // 2 if args["layout"] == "half" else None : 1 if args["layout"] == "half" else 2] = 1
        unit = np.zeros((q.shape[0], 1, *q.shape[2:]), np.float32)
        unit[..., :width] = first
        out = np.asarray(turned(scheme, "query", unit, positions))[:, 0, :, :width]
        pairs = np.split(out, 2, -1) if args["layout"] == "half" else (out[..., ::2], out[..., 1::2])
        for ours, theirs in zip(pairs, (a[cos], a[sin]), strict=True):
            ours = ours[0] if theirs.ndim == 2 else ours
            ours = np.concatenate([ours, ours], -1) if theirs.shape[-1] == width else ours
            yield Check(f"{cos}, {sin}", ours, theirs, tolerance)


def _heads_first(x: np.ndarray, already: bool) -> np.ndarray:
    return x if already else x.swapaxes(1, 2)
