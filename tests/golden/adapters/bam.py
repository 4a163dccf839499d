"""The prior and its gradients, the other function that the authors' code for inference computes, and whole layers."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.numerics.bias import slope
from tests.golden.case import Case, Check
from tests.golden.through import bias, gradients, run

schemes = ("bam", "ssmax")


def compare(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    heads = args["heads"]
    inference = case.id.startswith("inference")
    form = "inference" if inference else "training"
    joint = bool(args.get("ssmax_prior"))
    text = f"bam({form!r}, learned_place=True, ssmax={joint})"
    text = f"ssmax + {text}" if args.get("ssmax") and not joint else text
    scheme = posenc.parse(text)
    names = [n for n in ("shape", "scale", "loc", "seq_scale") if n in a]
    given = [a[n] for n in names]
    if "q" not in a:
        f = lambda *p: _prior(scheme, dict(zip(names, p, strict=True)), args)  # noqa: E731
        out, grads = run(f, a["cotangent"] if "cotangent" in a else None, *given)
        yield Check("bias", out, a["bias"], 1e-5)
        if case.id.startswith("start"):
            started = posenc.init(posenc.parse("bam"), jax.random.key(0), posenc.Dims(heads, heads, 1, 8))["heads"]
            mine = {"shape": started["shape"], "scale": started["scale"] + _slopes(heads), "loc": jnp.zeros(heads)}
            yield from (Check(f"{n} at the start", mine[n], a[n], 1e-6) for n in names)
    else:
        out, grads = run(
            lambda q, k, v, *p: _layer(case, scheme, names, q, k, v, p), a["cotangent"], *(a[n] for n in "qkv"), *given
        )
        yield Check("out", out, a["out"], 1e-5)
        yield from gradients(case, "qkv", grads[:3], 5e-5)
        grads = grads[3:]
        one = jnp.broadcast_to(
            jnp.eye(args["length"], dtype=jnp.float32)[None, None], (*a["v"].shape[:2], args["length"], args["length"])
        )
        yield Check("weights", _layer(case, scheme, names, a["q"], a["k"], one, given), a["weights"], 1e-5)
        yield from _logits(case)
    yield from gradients(case, names, grads, 5e-5)


def _slopes(heads):
    return jnp.log(slope(jnp.arange(heads), heads)).astype(jnp.float32)


def _heads(p, scheme):
    """Our parameters: theirs, but for ALiBi's slopes, which are not part of the scale here."""
    own = {"shape": p["shape"], "scale": p["scale"] - _slopes(len(p["scale"])), "place": p["loc"]}
    if "seq_scale" not in p:
        return {"layer": {}, "heads": own}
    if isinstance(scheme, posenc.Scheme) and scheme.overrides("score") and not hasattr(scheme, "parts"):
        return {"layer": {}, "heads": own | {"s": p["seq_scale"]}}
    return ({"layer": {}, "heads": {"s": p["seq_scale"]}}, {"layer": {}, "heads": own})


def _prior(scheme, p, args):
    queries, keys = args["length"], args["length"] + args.get("start_position", 0)
    return bias(scheme, _heads(p, scheme), args["heads"], queries, keys)


def _layer(case, scheme, names, q, k, v, p):
    q, k, v = (jnp.asarray(t).swapaxes(1, 2) for t in (q, k, v))
    params = _heads(dict(zip(names, p, strict=True)), scheme)
    segments = case.arrays["document"] + 1 - case.arrays["document"].min()
    return posenc.attend(scheme, params, q, k, v, segments=segments).swapaxes(1, 2)


def _logits(case) -> Iterator[Check]:
    """Scores are the logarithms of weights, up to a number for each row."""
    a = case.arrays
    seen = np.isfinite(a["scores"]) & (a["weights"] > 0)
    theirs = np.where(seen, a["scores"] - np.where(seen, a["scores"], -np.inf).max(-1, keepdims=True), 0)
    log = np.log(np.where(seen, a["weights"], 1))
    ours = np.where(seen, log - np.where(seen, log, -np.inf).max(-1, keepdims=True), 0)
    yield Check("scores of the record against its weights", ours, theirs, 1e-4)
