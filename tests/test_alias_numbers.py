"""The numbers that docs/rope-aliases.md quotes outside its tables are those of records and of arithmetic."""

import math
from pathlib import Path
from statistics import mean, median

import pytest

from posenc.lab.explain import aliases
from posenc.lab.metrics import share
from tests.alias_page import probe_head
from tests.hits import FOLDER, Recorded, quoted

BACK, RECALL = "token_k_back(k=3)", "mqar(symbols=64, power=1.0)"
PAGE = (Path(__file__).resolve().parent.parent / "docs" / "rope-aliases.md").read_text(encoding="utf-8")


def section(heading):
    """Its text without tables and commands, in one line."""
    text = PAGE.partition(f"# {heading}\n")[2].partition("\n## ")[0]
    return " ".join(line for line in text.splitlines() if not line.startswith(("|", "<!--", "    ")))


def texts(*values):
    return [f"{value:.2f}" for value in values]


def test_the_head_of_the_page():
    at, beside_an_alias = Recorded("first_look"), []
    assert len(at.shares[BACK, "rope", 64, "token"]) == 10
    for size in (20, 24, 32):
        for first, last, in_view in aliases.stretches(aliases.find_aliases(probe_head("rope"), size), 3, size):
            shares = [share for n in range(first, last + 1) for share in at.place_shares(BACK, "rope", size, n, n)]
            beside_an_alias += shares if in_view else []
            assert in_view or min(shares) > 0.995
    text = section("In encoders RoPE does not fade beyond its length, it aliases")
    assert quoted(text) == texts(at(BACK, "rope", 64, metric="token"), max(beside_an_alias)) and "1.00" in text


def test_the_other_schemes_of_the_figure():
    """Learned positions keep their places, sinusoids lose the last ones, and T5 is better in the middle."""
    at = Recorded("first_look")
    share = lambda scheme, *ends: median(at.place_shares(BACK, scheme, 64, *ends))  # noqa: E731
    assert share("learned", 3, 15) > 0.995 and share("learned", 16, 63) < 0.15
    assert (
        share("sinusoidal", 3, 13) > 0.995 and share("sinusoidal", 14, 15) < 0.9 and share("sinusoidal", 16, 63) < 0.15
    )
    assert max(share("t5", 3, 9), share("t5", 56, 63)) < share("t5", 28, 39) - 0.05


def test_the_arithmetic():
    text, rope = section("The arithmetic"), probe_head("rope")
    periods = [period for period in 2 * math.pi / rope.frequencies if period <= 27]
    assert f"in {periods[0]:.1f} and in {periods[1]:.1f} places" in text and len(periods) == 2
    assert f"{rope.turns(16)[0]:.2f} turns and the second {rope.turns(16)[1]:.2f}" in text
    assert [alias.distance for alias in aliases.find_aliases(rope, 64)] == [-22, 16]
    assert "within a quarter of this margin" in text and aliases.WITHIN == 0.25
    seeds = Recorded("first_look").place_shares(BACK, "rope", 64, 3, 21)
    assert "differ in that by half" in text and max(seeds) - min(seeds) == pytest.approx(0.5, abs=0.05)
    assert 35 in [alias.distance for alias in aliases.find_aliases(rope, 64, 0.5)]


