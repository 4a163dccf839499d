"""Heads that belong to different schemes: each share of the heads is an attention of its own, beside the others."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any, NamedTuple, NoReturn, cast

from posenc.core.chain import Chain
from posenc.core.scheme import LIMITS, ORDER, ROLES, Dims, Scheme

HOOKS = (
    "locate", "neighbours", "query", "key", "pair", "value", "score", "normalize", "value_bias", "output", "lookup",
    "carry",
)  # fmt: skip
"""Hooks that run for one share alone."""


class HeadShare(NamedTuple):
    """The part of an attention that one share has."""

    scheme: Any
    """A plain scheme or a chain."""
    first: int
    stop: int
    """Its query heads, from the first to before the last."""
    keys: tuple[int, ...]
    """The key head of each of its groups of query heads. One key head is repeated if a share ends within its group."""
    parts: slice
    """Its plain schemes among those of all shares."""

    @property
    def heads(self) -> int:
        return self.stop - self.first

    def of_parts(self, each: Any) -> Any:
        """Return the part of this share, from a tuple with an entry for each plain scheme; anything else serves all."""
        if type(each) is not tuple:
            return each
        mine = each[self.parts]
        return mine if isinstance(self.scheme, Chain) else mine[0]

    def dims(self, dims: Dims) -> Dims:
        """The sizes of a model of these heads alone."""
        return dataclasses.replace(dims, heads=self.heads, key_heads=len(self.keys))


class Shares(Scheme, name=None):
    """Several schemes on one attention, each with heads of its own: `{alibi, nope}`, or `{rope: 3, nope: 1}`.

    The first heads are the first scheme's. A share is what its scheme is in a model of that many heads, so its heads
    are numbered from 0: `alibi` on 4 of 8 heads has the slopes of 4 heads. All that belongs to plain schemes is a tuple
    with an entry for each, as in a chain.
    """

    each: tuple[Any, ...]
    counts: tuple[int, ...]
    """How many heads of each `sum(counts)` a share has."""

    name = cast(Any, property(lambda self: "{" + ", ".join(_name(s) for s in self.each) + "}"))
    reads = cast(Any, property(lambda self: max((s.reads for s in self.each), key=ORDER.index)))
    contextual = cast(Any, property(lambda self: any(s.contextual for s in self.each)))
    positional = cast(Any, property(lambda self: any(s.positional for s in self.each)))
    family = cast(Any, property(lambda self: self.each[0].family))

    def validate(self):
        if len(self.each) < 2 or len(self.each) != len(self.counts) or min(self.counts) < 1:
            raise ValueError("Heads are shared by at least two schemes, each with a number of heads of at least 1.")
        if any(not isinstance(s, Scheme) or isinstance(s, Shares) for s in self.each):
            raise ValueError("A share of the heads has a scheme or a sum, and no braces within; write {a, b, c}.")
        if onto_input := [_name(s) for s in self.each if s.overrides("embed")]:
            raise ValueError(
                f"{onto_input[0]!r} acts on the input, in which no heads are apart; write it before a list:"
                f" '{onto_input[0]} + [{{alibi, nope}}]'."
            )
        if len(self.parts) > 32:
            raise ValueError(f"Shares of {len(self.parts)} schemes were given; one layer has at most 32.")

    @property
    def parts(self) -> tuple[Any, ...]:
        """The plain schemes of all shares, in order."""
        return tuple(part for s in self.each for part in (s.parts if isinstance(s, Chain) else (s,)))

    def cuts(self, heads: int, groups: int) -> tuple[HeadShare, ...]:
        """Return the query heads of each share, and the key heads that these share."""
        total, repeat = sum(self.counts), heads // groups
        if heads % total:
            raise ValueError(
                f"{self.name} counts {total} heads, which do not divide {heads}; write numbers whose sum does, such as"
                " {rope: 3, nope: 1} for 4 heads."
            )
        stops = [heads // total * n for n in itertools.accumulate(self.counts)]
        ends = list(itertools.accumulate(len(s.parts) if isinstance(s, Chain) else 1 for s in self.each))
        cuts = []
        for s, a, b, start, end in zip(self.each, [0, *stops], stops, [0, *ends], ends, strict=False):
            within = a // repeat == (b - 1) // repeat
            keys = (a // repeat,) if within else tuple(m // repeat for m in range(a, b, math.gcd(a, b, repeat)))
            cuts.append(HeadShare(s, a, b, keys, slice(start, end)))
        return tuple(cuts)

    def dims_of_parts(self, dims: Dims) -> tuple[Dims, ...]:
        """The sizes that each plain scheme has its parameters for."""
        cuts = self.cuts(dims.heads, dims.key_heads or dims.heads)
        return tuple(cut.dims(dims) for cut in cuts for _ in range(cut.parts.start, cut.parts.stop))

    @property
    def limits(self):
        joined = {n: "; ".join(dict.fromkeys(s.limits[n] for s in self.each if n in s.limits)) for n in LIMITS}
        return {name: why for name, why in joined.items() if why}

    def bind(self, dims: Dims):
        cuts = self.cuts(dims.heads, dims.key_heads or dims.heads)
        return Shares(tuple(cut.scheme.bind(cut.dims(dims)) for cut in cuts), self.counts)

    def check_positions(self, p: Any, position):
        for n, s in enumerate(self.parts):
            s.check_positions(p[n], position[n])

    def init(self, key, dims):
        raise TypeError("The parameters of shares are those of their parts; make them with posenc.init.")

    init_head = init

    def neighbour_carry(self, dims: Dims) -> Any:
        each = [
            cut.scheme.neighbour_carry(cut.dims(dims)) for cut in self.cuts(dims.heads, dims.key_heads or dims.heads)
        ]
        return {role: tuple(past.get(role) for past in each) for role in ROLES if any(role in past for past in each)}

    def scale(self, d: int) -> float:
        by_scale = {s.scale(d): _name(s) for s in self.each}
        if len(by_scale) > 1:
            raise ValueError(
                f"The heads of {self.name} multiply q·k by {len(by_scale)} numbers; ask each share for its."
            )
        return next(iter(by_scale))

    def overrides(self, *hooks):
        return any(s.overrides(*hooks) for s in self.each)


def _name(s: Any) -> str:
    return getattr(s, "name", type(s).__name__)


def _refuse(hook: str) -> Any:
    def refuse(self: Shares, *arguments: Any) -> NoReturn:
        raise TypeError(f"Each share of {self.name} has a hook {hook!r} of its own; call those of `each`.")

    return refuse


for _hook in HOOKS:
    setattr(Shares, _hook, _refuse(_hook))
