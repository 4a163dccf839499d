"""The tables of docs/rope-aliases.md, of the records of `first_look` and of arithmetic."""

import math
from statistics import median

import numpy as np

from posenc.lab.explain import aliases
from posenc.lab.spec.experiment_file import executed
from tests.hits import FOLDER, Recorded


def places():
    """The token three places back in rows of 64: medians of the seeds in the committed record, from one place to the
    next where training ended or arithmetic says that RoPE steps."""
    at, script = Recorded("first_look"), executed(FOLDER / "figures" / "by_place.py")
    firsts = sorted({script.TRAINED, *(part.first for part in script.stretches())})
    lasts = [*(first - 1 for first in firsts[1:]), script.ROW - 1]
    stretches = list(zip(firsts, lasts, strict=True))
    shares = {
        name: [median(at.place_shares(script.TASK, name, script.ROW, *ends)) for ends in stretches]
        for name in at.schemes(script.TASK)
    }
    names = [f"{first} to {last}" + " (trained)" * (last < script.TRAINED) for first, last in stretches]
    yield f"right in a row of {script.ROW}, at places", *names
    for name in sorted(shares, key=lambda name: -sum(shares[name])):
        yield f"`{name}`", *(f"{share:.2f}" for share in shares[name])


def alias_stretches():
    """What arithmetic cuts rows into, and what the ten seeds of RoPE have there."""
    at = Recorded("first_look")
    yield "row of", "places", "aliases in view", "right, median of seeds", "lowest seed", "highest seed"
    for size in (20, 24, 32, 48, 64):
        for first, last, in_view in aliases.stretches(aliases.find_aliases(probe_head("rope"), size), 3, size):
            seeds = sorted(at.place_shares("token_k_back(k=3)", "rope", size, first, last))
            places = f"{first} to {last}" if first < last else str(first)
            distances = ", ".join(f"{alias.distance:+}" for alias in in_view) or "none"
            yield str(size), places, distances, *(f"{share:.2f}" for share in (median(seeds), seeds[0], seeds[-1]))


def bases():
    """The pairs that turn within the distances trained on, and the strongest aliases, by base."""
    yield "base", "periods of pairs that turn", "gap behind, in 64", "gap ahead, in 64", "smallest gap in 256"
    for base in (10, 16, 100, 1000, 10_000, 100_000):
        head = probe_head(f"rope(base={base}.0)")
        periods = [f"{period:.1f}" for period in 2 * math.pi / head.frequencies if period <= np.ptp(head.span)]
        row = aliases.find_aliases(head, 64, 0.5)
        sides = [[(gap, distance) for distance, gap in row if (distance > 0) == ahead] for ahead in (False, True)]
        gaps = [f"{min(side)[0]:.2f} at {min(side)[1]:+}" if side else "above 0.5" for side in sides]
        smallest = min(alias.gap for alias in aliases.find_aliases(head, 256, 1.0))
        yield f"{base:,}", ", ".join(periods), *gaps, f"{smallest:.2f}"


def probe_head(scheme):
    """The head of `first_look`: 16 features, the token three places back, rows of up to 16 tokens."""
    return aliases.widest_head(aliases.frequencies(scheme, 16, 16), 3, 16)


TABLES = {"places": places, "aliases": alias_stretches, "bases": bases}
