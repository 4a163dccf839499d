"""A scheme among others: every hook once and in order, sums, grouped queries, and what is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posenc.attention.attend import attend, embed
from posenc.contract.case import LENGTH, Case, rows
from posenc.contract.report import Outcome, absent, at_most, error, holds_if
from posenc.core.compose import Chain, imply, parts
from posenc.core.scheme import At, Dims, Scheme, Tile
from posenc.naming import bind, parse

COMPANIONS = "rope", "alibi"


def hooks_run_once_in_order(case: Case) -> Outcome:
    """Attention = the hooks called by hand, one head and one query at a time."""
    schemes, params = _parts(case.scheme, case.params)
    if case.scheme.reads == "heads":
        return absent("it reads all heads at once")
    return at_most(_by_hand_apart(case, case.plain(), schemes, params), 1e-11)


def sums_run_in_order(case: Case) -> Outcome:
    """`rope + scheme` and `scheme + alibi` = the hooks of both called by hand, in that order."""
    if case.scheme.reads == "heads":
        return absent("it reads all heads at once")
    schemes, params = _parts(case.scheme, case.params)
    apart, refused = [], []
    for name, first in zip(COMPANIONS, (True, False), strict=True):
        other = bind(parse(name), case.dims)
        p = {"layer": {}, "heads": {}}
        ours = [(other, p), *zip(schemes, params, strict=True)]
        ours = ours if first else [*ours[1:], ours[0]]
        try:
            chain = bind(Chain(tuple(s for s, _ in ours)), case.dims)
        except ValueError as refusal:
            refused.append(str(refusal))
            continue
        run = case.jit(lambda p, a, chain=chain: Case.layer(_With(chain, case.project), p, a))
        out = run(tuple(p for _, p in ours), case.inputs)
        apart.append(_by_hand_apart(case, out, [s for s, _ in ours], [p for _, p in ours]))
    return at_most(max(apart), 1e-11, "; ".join(refused)) if apart else absent("; ".join(refused))


class _With(NamedTuple):
    """A case with another scheme in it."""

    scheme: Scheme
    project: Any


def _by_hand_apart(case: Case, out: Any, schemes: list[Scheme], params: list[Any]) -> float:
    """How far the outputs of one head are from its hooks, written out: each part's hook in turn, one document."""
    index, heads, head = jnp.arange(LENGTH, dtype=jnp.int32), case.dims.heads, (case.dims.heads - 2) % case.dims.heads

    @case.jit
    def by_hand(params, a):
        at = At(index, index, jnp.ones_like(index), index + 1, jnp.int32(head), heads)
        y = a.x
        for s, p in zip(schemes, params, strict=True):
            y = s.embed(p["layer"], y, _told(s, at))
        own = [p["layer"] | rows(p["heads"], head) for p in params]
        return _head(schemes, own, *(b[:, head] for b in case.project(y, a)), y, at, case.dims)

    return error(out[:, head], by_hand(params, case.inputs))


def _head(parts, own, q, k, v, y, at: At, dims: Dims) -> Float[Array, "L d"]:
    said, told = [], []
    for s, p in zip(parts, own, strict=True):
        c, _ = s.locate(p, y, _told(s, at), s.carry(dims))
        (q, i), (k, j), v = s.query(p, q, c), s.key(p, k, c), s.value(p, v, c)
        said.append((i, j))
        told.append(c)
    scale = next((s.scale(dims.head) for s in parts if s.overrides("scale")), dims.head**-0.5)
    score = logits = q @ k.T * scale
    seen = at.index[None, :] <= at.index[:, None]
    apart = [(a := _told(s, at).position)[:, None] - a[None, :] for s in parts]
    rest = logits, scale, seen, at.index, at.index, at.head, at.heads
    tiles = [Tile(*pair, distance, *rest) for pair, distance in zip(said, apart, strict=True)]
    three = list(zip(parts, own, tiles, strict=True))
    for s, p, tile in three:
        score = s.score(p, score, tile)
    a = next((s.normalize(p, score, tile) for s, p, tile in three if s.overrides("normalize")), None)
    a = jax.nn.softmax(jnp.where(seen, score, -jnp.inf), -1) if a is None else a
    o = a @ v + sum(s.value_bias(p, a, tile) for s, p, tile in three if s.overrides("value_bias"))
    for s, p, c in reversed(list(zip(parts, own, told, strict=True))):
        o = s.output(p, o, c)
    return o


def _told(scheme: Scheme, at: At) -> At:
    """What is known of tokens, with as many numbers to a position as this part has axes."""
    return at._replace(position=imply(scheme, at.position))


def _parts(scheme: Scheme, params: Any) -> tuple[list[Scheme], list[Any]]:
    """A scheme and its parameters as lists of parts, those of a sum within a sum too."""
    return list(parts(scheme)), jax.tree.leaves(params, is_leaf=lambda p: isinstance(p, dict))


def grouped_queries_equal_repeated_keys(case: Case) -> Outcome:
    """Query heads that share a key head = that key head repeated for each."""
    heads = case.dims.heads
    groups = next((n for n in range(heads // 2, 1, -1) if heads % n == 0), 1)
    group = np.array([h * groups // heads for h in range(heads)])

    @case.jit
    def both(p, a):
        y = embed(case.scheme, p, a.x)
        q, k, v = case.project(y, a)
        few = attend(case.scheme, p, q, k[:, :groups], v[:, :groups], x=y)
        return few, attend(case.scheme, p, q, k[:, group], v[:, group], x=y)

    return at_most(error(*both(case.params, case.inputs)), 1e-11)


def wrong_positions_are_refused(case: Case) -> Outcome:
    """Positions of a wrong shape or type: one sentence that names them, before anything is computed."""
    index = case.index
    wrong = [index[:-1], np.stack([index] * 9, -1), index > 3, index + 0j, (case.positions(index),) * 7]
    for positions in wrong:
        shown = f"{len(positions)} arrays" if isinstance(positions, tuple) else f"{positions.dtype}{positions.shape}"
        try:
            jax.eval_shape(lambda p, a: case.layer(p, a, positions=positions), case.params, case.inputs)  # noqa: B023
        except (ValueError, TypeError) as refusal:
            said = str(refusal)
            if "osition" not in said or not said.endswith(".") or "\n" in said or len(said) > 300:
                return Outcome(False, reason=f"{shown} is refused in {said!r}, which is no sentence")
        else:
            return Outcome(False, reason=f"{shown} is taken for positions")
    return Outcome(True)


def real_positions_serve_or_are_refused(case: Case) -> Outcome:
    """Positions between whole numbers: finite outputs, or a `TypeError`."""
    try:
        out = case.given(positions=case.index + 0.5)
    except TypeError as refusal:
        return Outcome(str(refusal).endswith("."), reason=f"refused: {refusal}")
    return holds_if(bool(jnp.all(jnp.isfinite(out))), "outputs are not finite")
