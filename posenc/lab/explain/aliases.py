"""Aliases of RoPE: distances beyond training at which a wrong key has nearly the phases of the right one.

A head that finds the token `back` positions back by position alone scores a key at distance d, key minus query, by

    s(d) = Σ_i a_i cos(ω_i d + φ_i),

with amplitudes and phases of its own. This module takes the head with the widest margin. Its score at d = -back is
above that at all other distances of trained queries, for amplitudes of length one. Gradient descent on cross-entropy
drives a score that is linear in its parameters to this direction; this one is, in a_i cos φ_i and a_i sin φ_i (Soudry
et al., 2018, The Implicit Bias of Gradient Descent on Separable Data, arXiv 1710.10345). Beyond training its score
comes near that of its target where whole turns of its pairs meet. A trained model need not have this head.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

import posenc
from posenc.core.scheme import Dims, Scheme
from posenc.lab.figures.style import aligned
from posenc.numerics import rotary

WITHIN = 0.25
"""The largest gap at which a distance is an alias. Suppose that a query gives the nearest other trained distance a
share ε of its target's weight. Then it gives a key at gap g the share ε^g. For 0.0001 this is a tenth at a quarter, a
hundredth at a half."""
LONGEST, FURTHEST = 512, 4096
"""The most tokens of a row trained on, and of one evaluated."""
NEGLIGIBLE = 0.02
"""The share of the largest amplitude below which a pair is left out of texts."""


class Alias(NamedTuple):
    """A distance, key minus query, beyond those trained on, whose score comes near that of the target."""

    distance: int
    gap: float
    """How far the score is below the target's, as a share of the margin within the trained distances."""


class Stretch(NamedTuple):
    """Neighbouring places of a row, both ends included, from which the same aliases are in view."""

    first: int
    last: int
    aliases: tuple[Alias, ...]


@dataclass(frozen=True)
class Head:
    """A score of distances, made of pairs of features that turn."""

    frequencies: Float[np.ndarray, " pairs"]
    weights: Float[np.ndarray, " 2*pairs"]
    """Weights of the cosines of the pairs, then of their sines; their squares sum to 1."""
    back: int
    span: tuple[int, int]
    """The least and the greatest distance of a key that a trained query sees."""
    causal: bool = False

    @property
    def amplitudes(self) -> Float[np.ndarray, " pairs"]:
        """That of each pair."""
        return np.hypot(*np.split(self.weights, 2))

    @property
    def pairs(self) -> list[int]:
        """Return the pairs whose amplitude is not negligible, in the order of the head's features."""
        return np.flatnonzero(self.amplitudes > NEGLIGIBLE * self.amplitudes.max()).tolist()

    @property
    def margin(self) -> float:
        """How far the target's score is above that of every other trained distance."""
        return float((self.score([-self.back]) - self.score(_other_distances(self.back, self.span))).min())

    def score(self, distances: Sequence[int]) -> Float[np.ndarray, " n"]:
        """The score of a key at each distance."""
        return _waves(self.frequencies, distances) @ self.weights

    def gap(self, distances: Sequence[int]) -> Float[np.ndarray, " n"]:
        """How far each score is below the target's, as a share of the margin: at least 1 at trained distances."""
        return (self.score([-self.back]) - self.score(distances)) / self.margin

    def turns(self, distance: int) -> Float[np.ndarray, " pairs"]:
        """The turns of each pair between the target and a key at this distance; whole ones leave its phase."""
        return (distance + self.back) * self.frequencies / (2 * np.pi)


def frequencies(text: str, width: int, length: int) -> Float[np.ndarray, " pairs"]:
    """Return the frequencies of a scheme in heads of `width` features, trained on `length` tokens. Raises `ValueError`
    for a scheme that does anything but turn queries and keys by fixed frequencies."""
    scheme = posenc.parse(text)
    rotary_alone = isinstance(scheme, Scheme) and inspect.unwrap(type(scheme).query) is rotary.query
    if not rotary_alone or getattr(scheme, "frequencies", "fixed") == "learned":
        raise ValueError(
            f"{text!r} has no aliases to compute: they are of one scheme that only turns queries and keys, by fixed"
            " frequencies; take rope, or another with its base, such as 'rope(base=10.0)'."
        )
    return rotary.frequencies_of(posenc.bind(scheme, Dims(width=width, heads=1, head=width, trained=length)), width)


