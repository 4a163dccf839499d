"""Rotations for longer contexts as their authors released them, and p-RoPE as Gemma 4 has it."""

import re
from collections.abc import Iterator

import jax
import numpy as np

import posenc
from tests.golden.case import Case, Check
from tests.golden.spectrum import circle, said, spectrum
from tests.golden.turned import pull, reach, turned

schemes = ("rope", "pi", "dynamic_ntk", "by_parts", "yarn", "longrope")


def compare(case: Case) -> Iterator[Check]:
    if case.args["rope_type"] in ("proportional", "default"):
        yield from _p_rope(case)
        return
    args, a, head = case.args, case.arrays, case.args["head_dim"]
    length, scheme = args.get("length", 1), _scheme(case)
    position = args.get("start_token_idx", 0) + 1  # past the positions that keep the angles of RoPE
    if "start_token_idx" in args:
        ours, size = spectrum(scheme, head, length, position + 1)
    else:
        ours, size = spectrum(scheme, head, length)
    theirs = a["inv_freq"].astype(float) * args.get("position_scale", 1.0)  # the code scales positions instead
    yield Check("inv_freq, relative", ours / theirs, np.ones_like(ours), 2e-6)
    factor = args.get("attention_factor", 1.0)
    yield Check("attention factor", size, np.full_like(size, factor), 1e-7)
    if "positions" in a:
        for name, ours in zip(("cos", "sin"), circle(scheme, a["positions"], head, length), strict=True):
            yield Check(name, ours, a[name], reach(a["positions"]) * factor)


def _scheme(case: Case):
    args, head = case.args, case.args["head_dim"]
    about = {"base": float(args["rope_theta"]), "original": args.get("original_length")}
    match re.match("[a-z_]*[a-z]", case.id)[0]:
        case "by_parts":
            kept = {name: args[name] for name in ("ntk_factor", "extrapolation_factor")}
            return said("by_parts", head, factor=args["factor"], **kept, **about)
        case "yarn":
            names = "factor", "beta_fast", "beta_slow", "extrapolation_factor", "attention_factor"
            given = {name: args[name] for name in names[: 4 if args["attn_factor"] == 1 else 5]}
            return said("yarn", head, **given, **about)
        case "linear":
            return said("pi", head, factor=args["factor"], base=about["base"])
        case "dynamic_ntk":
            return said("dynamic_ntk", head, factor=args["alpha"], **about)
        case "dynamic_linear" | "dynamic_by_parts" | "dynamic_yarn" as name:
            return said("dynamic_ntk", head, rule=name.removeprefix("dynamic_"), **about)
        case "longrope" | "longrope_dynamic" | "longrope_start" as name:
            magnitude = args["magnitude"] if args["magnitude"] in ("su", "yarn") else float(args["magnitude"])
            switch, start = "gradual" if name.endswith("dynamic") else "never", args.get("start_token_idx")
            factor, long = args["target_length"] / args["original_length"], tuple(args["rescale_factors"])
            about |= {"factor": factor, "long": long, "magnitude": magnitude, "switch": switch, "start": start}
            return said("longrope", head, **about)
    raise ValueError(case.id)


def _p_rope(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    p = args["partial_rotary_factor"]
    scheme = posenc.parse(f"rope(base={args['rope_theta']!r}, layout={args['layout']!r}, p={p!r})")
    f = lambda q: turned(scheme, "query", q, a["positions"])  # noqa: E731
    yield Check("q_out", f(a["q"]), a["q_out"], 2e-5)
    yield Check("grad_q", pull(f, a["q"], a["cotangent"]), a["grad_q"], 2e-5)
    ours, _ = spectrum(scheme, args["head_dim"])
    yield Check("inv_freq", ours, a["inv_freq"], 2e-6)
    kept = a["inv_freq"] > 0
    yield Check("inv_freq, relative", ours[kept] / a["inv_freq"][kept].astype(float), np.ones(kept.sum()), 2e-6)
    if p == 1:
        scaled = posenc.parse(f"rope(base={args['rope_theta']!r}) @ scale(4.0)")
        quarter = posenc.place(scaled, jax.random.key(0), {"index": 4 * a["positions"], "length": 1})
        once = lambda q: turned(scaled.scheme, "query", q, quarter)  # noqa: E731
        yield Check("q_out, four times as far and divided by four", once(a["q"]), a["q_out"], 2e-5)
