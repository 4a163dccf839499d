"""A scheme among others: every hook once and in order, sums, grouped queries, and refused positions."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posenc.attention.attend import attend, embed
from posenc.attention.shares import of_share, sizes
from posenc.contract.case import LENGTH, Case, rows
from posenc.contract.report import Outcome, absent, at_most, error, holds_if
from posenc.core.compose import Chain, Shares, imply, parts
from posenc.core.parameters import complete, init
from posenc.core.scheme import ROLES, At, Dims, Role, Scheme, Tile
from posenc.naming import bind, parse

COMPANIONS = "rope", "alibi"


def hooks_run_once_in_order(case: Case) -> Outcome:
    """Attention = the hooks called by hand, one head and one query at a time."""
    if case.scheme.reads == "heads":
        return absent("it reads all heads at once")
    apart, out, full = [], case.plain(), complete(case.scheme, case.params)
    for cut, _ in sizes(case.scheme, case.dims):
        schemes, params = _parts(cut.scheme, of_share(case.scheme, cut, full))
        apart.append(_by_hand_apart(case, out, schemes, params, cut.first, cut.heads))
    return at_most(max(apart), 1e-11)


def sums_run_in_order(case: Case) -> Outcome:
    """`rope + scheme` and `scheme + alibi` = the hooks of the two called by hand, in that order."""
    if case.scheme.reads == "heads":
        return absent("it reads all heads at once")
    if isinstance(case.scheme, Shares):
        return absent("a sum stands within the braces of shared heads")
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
        run = case.jit(lambda p, a, chain=chain: Case.layer(cast(Any, _With(chain, case.project)), p, a))
        out = run(tuple(p for _, p in ours), case.inputs)
        apart.append(_by_hand_apart(case, out, [s for s, _ in ours], [p for _, p in ours]))
    return at_most(max(apart), 1e-11, "; ".join(refused)) if apart else absent("; ".join(refused))


class _With(NamedTuple):
    """A case with another scheme in it."""

    scheme: Scheme
    project: Any


def _by_hand_apart(
    case: Case, out: Any, schemes: list[Scheme], params: list[Any], first: int = 0, heads: int | None = None
) -> float:
    """How far the outputs of one head are from its hooks, written out: each part's hook in turn, one document. The head
    is one of those from the `first` on that these schemes have."""
    heads = case.dims.heads if heads is None else heads
    index, head, dims = (
        jnp.arange(LENGTH, dtype=jnp.int32),
        (heads - 2) % heads,
        dataclasses.replace(case.dims, heads=heads),
    )

    @case.jit
    def by_hand(params, a):
        at = At(index, index, jnp.ones_like(index), index + 1, jnp.int32(head), heads)
        y = a.x
        for s, p in zip(schemes, params, strict=True):
            y = s.embed(p["layer"], y, _on_axes(s, at))
        head_params = [p["layer"] | rows(p["heads"], head) for p in params]
        mine = [b[:, first : first + heads] for b in case.project(y, a)]
        by_role: dict[Role, Any] = dict(zip(ROLES, mine, strict=True))
        for s, p in zip(schemes, params, strict=True):
            for role, before in s.neighbour_carry(dims).items():
                by_role[role], _ = s.neighbours(p["layer"], role, by_role[role], _on_axes(s, at), before)
        q, k, v = (b[:, head] for b in by_role.values())
        return _head(schemes, head_params, q, k, v, y, at, dims)

    return error(out[:, first + head], by_hand(params, case.inputs))


def _head(parts, head_params, q, k, v, y, at: At, dims: Dims) -> Float[Array, "L d"]:
    pairs, infos = [], []
    for s, p in zip(parts, head_params, strict=True):
        info, _ = s.locate(p, y, _on_axes(s, at), s.carry(dims))
        paired = s.pair(p, k, v, info)[1] if s.overrides("pair") else None
        (q, i), (k, j), v = s.query(p, q, info), s.key(p, k, info), s.value(p, v, info)
        pairs.append((i, j if paired is None else paired))
        infos.append(info)
    scale = next((s.scale(dims.head) for s in parts if s.overrides("scale")), dims.head**-0.5)
    score = logits = q @ k.T * scale
    visible = at.index[None, :] <= at.index[:, None]
    apart = [(a := _on_axes(s, at).position)[:, None] - a[None, :] for s in parts]
    rest = logits, scale, visible, at.index, at.index, at.head, at.heads
    tiles = [Tile(i, j, distance, *rest) for (i, j), distance in zip(pairs, apart, strict=True)]
    three = list(zip(parts, head_params, tiles, strict=True))
    for s, p, tile in three:
        score = s.score(p, score, tile)
    a = next((s.normalize(p, score, tile) for s, p, tile in three if s.overrides("normalize")), None)
    a = jax.nn.softmax(jnp.where(visible, score, -jnp.inf), -1) if a is None else a
    o = a @ v + sum(s.value_bias(p, a, tile) for s, p, tile in three if s.overrides("value_bias"))
    for s, p, info in reversed(list(zip(parts, head_params, infos, strict=True))):
        o = s.output(p, o, info)
    return o


def _on_axes(scheme: Scheme, at: At) -> At:
    """The metadata of the tokens, with one number per position for each axis of this part."""
    return at._replace(position=imply(scheme, at.position))


def _parts(scheme: Scheme, params: Any) -> tuple[list[Scheme], list[Any]]:
    """A scheme and its parameters as lists of parts, those of a sum within a sum too."""
    return list(parts(scheme)), jax.tree.leaves(params, is_leaf=lambda p: isinstance(p, dict))


def grouped_queries_equal_repeated_keys(case: Case) -> Outcome:
    """Query heads that share a key head = that key head repeated for each."""
    heads = case.dims.heads
    groups = next((n for n in range(heads // 2, 1, -1) if heads % n == 0), 1)
    group = np.array([h * groups // heads for h in range(heads)])

    few_params, params = _grouped(case, groups)

    @case.jit
    def outputs(few_params, params, a):
        y = embed(case.scheme, params, a.x)
        q, k, v = case.project(y, a)
        few = attend(case.scheme, few_params, q, k[:, :groups], v[:, :groups], x=y)
        return few, attend(case.scheme, params, q, k[:, group], v[:, group], x=y)

    return at_most(error(*outputs(few_params, params, case.inputs)), 1e-11)


def _grouped(case: Case, groups: int) -> tuple[Any, Any]:
    """Parameters for so few key heads, and for as many as query heads, where those of a key head are repeated."""
    dims = dataclasses.replace(case.dims, key_heads=groups)
    few = jax.eval_shape(lambda key: init(case.scheme, key, dims), jax.random.key(0))
    same = jax.tree.map(lambda a, b: np.shape(a) == b.shape, case.params, few)
    cut = jax.tree.map(lambda a, b, alike: a if alike else a[: b.shape[0]], case.params, few, same)
    repeated = lambda a, b: b[np.arange(len(a)) * len(b) // len(a)]  # noqa: E731
    return cut, jax.tree.map(lambda a, b, alike: b if alike else repeated(a, b), case.params, cut, same)


def wrong_positions_are_refused(case: Case) -> Outcome:
    """Positions of a wrong shape or type: one sentence that names them, before anything is computed."""
    index = case.index
    wrong = [index[:-1], np.stack([index] * 9, -1), index > 3, index + 0j, (case.positions(index),) * 7]
    for positions in wrong:
        shown = f"{len(positions)} arrays" if isinstance(positions, tuple) else f"{positions.dtype}{positions.shape}"
        try:
            jax.eval_shape(lambda p, a: case.layer(p, a, positions=positions), case.params, case.inputs)  # noqa: B023
        except (ValueError, TypeError) as refusal:
            text = str(refusal)
            if "osition" not in text or not text.endswith(".") or "\n" in text or len(text) > 300:
                return Outcome(False, reason=f"{shown} is refused, but not in one sentence about positions: {text!r}")
        else:
            return Outcome(False, reason=f"{shown} is accepted as positions")
    return Outcome(True)


def real_positions_serve_or_are_refused(case: Case) -> Outcome:
    """Positions between whole numbers: finite outputs, or a `TypeError`."""
    try:
        out = case.output(positions=case.index + 0.5)
    except TypeError as refusal:
        return Outcome(str(refusal).endswith("."), reason=f"refused: {refusal}")
    return holds_if(bool(jnp.all(jnp.isfinite(out))), "outputs are not finite")