def widest_head(frequencies: Float[np.ndarray, " pairs"], back: int, length: int, causal: bool = False) -> Head:
    """The head that tells the key `back` places back from all others by the widest margin, in rows of up to `length`.

    A query is asked from place `back` on, so it sees keys from length - 1 behind to length - 1 - back ahead; with
    `causal` none ahead. The widest margin is the distance of the origin from the convex hull of the differences between
    the target's waves and those of the other distances, and its head points there. Raises `ValueError` for a row or a
    place that there is not, and where pairs turn too little.
    """
    from scipy.optimize import nnls

    if not 2 <= length <= LONGEST:
        raise ValueError(f"The longest row trained on has {length} tokens; take from 2 to {LONGEST}.")
    if not 1 <= back < length:
        raise ValueError(
            f"The token is {back} positions back, and the longest row trained on has {length} tokens; take from 1 to"
            f" {length - 1}."
        )
    span = (1 - length, 0 if causal else length - 1 - back)
    differences = _waves(frequencies, [-back]) - _waves(frequencies, _other_distances(back, span))
    corners = np.vstack([differences.T, np.ones(len(differences))])  # the last row keeps the shares off zero
    shares, _ = nnls(corners, np.append(np.zeros(differences.shape[1]), 1.0))
    direction = shares @ differences / shares.sum()
    if (margin := float(np.linalg.norm(direction))) < 1e-6:
        raise ValueError(
            f"No head tells the token {back} positions back from all others in rows of {length} tokens, since pairs"
            " turn too little; take fewer tokens, or a smaller base."
        )
    return Head(frequencies, direction / margin, back, span, causal)


def find_aliases(head: Head, size: int, within: float = WITHIN) -> list[Alias]:
    """Return the distances beyond training whose score comes within a share of the margin to the target's, in a row of
    `size` tokens. Distances behind come first, the nearest first, then those ahead. A causal head has none ahead."""
    low, high = head.span
    ahead = () if head.causal else range(high + 1, size - head.back)
    distances = [*range(low - 1, -size, -1), *ahead]
    return [Alias(d, float(gap)) for d, gap in zip(distances, head.gap(distances), strict=True) if gap <= within]


def stretches(aliases: Sequence[Alias], back: int, size: int) -> list[Stretch]:
    """The places of a row that are asked for, cut where an alias comes into view or leaves it."""
    parts: list[Stretch] = []
    for place in range(back, size):
        in_view = tuple(alias for alias in aliases if 0 <= place + alias.distance < size)
        if parts and parts[-1].aliases == in_view:
            parts[-1] = parts[-1]._replace(last=place)
        else:
            parts.append(Stretch(place, place, in_view))
    return parts


def as_text(head: Head, size: int, within: float = WITHIN) -> str:
    """The pairs that the head uses, the aliases with the turns of these pairs, and the places from which they are in
    view."""
    lines = [f"The head with the widest margin, {head.margin:.2f}, uses these pairs:"]
    lines += aligned(
        [
            ["pair", *(str(n + 1) for n in head.pairs)],
            ["period", *(f"{2 * np.pi / head.frequencies[n]:.4g}" for n in head.pairs)],
            ["amplitude", *(f"{head.amplitudes[n]:.2f}" for n in head.pairs)],
        ]
    )
    aliases = find_aliases(head, size, within)
    if not aliases:
        return "\n".join([*lines, "", f"No distance beyond training comes near its target in rows of {size} tokens."])
    rows = [["from the query", "from the target", "gap", *(f"turns of pair {n + 1}" for n in head.pairs)]]
    for distance, gap in aliases:
        turns = (f"{turn:.2f}" for turn in head.turns(distance)[head.pairs])
        rows.append([f"{distance:+}", f"{distance + head.back:+}", f"{gap:.2f}", *turns])
    lines += ["", "Aliases; the gap is how far a score is below the target's, where 1 is the nearest within training:"]
    lines += [*aligned(rows), "", f"In view in a row of {size} tokens:"]
    for part in stretches(aliases, head.back, size):
        places = f"positions {part.first} to {part.last}" if part.first < part.last else f"position {part.first}"
        lines.append(f"{places}  {', '.join(f'{alias.distance:+}' for alias in part.aliases) or 'none'}")
    return "\n".join(lines)


def as_json(head: Head, size: int, within: float = WITHIN) -> dict[str, Any]:
    """Return the aliases as plain values."""
    aliases = find_aliases(head, size, within)
    return {
        "back": head.back,
        "causal": head.causal,
        "distances_trained_on": list(head.span),
        "margin": head.margin,
        "pairs": [
            {"period": float(2 * np.pi / head.frequencies[n]), "amplitude": float(head.amplitudes[n])}
            for n in head.pairs
        ],
        "aliases": [alias._asdict() for alias in aliases],
        "places": [
            {"first": part.first, "last": part.last, "aliases": [alias.distance for alias in part.aliases]}
            for part in stretches(aliases, head.back, size)
        ],
    }


def _other_distances(back: int, span: tuple[int, int]) -> list[int]:
    return [distance for distance in range(span[0], span[1] + 1) if distance != -back]


def _waves(frequencies: Float[np.ndarray, " pairs"], distances: Sequence[int]) -> Float[np.ndarray, "n 2*pairs"]:
    """The cosine and the sine of each pair at each distance."""
    angles = np.outer(np.asarray(distances, float), frequencies)
    return np.hstack([np.cos(angles), np.sin(angles)])
