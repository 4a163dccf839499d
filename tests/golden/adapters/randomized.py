"""DeepMind's encodings under sorted random positions, ALiBi under sorted random distances, and plain relative ones."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.scheme import Tile
from tests.golden.adapters.sinusoidal import encoding
from tests.golden.case import Case, Check, NotCovered
from tests.golden.through import scheme, scores
from tests.golden.turned import pull, reach, rope, turned

schemes = ("rope", "sinusoidal", "learned", "alibi", "transformer_xl")


def compare(case: Case) -> Iterator[Check]:
    kind = case.id.rstrip("0123456789")
    if kind not in KINDS:
        raise NotCovered("random distances are not yet among the coordinates")
    yield from KINDS[kind](case.args, case.arrays)


def _rotary(args, a) -> Iterator[Check]:
    heads_first = lambda x: x.swapaxes(1, 2)  # noqa: E731
    x, positions = heads_first(a["x"]), a["positions"]
    turns, tolerance = rope(args, x.shape[-1]), reach(positions)
    f = lambda x: turned(turns, "query", x, positions)  # noqa: E731
    yield Check("x_out", f(x), heads_first(a["x_out"]), tolerance)
    yield Check("grad_x", pull(f, x, heads_first(a["cotangent"])), heads_first(a["grad_x"]), tolerance)


def _sinusoidal(args, a) -> Iterator[Check]:
    yield Check("encoding", encoding("sinusoidal(layout='halves')", a["positions"], args["dim"]), a["encoding"], 2e-5)


def _learned(args, a) -> Iterator[Check]:
    params, x = {"layer": {"table": jnp.asarray(a["table"])}, "heads": {}}, np.zeros_like(a["encoding"])
    ours = posenc.embed(posenc.parse("learned"), params, x, positions=a["positions"])
    yield Check("encoding", ours, a["encoding"], 0)


def _alibi(args, a) -> Iterator[Check]:
    """`left` and `right` say which distance stands for each gap: a key before the query has the past's, positive."""
    past, future = np.append(0, a["left"]), np.append(0, a["right"])
    gap = np.subtract.outer(np.arange(args["length"]), np.arange(args["length"]))
    distance = jnp.asarray(np.where(gap >= 0, past[np.abs(gap)], -future[np.abs(gap)]))
    alibi, zero = posenc.parse("alibi(form='half')"), jnp.zeros(gap.shape)
    index = jnp.arange(args["length"])

    def one(head):
        seen = jnp.ones(gap.shape, bool)
        return alibi.score({}, zero, Tile(index, index, distance, zero, 1.0, seen, index, index, head, args["heads"]))

    yield Check("bias", jax.vmap(one)(jnp.arange(args["heads"])), a["bias"], 1e-6)


def _plain_relative(args, a) -> Iterator[Check]:
    """Theirs is the sinusoid of key minus query; the causal form as released is that of L - 1 more, below a mask."""
    heads, d, index = args["heads"], args["head_dim"], np.arange(args["length"], dtype=np.int32)
    p = {"u": a["content_bias"], "v": a["relative_bias"], "w": a["w"].reshape(-1, heads, d).swapaxes(0, 1)}
    shift = args["length"] - 1 if args["causal"] else 0
    theirs = a["logits_as_released"]
    ours = [
        scores(scheme("transformer_xl", width=heads * d), {"layer": {}, "heads": p}, q, k, scale=1.0, **where)
        for q, k in zip(a["q"], a["k"], strict=True)
        for where in [{"positions": -index, "key_positions": -index - shift}]
    ]
    yield Check("logits", np.tril(ours) if args["causal"] else np.array(ours), theirs, 2e-5)


KINDS = {
    "plain_relative": _plain_relative,
    "rotary": _rotary,
    "sinusoidal": _sinusoidal,
    "learned": _learned,
    "alibi": _alibi,
}