def test_trained_places_and_the_settings_of_norms():
    at, settings = Recorded("norms"), {}
    for scheme in at.schemes(BACK):
        for rate in (3e-4, 1e-3, 3e-3, 1e-2):
            parts = [at.place_shares(BACK, scheme, 32, *ends, rate=rate) for ends in ((3, 15), (16, 21), (22, 31))]
            assert {len(seeds) for seeds in parts} == {2}
            settings[scheme, rate] = [mean(seeds) for seeds in parts]
    solved = [shares for shares in settings.values() if shares[1] > 0.5]
    assert len(settings) == 16 and len(solved) == 15 and min(middle for _, middle, _ in solved) > 0.995
    before, _, after = zip(*solved, strict=True)
    shallow = [settings["rope (depth=2, norm=pre)", rate][2] for rate in (3e-4, 1e-2)]
    text = section("Places that were trained break too")
    rates = [word for word in quoted(text) if word in ("0.0003", "0.01")]
    numbers = [word for word in quoted(text) if word not in rates]
    assert rates == ["0.01", "0.0003", "0.01"] and numbers == texts(min(before), min(after), max(after), *shallow)
    assert f"to {max(before):.2f}, after" in text
    records = at.results.records
    shallow = [(r, t) for r in records for t in r.trials if r.run["depth"] == 2 and t.knobs.lr <= 0.01 and t.places]
    every = [[share(counts, r.task.metric) for counts in t.validation.values()] for r, t in shallow]
    assert min(sum(shares) / len(shares) for shares in every) > 0.995


def test_decoders():
    sites, first = Recorded("sites"), Recorded("first_look")
    assert len(sites.shares[BACK, "rope", 24, "last"]) == 6
    values = [at(BACK, "rope", size) for at in (sites, first) for size in (24, 32)]
    assert quoted(section("Decoders hardly use the alias")) == texts(*values)
    on_paper = aliases.find_aliases(aliases.widest_head(aliases.frequencies("rope", 16, 16), 3, 16, causal=True), 32)
    assert [alias.distance for alias in on_paper] == [-22]


def test_the_bound_of_a_source_is_what_it_gives_at_base_10():
    text = section("What the base decides")
    assert f"{2 * math.pi * 10:.0f} tokens at base 10" in text
    gaps = [alias.gap for alias in aliases.find_aliases(probe_head("rope(base=10.0)"), 256, 1.0)]
    assert min(gaps) > 0.5 and "none within 256 tokens is below a half" in text


def test_how_far_base_10_carries_an_offset_and_what_it_costs():
    """Offsets in rows of 256, and the share of values found by their keys in texts of 64."""
    at, schemes = Recorded("base"), ("rope(base=10.0)", "rope")
    values = [at.cell(BACK, f"{scheme} (model={m})", 256) for m in ("encoder", "decoder") for scheme in schemes]
    content = Recorded("base_content")
    bases = ["rope(base=10.0)", "rope(base=16.0)", "rope(base=100.0)", "rope(base=1000.0)", "rope"]
    small, *larger = (content.seeds(RECALL, base, "accuracy")[64] for base in bases)
    recall = [median(seeds) for seeds in (small, *larger)]
    ahead = [sum(a > b for a, b in zip(seeds, small, strict=True)) for seeds in larger[2:]]
    assert quoted(section("What the base decides")) == texts(*values, *recall) and ahead == [6, 5]
    front = " ".join((FOLDER.parent / "README.md").read_text(encoding="utf-8").split())
    assert f"still name {values[0]:.2f} of those tokens, where the usual base, 10,000, has {values[1]:.2f}" in front
    assert (
        f"find {recall[0]:.2f} of the values asked for by their keys in 64 with base 10, {recall[3]:.2f} with" in front
    )


@pytest.mark.parametrize("back", [3, 5])
@pytest.mark.parametrize("base", [10.0, 16.0, 10000.0, 100000.0])
def test_other_bases_and_offsets_step_where_arithmetic_says(base, back):
    """In rows of 32, twice the longest trained on, of encoders of every seed at both rates."""
    scheme = "rope" if base == 10000.0 else f"rope(base={base})"
    widest = aliases.widest_head(aliases.frequencies(scheme, 16, 16), back, 16)
    for first, last, in_view in aliases.stretches(aliases.find_aliases(widest, 32), back, 32):
        label = f"{scheme} (model=encoder)"
        models = Recorded("base").place_shares(f"token_k_back(k={back})", label, 32, first, last)
        assert len(models) == 12
        assert max(models) < 0.99 if in_view else median(models) > 0.99
        assert in_view or base < 100 or min(models) > 0.99
