"""Keys that read the token before: a moved part beside a rotation, learned weights, and convolutions."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.numerics import rotary
from tests.golden.case import Case, Check
from tests.golden.through import gradients, run

schemes = ("key_offset", "kv_shift", "canon")
NONE = {"layer": {}, "heads": {}}


def compare(case: Case) -> Iterator[Check]:
    rule = {"offset": _offset, "kv_shift": _shift, "canon": _canon}[case.args["source"]]
    yield from rule(case)


def _documents(case: Case) -> np.ndarray:
    document = case.arrays["document"]
    return document + 1 - document.min()


def _offset(case: Case) -> Iterator[Check]:
    """Their rotation turns back, and leaves some pairs still: frequencies that are given one by one."""
    args, a = case.args, case.arrays
    head, given = args["head_dim"], tuple((-a["inv_freq"]).tolist())
    rope = posenc.parse(f"rope(frequencies={given!r}, layout={args['layout']!r})")
    scheme, offset = posenc.parse("key_offset(fraction=0.5)") + rope, posenc.parse("key_offset(fraction=0.5)")
    if "yarn_windows" not in args:
        turning = 1024.0 ** -np.linspace(0, 1, head // 4)
        yield Check("inv_freq", rotary.frequencies_of(rope, head), -np.append(turning, 0 * turning), 1e-12)
    segments, first = _documents(case), lambda x: jnp.asarray(x, float).swapaxes(1, 2)
    q, k, v = (first(a[n]) for n in "qkv")
    turn = lambda x: jax.vmap(jax.vmap(lambda x: rope.query({}, x, jnp.asarray(a["positions"]))[0], 1, 1))(x)  # noqa: E731
    yield Check("q_out", turn(q).swapaxes(1, 2), a["q_out"], 1e-12)
    for name, segment in (("", segments), ("_as_released", np.ones_like(segments))):
        if f"k_out{name}" not in a:
            continue
        k_out = turn(_one(offset, "key", segment, heads_first=False)(k, None))
        yield Check(f"k_out{name}", k_out.swapaxes(1, 2), a[f"k_out{name}"], 1e-12)
        seen = np.tri(len(segments), dtype=bool) & (segments[:, None] == segments[None, :])
        about = {"segments": segments} if not name else {"mask": ("causal", seen)}

        def f(q, k, v, about=about):
            q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
            out = posenc.attend(scheme, (NONE, NONE), q, k, v, positions=a["positions"], scale=args["scale"], **about)
            return out.swapaxes(1, 2)

        given_qkv = [a[n].astype(float) for n in "qkv"]
        out, grads = run(f, a["cotangent"].astype(float), *given_qkv)
        yield Check(f"out{name}", out, a[f"out{name}"], 1e-12)
        one = np.broadcast_to(np.eye(len(segments)), (*a["v"].shape[:2], len(segments), len(segments)))
        yield Check(f"weights{name}", f(*given_qkv[:2], one), a[f"weights{name}"], 1e-12)
        repeated = jnp.repeat(k_out, q.shape[2] // k_out.shape[2], 2)
        ours = jnp.einsum("bqhd,bkhd->bhqk", turn(q), repeated) * args["scale"]
        theirs = a[f"scores{name}"]
        yield Check(f"scores{name}", np.where(seen, ours, 0), np.where(seen, theirs, 0), 1e-12)
        if not name:
            yield from gradients(case, "qkv", grads, 1e-10)


def _shift(case: Case) -> Iterator[Check]:
    a, scheme, segments = case.arrays, posenc.parse("kv_shift"), _documents(case)

    for n, role in (("k", "key"), ("v", "value")):
        given = [a[n].astype(float), a[f"{n}_weights"].astype(float)]
        out, (grad, grad_weights) = run(_one(scheme, role, segments), a[f"cotangent_{n}"].astype(float), *given)
        yield Check(f"{n}_out", out, a[f"{n}_out"], 1e-12)
        yield Check(f"grad_{n}", grad, a[f"grad_{n}"], 1e-12)
        yield Check(f"grad_{n}_weights", grad_weights, a[f"grad_{n}_weights"], 1e-12)


def _one(scheme, role, segments, heads_first=True):
    """A role's tokens and parameters as a function."""

    def f(x, weights):
        x = x.swapaxes(1, 2) if heads_first else x
        index = jnp.arange(len(segments), dtype=jnp.int32)
        at = posenc.At(index, index, jnp.asarray(segments, jnp.int32), index + 1, jnp.int32(0), 1)
        dims = posenc.Dims(x.shape[2] * x.shape[3], x.shape[2], x.shape[3], 8)
        past = scheme.neighbour_carry(dims)[role]
        out = jax.vmap(lambda x: scheme.neighbours({role: weights}, role, x, at, past)[0])(x)
        return out.swapaxes(1, 2) if heads_first else out

    return f


def _canon(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    activation, head = args["activation"] or "none", args["head_dim"]
    scheme = posenc.parse(f"canon(k={args['kernel']}, residual={args['residual']}, activation={activation!r})")
    for n, role in (("q", "query"), ("k", "key"), ("v", "value")):
        mixed = _one(scheme, role, _documents(case), heads_first=False)

        def f(x, kernel, mixed=mixed):
            heads = x.reshape(*x.shape[:2], -1, head)
            return mixed(heads, kernel.reshape(-1, head, args["kernel"])).reshape(x.shape)

        out, (grad, grad_kernel) = run(f, a[f"cotangent_{n}"], a[n], a[f"{n}_kernel"])
        yield Check(f"{n}_out", out, a[f"{n}_out"], 1e-5)
        yield Check(f"grad_{n}", grad, a[f"grad_{n}"], 5e-5)
        yield Check(f"grad_{n}_kernel", grad_kernel, a[f"grad_{n}_kernel"], 5e-5)
