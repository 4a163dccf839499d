"""What tasks and texts say of positions: Abacus, bilevel positions, and the rules of position coupling."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.core.scheme import Tile
from posenc.lab.tasks import coupling
from tests.golden.case import Case, Check

schemes = ("abacus", "alibi", "learned", "rope")
SEPARATORS = [13, 869]


def compare(case: Case) -> Iterator[Check]:
    kinds = {"abacus": _abacus, "bipe_alibi": _bipe_alibi, "bipe": _bipe, "addition": _addition}
    kinds |= {
        "multiplication_n": _multiplication,
        "multiplication_s": _scratchpad,
        "minesweeper": _board,
        "copy": _copy,
    }
    rule = next(rule for start, rule in kinds.items() if case.id.startswith(start))
    yield from rule(case.args, case.arrays)


def _place(text: str, given: dict):
    index = np.arange(next(iter(given.values())).shape[-1], dtype=np.int32)
    return posenc.place(posenc.parse(text), jax.random.key(0), given | {"index": index, "length": index.size})


def _abacus(args, a) -> Iterator[Check]:
    flags = np.isin(a["tokens"], args["digit_tokens"])
    placed = _place("abacus @ given('digit')", {"digit": coupling.digits(jnp.asarray(flags))})
    ids = jnp.where(placed > 0, placed + args["offset"], 0)  # their draw is an input
    yield Check("ids", ids, a["ids"], 0)
    params = {"layer": {"table": jnp.asarray(a["table"])}, "heads": {}}
    x, scheme = np.zeros_like(a["embedding"]), posenc.parse(f"abacus(rows={len(a['table'])})")
    ours = posenc.embed(scheme, params, x, positions=ids)
    yield Check("embedding", ours, a["embedding"], 0)


def _bilevel(args, a, second, limit=None):
    """Bilevel encoding is a sum of two schemes, each told another half of a position."""
    separator = np.isin(a["tokens"], args.get("separators", SEPARATORS))
    return _place(f"learned @ segments('inside', {limit}) + {second} @ segments('which')", {"separator": separator})


def _bipe(args, a) -> Iterator[Check]:
    intra, inter = _bilevel(args, a, "rope", args["train_scale"])
    yield Check("intra", intra, a["intra"], 0)
    yield Check("inter", inter, a["inter"], 0)


def _bipe_alibi(args, a) -> Iterator[Check]:
    """Theirs is 96 m (segment of the key): ours is that less what is the same for all keys of a query."""
    _, inter = _bilevel(args, a, "alibi(factor=96.0)")
    yield Check("inter", inter, a["inter"], 0)
    alibi, heads = posenc.parse("alibi(factor=96.0)"), args["heads"]
    index, zero = jnp.arange(args["length"]), jnp.zeros((args["length"],) * 2)

    def one(head, segment):
        distance = segment[:, None] - segment[None, :]
        tile = Tile(index, index, distance, zero, 1.0, zero == 0, index, index, head, heads)
        return alibi.score({}, zero, tile)[-1]  # the last query sees every key, and none is after its segment

    ours = jax.vmap(jax.vmap(one, (0, None)), (None, 0))(jnp.arange(heads), inter)[:, :, None]
    yield Check("bias", ours - ours[..., :1], a["bias"] - a["bias"][..., :1], 1e-6)


def _along(ids, args, a, equals_in_input) -> Iterator[Check]:
    """The = is in their input or in their label; its number is the same in ours."""
    cut = len(args["input"]) + (1 if equals_in_input else 0)
    yield Check("input_ids", ids[..., :cut], a["input_ids"], 0)
    yield Check("label_ids", ids[..., cut:], a["label_ids"], 0)


def _addition(args, a) -> Iterator[Check]:
    first, second = map(len, args["input"].split("+"))
    start = int(a["input_ids"][first])  # the + has the start, which they draw
    i = np.arange(first + second + len(args["label"]) + 2)
    ways = {k: args[k] for k in ("reverse_input", "reverse_output")}
    ids = coupling.addition(i, first, second, len(args["label"]), start=start, **ways)
    yield from _along(ids, args, a, False)


def _multiplication(args, a) -> Iterator[Check]:
    first, second = map(len, args["input"].split("*"))
    start = int(a["input_ids"][first]) - first - second
    i = np.arange(first + second + len(args["label"]) + 2)
    ids = coupling.multiplication(
        i, first, second, len(args["label"]), start=start, reverse_output=args["reverse_output"]
    )
    yield from _along(ids, args, a, True)


def _copy(args, a) -> Iterator[Check]:
    n, backwards = len(args["input"]), args["reverse_output"]
    start = int(a["input_ids"][0]) - (0 if backwards else 1)
    ids = coupling.copied(np.arange(2 * n + 1), n, start=start, backwards=backwards)
    yield from _along(ids, args, a, backwards)


def _board(args, a) -> Iterator[Check]:
    i = np.arange(2 * len(args["input"]) + 1)
    start = tuple(int(s) for s in a["input_ids"][:, -1]) if args["randomize"] else (1, 1)
    ids = jnp.stack(coupling.board(i, args["width"], args["height"], start=start))
    yield from _along(ids, args, a, True)


def _scratchpad(args, a) -> Iterator[Check]:
    first, second = map(len, args["input"].split("*"))
    partial, sums = (
        [len(part) for part in side.split(sign)] for side, sign in zip(args["label"].split("="), "+>", strict=True)
    )
    ways = {k: args[k] for k in ("reverse_input", "reverse_output")}
    start = (int(a["label_ids"][0, 0]), int(a["label_ids"][1, 0]), int(a["label_ids"][2, 0]))
    ids = coupling.scratchpad(first, second, partial, sums, start=start, **ways)
    yield from _along(ids, args, a, False)
