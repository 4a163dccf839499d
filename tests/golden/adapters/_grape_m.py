"""Multiplicative GRAPE: RoPE at learned frequencies turning the other way, and the contextual form.

`compare` is for the adapter of the family "grape".
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Case, Check
from tests.golden.through import gradients, run

schemes = ("rope", "grape_m")


def compare(case: Case) -> Iterator[Check]:
    yield from (_contextual if case.id.startswith("m_context") else _commuting)(case)


def turned(scheme, side, heads, x, told):
    """A hook on every head of every sequence, `[batch, length, heads, features]`; told `[heads, batch, length]`."""
    one = lambda own, x, c: getattr(scheme, side)(own, x, c)[0]  # noqa: E731
    return jax.vmap(jax.vmap(one, (None, 0, 0)), (0, 2, 0), 2)(heads, x, told)


def _commuting(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    scheme = posenc.parse("rope(frequencies='learned')")
    index = jnp.arange(args["length"], dtype=jnp.int32)
    told = jnp.broadcast_to(index, (args["heads"], args["batch"], args["length"]))

    def f(x, log_freq, side="query"):
        backwards = -jnp.exp(log_freq / args["log_freq_scale"])
        every = jnp.broadcast_to(backwards, (args["heads"], args["head_dim"] // 2))
        return turned(scheme, side, {"frequency": every}, x, told)

    out, (grad_q, grad_log_freq) = run(f, a["cotangent"], a["q"], a["log_freq"])
    yield Check("q_out", out, a["q_out"], 1e-5)
    yield Check("k_out", f(jnp.asarray(a["k"]), jnp.asarray(a["log_freq"]), "key"), a["k_out"], 1e-5)
    yield Check("grad_q", grad_q, a["grad_q"], 1e-4)
    yield Check("grad_log_freq", grad_log_freq, a["grad_log_freq"], 1e-4)


def _contextual(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    apart, own = args["phase_per_head"], not args["shared_over_heads"]
    text = f"grape_m(omega_scale={args['omega_scale']}, phase_per_head={apart}, frequencies_per_head={own})"
    scheme, heads = posenc.parse(text), args["heads"]
    index = jnp.arange(args["length"], dtype=jnp.int32)
    at = posenc.At(index, index, jnp.ones_like(index), index + 1, jnp.int32(0), heads)
    every = lambda x: jnp.broadcast_to(x, (heads, *x.shape[1:]))  # noqa: E731

    def f(x, q, log_freq, w, b, side="query"):
        p = {"w": every(w), "b": every(b), "log_frequency": log_freq if own else every(log_freq[None])}
        locate = lambda p, x: scheme.locate(p, x, at, scheme.carry(None))[0]  # noqa: E731
        phase = jax.vmap(jax.vmap(locate, (None, 0)), (0, None))(p, x)
        return turned(scheme, side, p, q, phase), phase

    names = ["x", "q", "log_freq", "omega_proj.weight", "omega_proj.bias"]
    (out, phase), grads = run(f, a["cotangent"], *(a[n] for n in names))
    yield Check("q_out", out, a["q_out"], 1e-5)
    yield Check("phase", np.moveaxis(phase, 0, -1)[..., : a["phase"].shape[-1]], a["phase"], 1e-5)
    given = (jnp.asarray(a[n]) for n in ("x", "k", *names[2:]))
    yield Check("k_out", f(*given, side="key")[0], a["k_out"], 1e-5)
    yield from gradients(case, names, grads, 1e-4)
