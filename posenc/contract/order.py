"""Order is seen through positions alone: without them attention is a function of a set."""

from __future__ import annotations

import jax
import numpy as np

from posenc.contract.case import LENGTH, Case, put
from posenc.contract.report import Outcome, absent, at_most, error, holds_if, largest
from posenc.core.compose import SEVERAL
from posenc.core.scheme import Scheme
from posenc.naming import bind

PERMUTATION = np.array([4, 0, 11, 7, 2, 9, 1, 10, 5, 3, 8, 6])
REACHES = (5, 97, 4999)
"""Positions 5 apart serve every scheme with tables; a temperature may change over thousands of tokens only."""


def without_positions_order_is_unseen(case: Case) -> Outcome:
    """Under equal positions and no causal mask, permuting the tokens permutes the outputs."""
    if why := _set_blind(case.scheme):
        return absent(why)
    case = case.bidirectional
    same = np.full(LENGTH, 3)
    shuffled = jax.tree.map(lambda a: a[PERMUTATION], case.inputs)
    out = case.output(positions=same, mask="full")
    return at_most(error(case.output(shuffled, positions=same, mask="full"), out[PERMUTATION]), 1e-11)


def with_positions_order_is_seen(case: Case) -> Outcome:
    """Under distinct positions permuting the tokens does not merely permute the outputs: no vacuous encoding."""
    causal = "bidirectional" in case.unbound.limits
    mask = "causal" if causal else "full"
    if not _positional(case.scheme):
        return absent("nothing in it reads a position")
    case = case if causal else case.bidirectional
    for step in REACHES:
        far = step * case.index
        if case.admits(far):
            continue
        moved = far[PERMUTATION]
        apart = error(case.output(positions=moved, mask=mask), case.output(positions=far, mask=mask))
        if apart > 1e-4:
            return Outcome(True, apart)
    if not isinstance(case.scheme, SEVERAL) and case.scheme != bind(type(case.scheme)(), case.dims):
        return absent("under these settings positions change nothing")
    return Outcome(False, reason="positions change nothing, though it has hooks that receive them")


def tokens_and_positions_permute_together(case: Case) -> Outcome:
    """Check that, without a causal mask, permuting tokens together with their positions permutes the outputs."""
    if why := _set_blind(case.scheme):
        return absent(why)
    case = case.bidirectional
    far = 5 * case.index
    shuffled = jax.tree.map(lambda a: a[PERMUTATION], case.inputs)
    out = case.output(positions=far, mask="full")
    return at_most(error(case.output(shuffled, positions=far[PERMUTATION], mask="full"), out[PERMUTATION]), 1e-11)


def tokens_stay_where_positions_say(case: Case) -> Outcome:
    """Positions of any order, repeated ones among them, leave the mask alone: no future through positions."""
    places = np.array([7, 3, 3, 11, 0, 5, 5, 2, 9, 1, 4, 8])
    if why := case.admits(places):
        return absent(why)
    out, token = case.output(positions=places), 6
    changed = case.output(put(case.inputs, slice(token, None), 3.0), positions=places)
    apart = largest(changed[:token] - out[:token])
    return holds_if(apart == 0, f"a later token changed an earlier row by {apart:.1e}")


def _set_blind(scheme: Scheme) -> str:
    """Why a scheme may see order without positions."""
    if why := scheme.limits.get("bidirectional"):
        return f"it is causal only: {why}"
    if scheme.overrides("neighbours"):
        return "its tokens read those just before them"
    if scheme.reads == "row" or scheme.contextual:
        return "it reads keys in the order of their index"
    return ""


def _positional(scheme: Scheme) -> bool:
    """Tell whether something reads positions. A scheme that replaces `locate` may pass its hooks something else."""
    parts = getattr(scheme, "parts", (scheme,))
    hooks = "embed", "query", "key", "value", "score", "value_bias"
    return any(s.overrides(*hooks) and (s.overrides("embed") or not s.overrides("locate")) for s in parts)
