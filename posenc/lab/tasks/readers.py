"""The shared part of exact oracles of sources: a predictor that sees all tokens, and one with a window. No jax.

An oracle gives the probability of each token after those before it. Its text begins at its first token, or, if the
predictor does not see that far back, at a token of known index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int

AT_ONCE = 2**17
"""Numbers that an oracle holds at once; more would leave the cache."""
Probabilities = Callable[[Int[np.ndarray, "rows T+1"], Int[np.ndarray, " rows"]], Float[np.ndarray, "rows T"]]
"""Tokens, and the index of the first in its text, to the probability of each of them but the first."""


def exact_losses(
    texts: Int[np.ndarray, "rows T+1"],
    window: int | None,
    places: Sequence[int] | None,
    probabilities: Probabilities,
    states: Callable[[int], int],
) -> Float[np.ndarray, "rows places"]:
    """Return -log of the probability of token i + 1 at position i, for a predictor of the last `window` tokens, or of
    all. All positions are the default. `states(w)` is the number of values that the oracle holds for w tokens.

    Raises `ValueError` for a window or a position that the texts have not.
    """
    rows, length = texts.shape[0], texts.shape[1] - 1
    if window is not None and not 1 <= window <= length:
        raise ValueError(f"A window of {window} tokens does not fit a text of {length}; take one from 1 to {length}.")
    at = np.arange(length) if places is None else np.asarray(places, int).reshape(-1)
    if at.size and not 0 <= at.min() <= at.max() < length:
        raise ValueError(f"Places {at.min()} to {at.max()} are not all in a text of {length}; take 0 to {length - 1}.")
    reach = length if window is None else window
    cut = at >= reach  # elsewhere a window holds the whole text so far
    losses = np.zeros((rows, len(at)))
    if not cut.all():
        end = int(at[~cut].max()) + 2
        for part in _parts(rows, states(end)):
            shares = probabilities(texts[part, :end], np.zeros(len(texts[part]), int))
            losses[part, ~cut] = -np.log(shares[:, at[~cut]])
    if cut.any():
        firsts = at[cut] + 1 - reach
        seen = np.lib.stride_tricks.sliding_window_view(texts, reach + 1, axis=1)[:, firsts]
        tokens, first = seen.reshape(-1, reach + 1), np.tile(firsts, rows)
        last = [probabilities(tokens[part], first[part])[:, -1] for part in _parts(len(tokens), states(reach))]
        losses[:, cut] = -np.log(np.concatenate(last)).reshape(rows, -1)
    return losses


def _parts(rows: int, states: int) -> list[slice]:
    """Split rows into parts that fit the cache."""
    each = max(1, AT_ONCE // states)
    return [slice(begin, begin + each) for begin in range(0, rows, each)]
