"""The authors' attention, one head to a sequence, and the position logits of the listing."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.core.scheme import Tile
from tests.golden.case import Check
from tests.golden.through import checks, cotangent, run, scheme

schemes = ("cope",)


def compare(case):
    yield from _listing(case) if "attn_logits" in case.arrays else _released(case)


def _released(case):
    args, a = case.args, case.arrays
    own = args["separate_gate_key"] or args["gates_from_values"]
    text = (
        f"cope(npos={args['npos']}, gates={'own' if own else 'keys'!r}, scaled={not args['position_logits_unscaled']})"
    )
    cope, d = scheme(text), args["head_dim"]
    names = ["q", "k", "v", "pos_emb", *(["k_gate"] if args["separate_gate_key"] else [])]

    def f(q, k, v, embedding, gate=None, mixed=None):
        # gates of values are those of keys of their own, made from features that are the values
        gates = {"gate": jnp.eye(d, dtype=q.dtype)[None], "gate_bias": jnp.zeros((1, d), q.dtype)} if own else {}
        p = {"layer": {"embedding": embedding[0].T}, "heads": gates}
        one = lambda a: a[:, :, None]  # noqa: E731
        mixed = v if mixed is None else mixed
        return posenc.attend(cope, p, one(q), one(k), one(mixed), x=v if gate is None else gate)[:, :, 0]

    given = [a[n] for n in names]
    yield from checks(case, names, *run(f, cotangent(case), *given))
    each = np.broadcast_to(np.eye(args["length"], dtype=a["q"].dtype), a["attn"].shape)  # what it attends to, as values
    gate = a["k_gate"] if "k_gate" in a else a["v"]
    yield Check("attn", jax.jit(f)(*given[:4], gate, each), a["attn"], case.forward)


def _listing(case):
    args, a = case.args, case.arrays
    cope = scheme(f"cope(npos={args['npos']}, gates='scores', scaled=False)")
    index = jnp.arange(args["length"])

    @jax.jit
    @jax.vmap
    @jax.vmap
    def added(q, s):
        seen = s > -1e8
        s = jnp.where(seen, s, 0)  # what is masked comes as -1e9, from which nothing can be taken away again
        _, said = cope.query({"embedding": a["pos_emb"]}, q, ())
        tile = Tile(said, (), index, s, 0.5, seen, index, index, jnp.int32(0), args["heads"])
        return cope.score({}, s, tile) - s

    yield Check("position_logits", added(a["q"], a["attn_logits"]), a["position_logits"], case.forward)
