"""The numbers that docs/rope-aliases.md quotes outside its tables are those of records and of arithmetic."""

import math
from pathlib import Path
from statistics import mean, median

import pytest

from posenc.lab.explain import aliases
from tests.hits import Recorded, quoted

BACK = "token_k_back(k=3)"
PAGE = (Path(__file__).resolve().parent.parent / "docs" / "rope-aliases.md").read_text(encoding="utf-8")


def section(heading):
    """Its text without tables and commands, in one line."""
    text = PAGE.partition(f"# {heading}\n")[2].partition("\n## ")[0]
    return " ".join(line for line in text.splitlines() if not line.startswith(("|", "<!--", "    ")))


def shown(*values):
    return [f"{value:.2f}" for value in values]


def test_the_head_of_the_page():
    at, best = Recorded("first_look"), []
    assert len(at.shares[BACK, "rope", 64, "token"]) == 10
    for size in (20, 24, 32):
        for part in aliases.stretches(aliases.aliases(head("rope"), size), 3, size):
            each = [share for n in range(part.first, part.last + 1) for share in at.within(BACK, "rope", size, n, n)]
            best += each if part.aliases else []
            assert part.aliases or min(each) > 0.995
    text = section("RoPE does not fade beyond its length, it aliases")
    assert quoted(text) == shown(at(BACK, "rope", 64, metric="token"), max(best)) and "1.00" in text


def head(scheme):
    return aliases.widest(aliases.frequencies(scheme, 16, 16), 3, 16)


def test_the_arithmetic():
    text, rope = section("The arithmetic"), head("rope")
    periods = [period for period in 2 * math.pi / rope.frequencies if period <= 27]
    assert f"in {periods[0]:.1f} and in {periods[1]:.1f} places" in text and len(periods) == 2
    assert f"{rope.turns(16)[0]:.2f} turns and the second {rope.turns(16)[1]:.2f}" in text
    assert [alias.distance for alias in aliases.aliases(rope, 64)] == [-22, 16]
    assert "within a quarter of this margin" in text and aliases.WITHIN == 0.25
    spread = [max(seeds) - min(seeds) for seeds in (Recorded("first_look").within(BACK, "rope", 64, 3, 21),)]
    assert "differ in that by half" in text and spread == [pytest.approx(0.5, abs=0.05)]
    assert 35 in [alias.distance for alias in aliases.aliases(rope, 64, 0.5)]


def test_trained_places_and_the_settings_of_norms():
    at, found, validated = Recorded("norms"), {}, {}
    for scheme in at.schemes(BACK):
        for rate in (3e-4, 1e-3, 3e-3, 1e-2):
            stretches = [at.within(BACK, scheme, 32, *ends, rate=rate) for ends in ((3, 15), (16, 21), (22, 31))]
            assert {len(seeds) for seeds in stretches} == {2}
            found[scheme, rate] = [mean(seeds) for seeds in stretches]
    learned = {key: stretches for key, stretches in found.items() if stretches[1] > 0.5}
    assert len(found) == 16 and len(learned) == 15 and min(middle for _, middle, _ in learned.values()) > 0.995
    before, _, after = zip(*learned.values(), strict=True)
    two = [found["rope (depth=2, norm=pre)", rate][2] for rate in (3e-4, 1e-2)]
    text = section("Places that were trained break too")
    rates = [word for word in quoted(text) if word in ("0.0003", "0.01")]
    assert rates == ["0.0003", "0.01"]
    numbers = [word for word in quoted(text) if word not in rates]
    assert numbers == shown(min(before), min(after), max(after), *two) and f"to {max(before):.2f}, after" in text
    scored = at.results.validated()
    validated = {(r.run["depth"], t.knobs.lr): scored[t.id] for r in at.results.records for t in r.trials if t.places}
    assert min(score for (depth, _), score in validated.items() if depth == 2) > 0.995


def test_decoders():
    sites, first = Recorded("sites"), Recorded("first_look")
    assert len(sites.shares[BACK, "rope", 24, "last"]) == 6
    values = [at(BACK, "rope", size) for at in (sites, first) for size in (24, 32)]
    assert quoted(section("Decoders hardly use the alias")) == shown(*values)


def test_the_bound_of_a_source_is_what_it_gives_at_base_10():
    assert f"{2 * math.pi * 10:.0f} tokens at base 10" in section("What the base decides")
    gaps = [alias.gap for alias in aliases.aliases(head("rope(base=10.0)"), 256, 1.0)]
    assert min(gaps) > 0.5 and "none within 256 tokens is below a half" in section("What the base decides")
    assert median(gaps) < 1
