"""DeepMind's encodings under sorted random positions, and theirs of distances: random ones and the plain ones."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.core.distances import Distances
from posenc.core.scheme import Tile
from tests.golden.adapters.sinusoidal import encoding
from tests.golden.case import Case, Check
from tests.golden.through import scheme, scores
from tests.golden.turned import pull, reach, rope, turned

schemes = ("rope", "sinusoidal", "learned", "alibi", "transformer_xl")


def compare(case: Case) -> Iterator[Check]:
    yield from KINDS[case.id.rstrip("0123456789")](case.args, case.arrays)


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
    """`left` and `right` say which distance stands for each gap; a key after the query is at a negative one."""
    drawn = Distances(*(jnp.append(0, side) for side in (a["left"], -a["right"])))
    index = jnp.arange(args["length"])
    alibi, zero = posenc.parse("alibi(form='half')"), jnp.zeros((index.size, index.size))

    def one(head):
        tile = Tile(index, index, drawn.between(index, index), zero, 1.0, zero == 0, index, index, head, args["heads"])
        return alibi.score({}, zero, tile)

    yield Check("bias", jax.vmap(one)(jnp.arange(args["heads"])), a["bias"], 1e-6)


def _parameters(a, heads, d):
    return {"u": a["content_bias"], "v": a["relative_bias"], "w": a["w"].reshape(-1, heads, d).swapaxes(0, 1)}


def _plain_relative(args, a) -> Iterator[Check]:
    """Theirs is the sinusoid of key minus query; the causal form as released is that of L - 1 more, below a mask."""
    heads, d, index = args["heads"], args["head_dim"], np.arange(args["length"], dtype=np.int32)
    shift = args["length"] - 1 if args["causal"] else 0
    ours = [
        scores(scheme("transformer_xl", width=heads * d), {"layer": {}, "heads": p}, q, k, scale=1.0, **where)
        for q, k in zip(a["q"], a["k"], strict=True)
        for p in [_parameters(a, heads, d)]
        for where in [{"positions": -index, "key_positions": -index - shift}]
    ]
    yield Check("logits", np.tril(ours) if args["causal"] else np.array(ours), a["logits_as_released"], 2e-5)


def _relative(args, a) -> Iterator[Check]:
    """Their distances are key minus query, ours query minus key: the sinusoids are those of the negated ones."""
    heads, d, length, limit = args["heads"], args["head_dim"], args["length"], args["noise_max_length"]
    past, future = -a["distances"][length::-1][:length], -a["distances"][length:]
    index = jnp.arange(length)
    relative = scheme("transformer_xl(form='scored')", width=heads * d)

    def logits(q, k, version):
        mine = (
            posenc.parse(f"nope @ random_sorted({limit}, over='distances', version={version!r})")
            .coordinates[0]
            .coordinates
        )
        drawn = mine.versioned(Distances(jnp.asarray(past), jnp.asarray(future)))
        distance = -drawn.between(index, index)

        def one(p, head, q, k):
            q, said = relative.query(p, q, index)
            k, told = relative.key(p, k, index)
            raw = q @ k.T
            tile = Tile(said, told, distance, raw, 1.0, raw == raw, index, index, head, heads)
            return relative.score(p, raw, tile)

        each = jax.vmap(one, (0, 0, 1, 1))
        return jax.vmap(lambda q, k: each(_parameters(a, heads, d), jnp.arange(heads), q, k))(q, k)

    for version in ("as_released", "as_described"):
        yield Check(version, logits(a["q"], a["k"], version), a[f"logits_{version}"], 2e-5)
    back = jax.vjp(lambda q, k: logits(q, k, "as_released"), a["q"], a["k"])[1](jnp.asarray(a["cotangent"]))
    for name, ours in zip(("grad_q", "grad_k"), back, strict=True):
        yield Check(name, ours, a[name], 5e-5)


KINDS = {
    "relative": _relative,
    "plain_relative": _plain_relative,
    "rotary": _rotary,
    "sinusoidal": _sinusoidal,
    "learned": _learned,
    "alibi": _alibi,
}
