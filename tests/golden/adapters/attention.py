"""Attention itself: no scheme, or a bias given as an array, which a scheme of two lines adds."""

import jax.numpy as jnp
import numpy as np

import posenc
from posenc.core.scheme import Scheme
from tests.golden.case import NotCovered
from tests.golden.through import checks, cotangent, run, scheme

schemes = ("nope",)


class Given(Scheme, name=None):
    """A bias that was computed elsewhere: what a stranger would write."""

    reads = "positions"

    def score(self, p, s, tile):
        return s + p["bias"]


def compare(case):
    a = case.arrays
    inputs = [a["q"], a["k"], a["v"]] + ([a["bias"]] if "bias" in a else [])
    f = _masked(case) if "mask" in a else _plain(case)
    yield from checks(case, ["q", "k", "v", "bias"], *run(f, cotangent(case), *inputs))


def _plain(case):
    mask = "causal" if case.args["causal"] else "full"
    if mask == "causal" and case.args["q_len"] != case.args["k_len"]:
        raise NotCovered("a causal mask between sequences of unequal length")

    def f(q, k, v, bias=None):
        q, k, v = (jnp.swapaxes(t, 1, 2) for t in (q, k, v))
        if bias is None:
            out = posenc.attend(scheme("nope"), {"layer": {}, "heads": {}}, q, k, v, mask=mask)
        else:
            biases = jnp.broadcast_to(bias, (q.shape[0], *bias.shape[1:]))
            each = [
                posenc.attend(Given(), {"layer": {}, "heads": {"bias": b}}, *t, mask=mask)
                for b, *t in zip(biases, q, k, v, strict=True)
            ]
            out = jnp.stack(each)
        return jnp.swapaxes(out, 1, 2)

    return f


def _masked(case):
    """A mask of rows: each row is one query of its own, beside the keys it may see."""
    mask = case.arrays["mask"]
    rows = np.broadcast_to(mask, mask.shape[-2:])

    def f(q, k, v):
        q, k, v = (jnp.swapaxes(t, 1, 2) for t in (q, k, v))
        each = []
        for n, row in enumerate(rows):
            out = posenc.attend(
                scheme("nope"),
                {"layer": {}, "heads": {}},
                q[:, n : n + 1],
                k,
                v,
                mask="full",
                segments=np.ones(1, np.int32),
                key_segments=row.astype(np.int32),
            )
            each.append(out[:, 0])
        return jnp.stack(each, 2)

    return f
