"""Slopes for half of the heads, a temperature for the others, sparse weights, and all three at once."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.schemes.entmax import entmax
from tests.golden.case import Case, Check
from tests.golden.through import bias, gradients, run

schemes = ("alibi", "asentmax", "entmax")
NONE = {"layer": {}, "heads": {}}


def compare(case: Case) -> Iterator[Check]:
    yield from {"slopes": _slopes, "temperature": _temperature, "entmax": _entmax, "attention": _attention}[
        case.args["source"]
    ](case)


def _alibi(case: Case) -> tuple[float, ...]:
    """The slope of each head."""
    args = case.args
    h = np.arange(args["alibi_heads"])
    some = 1 / (h + 1) if args["slope_type"] == "linear" else 0.5**h
    slopes = np.append(some, np.zeros(args["heads"] - len(some)))
    np.testing.assert_allclose(case.arrays["slopes"], slopes, atol=1e-7)
    return tuple(slopes.tolist())


def _slopes(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    ours = bias(posenc.parse(f"alibi(slopes={_alibi(case)!r})"), NONE, args["heads"], args["length"], args["length"])
    yield Check("slopes", -ours[:, 1, 0], a["slopes"], 1e-7)
    yield Check("bias", np.tril(ours), a["bias"], 1e-6)


def _said(args) -> str:
    spread = "" if args.get("gamma_range") is None else f", spread={args['gamma_range']!r}"
    return f"asentmax({args['kind']!r}, delta={args['delta']!r}{spread})"


def _temperature(case: Case) -> Iterator[Check]:
    """The temperature of the last heads; positions count from the first key."""
    args, a = case.args, case.arrays
    scheme, scaled = posenc.parse(_said(args)), args["scaled_heads"]
    positions = jnp.arange(args["k_len"] - args["length"], args["k_len"], dtype=jnp.int32)
    ending = "_proj" if args["kind"] == "adaptive" else ""
    ours = {name: f"{name}{ending}" for name in ("beta", "gamma")}
    names = [name for name in ours if ours[name] in a]
    at = posenc.At(positions, positions, positions, positions, jnp.int32(0), scaled)

    def f(q, x, *given):
        def one(p, q, x):
            info, _ = scheme.locate(p, x, at, ())
            return scheme.query(p, q, info)[0]

        heads = dict(zip(names, given, strict=True))
        each = jax.vmap(jax.vmap(one, (0, 0, None)), (None, 0, 0))
        last = each(heads, q[:, -scaled:], x)
        return jnp.concatenate([q[:, : q.shape[1] - scaled], last], 1)

    x = a["x"] if "x" in a else np.zeros((*a["q"].shape[:1], a["q"].shape[2], 1), np.float32)
    out, (grad_q, grad_x, *grads) = run(f, a["cotangent"], a["q"], x, *(a[ours[n]] for n in names))
    yield Check("q_out", out, a["q_out"], 1e-5)
    yield Check("grad_q", grad_q, a["grad_q"], 5e-5)
    if "x" in a:
        yield Check("grad_x", grad_x, a["grad_x"], 5e-5)
    for name, grad in zip(names, grads, strict=True):
        yield Check(f"grad_{ours[name]}", grad, a[f"grad_{ours[name]}"], 5e-5)
    one = f(jnp.ones_like(a["q"]), x, *(jnp.asarray(a[ours[n]]) for n in names))
    yield Check("factor", one[:, -scaled:, :, 0], np.broadcast_to(a["factor"], one[:, -scaled:, :, 0].shape), 1e-5)


def _entmax(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    alpha, seen = args["alpha"], jnp.asarray(a["visible"])
    f = lambda s: jax.vmap(lambda s: entmax(alpha, s, seen))(s)  # noqa: E731
    out, (grad,) = run(f, a["cotangent"], a["scores"])
    yield Check("weights", out, a["weights"], case.forward)
    yield Check("grad_scores", np.where(seen, grad, 0), np.where(seen, a["grad_scores"], 0), case.backward)
    positive = np.asarray(out) > 1e-6
    tau = np.where(positive, (alpha - 1) * a["scores"] - np.asarray(out, float) ** (alpha - 1), -np.inf).max(-1)
    yield Check("tau", tau, a["tau"], case.tolerance(1e-5, 1e-10))


def _attention(case: Case) -> Iterator[Check]:
    """Heads with slopes and heads with a temperature: each share of the heads has a scheme of its own."""
    args, a = case.args, case.arrays
    heads, sloped, groups = args["heads"], args["alibi_heads"], args["kv_heads"]
    kind = args["temperature"]
    sparse = "" if args["alpha"] == 1 else f" + entmax(alpha={args['alpha']!r})"
    slopes = _alibi(case)[:sloped]
    slopes = "harmonic" if args["slope_type"] == "linear" else slopes
    asked = "nope" if kind is None else _said({"kind": kind, **args})
    first, last = f"alibi(slopes={slopes!r}){sparse}", f"{asked}{sparse}"
    scheme = posenc.parse(f"{{{first}: {sloped}, {last}: {heads - sloped}}}" if sloped < heads else first)
    names = {"adaptive": ["beta_proj", "gamma_proj"], "learned": ["beta", "gamma"], None: []}[kind]

    def f(q, k, v, *given):
        q, k, v = (jnp.asarray(t).swapaxes(1, 2) for t in (q, k, v))
        own = {name.removesuffix("_proj"): p for name, p in zip(names, given, strict=True)}
        rest = [NONE] * bool(sparse)
        params = (NONE, *rest, {"layer": {}, "heads": own}, *rest) if own else None
        x = a["x"] if "x" in a else None
        return posenc.attend(scheme, params, q, k, v, x=x).swapaxes(1, 2)

    given = [a[n] for n in names]
    out, grads = run(f, a["cotangent"], a["q"], a["k"], a["v"], *given)
    yield Check("out", out, a["out"], 1e-5)
    yield from gradients(case, ["q", "k", "v", *names], grads, 1e-4)
    length = args["length"]
    one = np.broadcast_to(np.eye(length, dtype=np.float32), (args["batch"], groups, length, length))
    yield Check("weights", f(a["q"], a["k"], one, *given), a["weights"], 1e-5)
    seen, top = np.tri(length, dtype=bool), a["weights"] > 1e-4
    s = np.where(seen, a["scores"], -np.inf)
    weigh = lambda s: entmax(args["alpha"], s, jnp.asarray(seen)) if sparse else jax.nn.softmax(s)  # noqa: E731
    ours = np.asarray(jax.vmap(jax.vmap(weigh))(s))
    yield Check("scores, as weights", np.where(top, ours, 0), np.where(top, a["weights"], 0), 1e-5)
