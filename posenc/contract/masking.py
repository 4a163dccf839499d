"""Masking: the future, other documents, padding and other examples stay out, exactly."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from posenc.attention.attend import attend, embed
from posenc.contract.case import DOCUMENTS, LENGTH, PADDED, Case, CaseInputs, put, restarted, rows
from posenc.contract.report import Outcome, absent, at_most, error, largest

DOCUMENT = np.flatnonzero(DOCUMENTS == 3)
GAPPED = np.array([1, 1, 0, 1, 1, 0, 0, 2, 2, 0, 2, 2], np.int32)
NOWHERE = np.zeros(LENGTH, np.int32)


def the_future_is_unseen(case: Case) -> Outcome:
    """A changed token changes nothing before it, and gradients of what is before do not reach it: exactly."""
    out, most = case.plain(), 0.0
    for token in (1, 7, LENGTH - 1):
        changed = case.plain(put(case.inputs, slice(token, None), 3.0))
        most = max(most, largest(changed[:token] - out[:token]))
        weight = np.where(np.arange(LENGTH)[:, None, None] < token, case.weight, 0)
        most = max(most, largest(rows(case.pull(weight)[1], slice(token, None))))
    return at_most(most, 0.0)


def packed_equals_separate(case: Case) -> Outcome:
    """Documents packed together = each alone, outputs and gradients."""
    packed, apart = case.output(segments=DOCUMENTS), 0.0
    for document in (1, 2, 3):
        here = np.flatnonzero(DOCUMENTS == document)
        apart = max(apart, error(packed[here], _alone(case, here)))
    grads = [case.pull(_only(case, DOCUMENTS == n), segments=DOCUMENTS) for n in (1, 2, 3)]
    together = case.pull(case.weight, segments=DOCUMENTS)
    apart = max(apart, error(jax.tree.map(lambda *a: sum(a), *grads), together))
    alone = np.where(np.arange(LENGTH) < len(DOCUMENT), 1, 0)
    moved = put(np.zeros(case.weight.shape), np.arange(len(DOCUMENT)), case.weight[DOCUMENT])
    by_params, by_inputs = case.pull(moved, a=_front(case.inputs, DOCUMENT), segments=alone)
    apart = max(apart, error(by_params, grads[2][0]))
    return at_most(max(apart, error(rows(by_inputs, alone > 0), rows(grads[2][1], DOCUMENT))), 1e-11)


def documents_do_not_leak(case: Case) -> Outcome:
    """A changed document changes no other, and gradients of one do not reach another: exactly."""
    out, most = case.output(segments=DOCUMENTS), 0.0
    for document in (1, 2, 3):
        in_document = DOCUMENTS == document
        changed = case.output(put(case.inputs, in_document, 7.0), segments=DOCUMENTS)
        most = max(most, largest((changed - out)[~in_document]))
        most = max(most, largest(rows(case.pull(_only(case, in_document), segments=DOCUMENTS)[1], ~in_document)))
    return at_most(most, 0.0)


def padding_changes_nothing(case: Case) -> Outcome:
    """Left padding, whatever its features, = no padding; the rows of padding are zero."""
    real = PADDED > 0
    alone = _alone(case, np.flatnonzero(real))
    padded = case.output(segments=PADDED)
    other = case.output(put(case.inputs, ~real, -50.0), segments=PADDED)
    return at_most(max(error(padded[real], alone), largest(padded[~real]), error(other, padded)), 1e-11)


def padding_inside_is_passed_over(case: Case) -> Outcome:
    """Padding inside a document = no padding, where positions skip it."""
    real = GAPPED > 0
    alone = _alone(case, np.flatnonzero(real))
    positions = np.maximum(np.cumsum(real, dtype=np.int32) - 1, 0)
    out = case.output(put(case.inputs, ~real, -50.0), positions=positions, segments=real.astype(np.int32))
    return at_most(max(error(out[real], alone), largest(out[~real])), 1e-11)


def padding_ends_no_document(case: Case) -> Outcome:
    """Implied positions go on counting where padding stands inside a document."""
    implied = case.jit(lambda p, a, s: case.layer(p, a, segments=s))(case.params, case.inputs, GAPPED)
    return at_most(error(implied, case.output(positions=restarted(GAPPED), segments=GAPPED)), 1e-11)


def nan_in_padding_stays_there(case: Case) -> Outcome:
    """NaN in padding reaches no output and no gradient."""
    spoiled = put(case.inputs, PADDED == 0, np.nan)
    apart = error(case.output(spoiled, segments=PADDED), case.output(segments=PADDED))
    clean, spoiled = (case.pull(_only(case, PADDED > 0), a, segments=PADDED) for a in (case.inputs, spoiled))
    return at_most(max(apart, error(spoiled, clean)), 0.0)


def rows_that_see_nothing_are_zero(case: Case) -> Outcome:
    """A query that sees no key receives zeros and gives no gradient."""
    most = largest(case.output(segments=NOWHERE))
    most = max(most, largest(case.pull(case.weight, segments=NOWHERE)))
    return at_most(max(most, largest(case.pull(_only(case, PADDED == 0), segments=PADDED))), 0.0)


def examples_are_independent(case: Case) -> Outcome:
    """In a batch, a changed example changes no other: equal bits."""
    batch = jax.tree.map(lambda a: np.stack([a, a[::-1], a * 2]), case.inputs)
    segments = np.stack([np.ones(LENGTH, np.int32), DOCUMENTS, PADDED])
    run = case.jit(lambda p, a, s: case.layer(p, a, segments=s))
    out = run(case.params, batch, segments)
    changed = run(case.params, put(batch, 1, 5.0), put(segments, 1, PADDED))
    return at_most(largest((changed - out)[np.array([0, 2])]), 0.0)


def a_block_of_queries_is_part_of_the_square(case: Case) -> Outcome:
    """Queries [a, a + n) over all keys, with `query_start=a` = those rows of the square."""
    if "query" in case.scheme.neighbour_carry(case.dims):
        return absent("its queries read those before them, which a block does not hold")
    positions, square = jnp.asarray(case.positions(case.index)), case.plain()
    size = 4

    @case.jit
    def block(p, a, start):
        y = embed(case.scheme, p, a.x)
        q, k, v = case.project(y, a)
        part = lambda b: jax.lax.dynamic_slice_in_dim(b, start, size)  # noqa: E731
        run = functools.partial(attend, case.scheme, p, part(q), k, v)
        run = functools.partial(run, x=part(y), key_x=y, query_start=start)
        return run(), run(positions=part(positions), key_positions=positions)

    outs = [(out, square[n : n + size]) for n in (0, 5, LENGTH - size) for out in block(case.params, case.inputs, n)]
    return at_most(max(error(*pair) for pair in outs), 1e-11)


def _alone(case: Case, places: np.ndarray) -> Array:
    """Return the outputs of these tokens with nothing before them. Other tokens follow, so that one program serves all.
    Nothing follows if later tokens count: in a scheme without a cache, or one that re-encodes its keys."""
    if case.scheme.limits.keys() & {"cache", "reencoded"}:
        return case.plain(rows(case.inputs, places))
    return case.plain(_front(case.inputs, places))[: len(places)]


def _front(a: CaseInputs, places: np.ndarray) -> CaseInputs:
    """These tokens first, and the others, changed, after them."""
    rest = np.setdiff1d(np.arange(LENGTH), places)
    return jax.tree.map(lambda b: np.concatenate([b[places], 2 * b[rest] + 1]), a)


def _only(case: Case, tokens: np.ndarray) -> np.ndarray:
    return np.where(tokens[:, None, None], case.weight, 0)
