"""Declarations: hooks read what the scheme declares, so that a kernel may be picked by it."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posenc.contract.case import LENGTH, Case, CaseInputs
from posenc.contract.report import Outcome, absent, at_most, error, largest
from posenc.core.scheme import ORDER, Tile

OTHER = 2.5


def scores_read_what_is_declared(case: Case) -> Outcome:
    """Check that a score reads what is declared. "distance" adds a function of distance alone, "positions" reads no
    content, and "nothing" adds nothing."""
    scheme, reads = case.scheme, case.scheme.reads
    if not scheme.overrides("score"):
        return absent("it has no score hook")
    if ORDER.index(reads) > ORDER.index("positions"):
        return absent(f"it reads {reads}, which may be anything of a {'row' if reads == 'row' else 'pair'}")
    others = jax.tree.map(lambda a: a[::-1] * OTHER + 1, case.inputs)
    pairs = case.jit(functools.partial(_one_score, case))(case.inputs, others)
    apart = max(error(*pair) for pair in pairs)
    return at_most(apart, 1e-12, "" if apart <= 1e-12 else f"it reads more than {reads}")


def _one_score(case: Case, a: CaseInputs, others: CaseInputs) -> list[tuple[Array, Array]]:
    """Return pairs that must be equal: the score, and the same score under changes that it may not read."""
    scheme, (p, tile) = case.scheme, case.tile(1, a)
    s = scheme.score(p, tile.logits, tile)
    if scheme.reads == "nothing":
        return [(s, tile.logits)]
    _, other_tile = case.tile(1, others)
    pairs = [(scheme.score(p, tile.logits, other_tile._replace(logits=tile.logits)), s)]
    if scheme.reads == "positions":
        return pairs
    added, other = s - tile.logits, tile.logits * OTHER + 1
    _, shifted = case.tile(1, a, case.index + 17)
    pairs.append((scheme.score(p, other, tile._replace(logits=other)) - other, added))
    pairs.append((scheme.score(p, tile.logits, shifted) - tile.logits, added))
    return [*pairs, (_band(case, p, tile)[case.index[:, None] - case.index[None, :] + LENGTH - 1], added)]


def _band(case: Case, p, tile: Tile) -> Float[Array, " distances"]:
    """Return the addition at each distance from the farthest future to the farthest past. There is one row per
    distance, and one key."""
    far = jnp.arange(1 - LENGTH, LENGTH)
    zero, none = jnp.zeros((len(far), 1), tile.logits.dtype), jnp.zeros(1, jnp.int32)
    visible = jnp.ones(zero.shape, bool)
    distance = jax.tree.map(lambda d: _columns(far.astype(d.dtype), d.shape[2:]), tile.distance)
    query_info, key_info = (jax.tree.map(lambda _, a=a: a, distance) for a in (far, none))
    band = Tile(query_info, key_info, distance, zero, tile.scale, visible, far, none, tile.head, tile.heads)
    return case.scheme.score(p, zero, band)[:, 0]


def _columns(far: Array, axes: tuple[int, ...]) -> Array:
    """One key's distances, the same on each axis of positions."""
    return jnp.broadcast_to(far.reshape(-1, 1, *[1] * len(axes)), (len(far), 1, *axes))


def scores_do_not_look_beyond_their_tile(case: Case) -> Outcome:
    """Any rectangle of the scores is the score of that rectangle; rows of whole rows where it reads rows."""
    scheme = case.scheme
    if not scheme.overrides("score", "normalize") or scheme.reads == "heads":
        return absent("it leaves scores alone" if scheme.reads != "heads" else "it reads all heads at once")
    keys, all_keys = slice(None) if scheme.reads == "row" else slice(2, 9), slice(None)

    @case.jit
    def compare_tiles(a):
        p, tile = case.tile(2, a)
        part, row = _part(tile, slice(4, 8), keys), _part(tile, slice(4, 8), all_keys)
        pairs = [(scheme.score(p, part.logits, part), scheme.score(p, tile.logits, tile)[4:8, keys])]
        if scheme.overrides("normalize"):
            pairs.append((scheme.normalize(p, row.logits, row), scheme.normalize(p, tile.logits, tile)[4:8]))
        return pairs

    return at_most(max(error(*pair) for pair in compare_tiles(case.inputs)), 1e-12)


def extra_is_linear(case: Case) -> Outcome:
    """Check that the addition to the weighted values is linear in the weights, so that tiles add up."""
    if not case.scheme.overrides("value_bias"):
        return absent("it adds nothing to the weighted values")

    @case.jit
    def compare_sums(inputs, a, b):
        p, tile = case.tile(1, inputs)
        f = functools.partial(case.scheme.value_bias, p)
        left, right = _part(tile, slice(None), slice(0, 5)), _part(tile, slice(None), slice(5, None))
        total = f(a, tile)
        return (f(a + 2 * b, tile), total + 2 * f(b, tile)), (f(a[:, :5], left) + f(a[:, 5:], right), total)

    weights = np.random.default_rng(4).uniform(size=(2, LENGTH, LENGTH))
    return at_most(max(error(*pair) for pair in compare_sums(case.inputs, *weights)), 1e-12)


def weights_are_zero_where_nothing_is_seen(case: Case) -> Outcome:
    """Weights from a `normalize` hook are zero at hidden keys."""
    if not case.scheme.overrides("normalize") or case.scheme.reads == "heads":
        return absent("its weights are softmax's" if not case.scheme.overrides("normalize") else "it reads all heads")

    @case.jit
    def hidden_weights(a):
        p, tile = case.tile(1, a)
        return jnp.where(tile.visible, 0, case.scheme.normalize(p, tile.logits, tile))

    return at_most(largest(hidden_weights(case.inputs)), 0.0)


def _part(tile: Tile, rows: slice, keys: slice) -> Tile:
    """A rectangle of a tile."""
    squares = {n: jax.tree.map(lambda a: a[rows, keys], getattr(tile, n)) for n in ("distance", "logits", "visible")}
    i, j = jax.tree.map(lambda a: a[rows], tile.query_info), jax.tree.map(lambda a: a[keys], tile.key_info)
    return tile._replace(query_info=i, key_info=j, qi=tile.qi[rows], ki=tile.ki[keys], **squares)
