"""Token by token or in chunks, with a cache = all at once."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from posenc.attention.attend import attend, embed
from posenc.attention.cache import Cache
from posenc.contract.case import DOCUMENTS, LENGTH, PADDED, Case, restarted
from posenc.contract.masking import GAPPED
from posenc.contract.report import Outcome, absent, at_most, error

SCHEDULES = ((4, 1, 1, 4, 1, 1), (1, 4, 1, 4, 1, 1), (1,) * LENGTH)
"""Prompts of four tokens, of one and of none, then chunks; each size is a program, so there are two."""
SEGMENTS = np.stack([np.ones(LENGTH, np.int32), DOCUMENTS, PADDED, GAPPED])
COUNTED = np.stack([restarted(s) for s in SEGMENTS])
UNORDERED = np.array([7, 3, 3, 11, 0, 5, 5, 2, 9, 1, 4, 8], np.int32)


def cached_decoding_equals_the_full_forward(case: Case) -> Outcome:
    """At every step of every schedule, for a plain, a packed, a left-padded and a gapped example side by side.

    The first prompt of the gapped one is padded on the right.
    """
    if "cache" in case.scheme.limits:
        return _refused(case)
    step, alone = _stepper(case), case.output(positions=COUNTED[0], segments=SEGMENTS[0])
    if apart := error(alone, case.plain()) > 1e-12:
        return Outcome(False, apart, "one document alone is not itself")
    return at_most(max(error(_decode(case, step, s), _full_forward(case, s)) for s in SCHEDULES), 1e-11)


def cached_decoding_takes_positions(case: Case) -> Outcome:
    """Check decoding under passed positions, in no order, with no segments and a cache larger than needed."""
    if why := case.scheme.limits.get("cache"):
        return absent(why)
    if why := case.admits(UNORDERED):
        return absent(why)
    out = _decode(case, _stepper(case), SCHEDULES[2], UNORDERED, spare=3)
    return at_most(error(out, _full_forward(case, SCHEDULES[2], UNORDERED)), 1e-11)


def _refused(case: Case) -> Outcome:
    """A scheme without a cache refuses to make one, and gives its reason."""
    why = case.scheme.limits["cache"]
    try:
        _empty(case, 1, LENGTH)
    except ValueError as refusal:
        if why in str(refusal):
            return absent(why)
        return Outcome(False, reason=f"it declares that no cache serves, but refused for another reason: {refusal}")
    return Outcome(False, reason=f"it declares that no cache serves, since {why}, but a cache was made")


def _empty(case: Case, batch: int, capacity: int) -> Cache:
    return Cache.empty(case.scheme, case.params, case.dims, batch=batch, capacity=capacity, dtype=jnp.float64)


def _full_forward(case: Case, schedule: tuple[int, ...], positions: Any = None) -> np.ndarray:
    """Return the outputs of the full forward pass for each token. If keys are re-encoded as the text grows, the text
    ends with the token's chunk; otherwise it is the whole text."""
    if "reencoded" not in case.scheme.limits:
        schedule = (LENGTH,)
    rows, out, start = ((COUNTED, SEGMENTS) if positions is None else (positions[None], SEGMENTS[:1])), [], 0
    for size in schedule:
        part = slice(start, start := start + size)
        until = [(p, np.where(np.arange(LENGTH) < start, s, 0)) for p, s in zip(*rows, strict=True)]
        out.append(np.stack([case.output(positions=p, segments=s)[part] for p, s in until]))
    return np.concatenate(out, 1)


def _stepper(case: Case) -> Any:
    """Return a function that decodes one chunk. The input receives its positions, `places`, and attention receives
    `positions`, or counts them itself."""

    def step(p, a, places, positions, segments, cache):
        y = embed(case.scheme, p, a.x, positions=places, segments=segments)
        q, k, v = case.project(y, a)
        return attend(case.scheme, p, q, k, v, x=y, positions=positions, segments=segments, cache=cache)

    return case.jit(step)


def _decode(case: Case, step: Any, schedule: tuple[int, ...], positions: Any = None, spare: int = 0) -> np.ndarray:
    """The outputs of all steps, one after another."""
    places = COUNTED if positions is None else positions[None]
    tokens = jax.tree.map(lambda a: np.stack([a] * len(places)), case.inputs)
    cache, out, start = _empty(case, len(places), LENGTH + spare), [], 0
    for size in schedule:
        part = slice(start, start := start + size)
        here = case.positions(places[:, part])
        positions_and_segments = (None, SEGMENTS[:, part]) if positions is None else (here, None)
        o, cache = step(
            case.params, jax.tree.map(lambda b, part=part: b[:, part], tokens), here, *positions_and_segments, cache
        )
        out.append(np.asarray(o))
    return np.concatenate(out, 1)
