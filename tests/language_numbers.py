"""The numbers that the Results of language experiments quote, read from their records in the order of the text, and the
table of docs/flat-loss.md."""

from collections import defaultdict
from math import log
from operator import mul
from statistics import median

from posenc.lab.metrics import NATS, PARTS
from posenc.lab.results.effective_memory import effective_memories
from posenc.lab.results.statistics import at_chosen_rates
from posenc.lab.spec.experiment_file import from_file
from tests.hits import FOLDER, Recorded

COPIES, CHAIN, LENGTH = "copies", "hidden_markov", 64
BY_GAIN = "fire kerple cope fox stick_breaking t5 nope alibi learned sandwich xpos rope sinusoidal lstm".split()
BY_CHAIN = "lstm fox stick_breaking alibi kerple sandwich xpos fire nope t5 cope rope sinusoidal learned".split()
BY_MEMORY = "fire kerple cope t5 learned nope stick_breaking fox sandwich alibi xpos rope lstm sinusoidal".split()
STRETCHED = ("yarn", "rerope(window=32)", "ntk", "log_n + rope")


def label(scheme):
    return "nope (model=lstm)" if scheme == "lstm" else f"{scheme} (model=decoder)"


def gains(at, task, schemes, size):
    """What each of these, the best first, gains at a size."""
    rounded = {scheme: f"{at.cell(task, label(scheme), size):.2f}" for scheme in schemes}
    assert [*rounded.values()] == sorted(rounded.values(), reverse=True)
    return rounded


def of_language(at):
    """Gains at the length trained on, at four times it and at 16 times it; schemes of one number are named once."""
    assert not at.halves, "no loss still fell"
    attention = [at.cell(COPIES, label(scheme), LENGTH) for scheme in BY_GAIN[:-1]]
    yield from (min(attention), max(attention), at.cell(COPIES, label("lstm"), LENGTH))
    near = gains(at, COPIES, BY_GAIN, 256)
    assert near["cope"] == near["fox"] == near["stick_breaking"]
    yield from (near[scheme] for scheme in BY_GAIN if scheme not in ("fox", "stick_breaking"))
    far = gains(at, COPIES, BY_MEMORY, 1024)
    assert far["cope"] == far["t5"] == far["learned"] and far["xpos"] == far["rope"]
    yield from (far[scheme] for scheme in BY_MEMORY if scheme not in ("t5", "learned", "rope"))
    stretched = [f"{at.cell(COPIES, f'{scheme}, trained with rope (model=decoder)', 256):.2f}" for scheme in STRETCHED]
    assert stretched[0] == stretched[1]
    yield from stretched[1:]
    pair = label("fire"), label("kerple")
    (claim,) = (c for c in from_file(FOLDER / "language.py").published if (c.first, c.second) == pair)
    ahead = at.ahead(claim)
    assert all(0 < value < 0.02 for value in ahead) and median(ahead) < 0.01


def of_language_control(at):
    """Gains at the length trained on and at 16 times it, and of two schemes at twice it."""
    assert not at.halves, "no loss still fell"
    inside = {scheme: at.cell(CHAIN, label(scheme), LENGTH) for scheme in BY_CHAIN}
    attention = [gain for scheme, gain in inside.items() if scheme not in ("nope", "lstm")]
    yield from (min(attention), max(attention), inside["nope"], inside["lstm"])
    far = gains(at, CHAIN, BY_CHAIN, 1024)
    assert far["fox"] == far["stick_breaking"]
    yield from (far[scheme] for scheme in BY_CHAIN if scheme != "stick_breaking")
    lost = [inside[scheme] - at.cell(CHAIN, label(scheme), 1024) for scheme in BY_CHAIN]
    assert max(lost[:5]) < 0.025 < lost[5] < 0.07 and min(lost[6:]) > 0.15
    copies = Recorded("language")
    best = min(copies.cell(COPIES, label(scheme), 1024) for scheme in ("fire", "cope", "t5", "learned", "nope"))
    assert best > max(copies.cell(COPIES, label(scheme), 1024) for scheme in ("alibi", "fox"))
    yield from (at.cell(CHAIN, label(scheme), 128) for scheme in ("learned", "nope"))


def memories(at):
    """What `language` quotes of effective memory: of each scheme, in texts of 256 and of 1,024."""
    near, far = (effective_memories(at.results, size) for size in (256, 1024))
    of = {scheme: (near[COPIES, label(scheme)], far[COPIES, label(scheme)]) for scheme in BY_MEMORY}
    assert all(of[scheme][1] > 1.9 * LENGTH for scheme in BY_MEMORY[:6])
    assert all(LENGTH < of[scheme][1] < 1.5 * LENGTH for scheme in ("alibi", "sandwich"))
    assert of["rope"][1] < LENGTH
    return {scheme: tuple(f"{tokens:.0f}" for tokens in pair) for scheme, pair in of.items()}


def sources():
    """Gains at the length trained on and at the longest of both sources, and effective memory of copies."""
    copies, chain = Recorded("language"), Recorded("language_control")
    ends, rows = (LENGTH, 1024), memories(copies)
    columns = {"copies": ends, "memory": (256, 1024), "chain": ends}
    yield "scheme", *(f"{name} at {size:,}" for name, sizes in columns.items() for size in sizes)
    for scheme in sorted(rows, key=lambda scheme: -copies.cell(COPIES, label(scheme), 1024)):
        on_copies = (f"{copies.cell(COPIES, label(scheme), size):.2f}" for size in ends)
        on_chain = (f"{chain.cell(CHAIN, label(scheme), size):.2f}" for size in ends)
        yield f"`{scheme}`", *on_copies, *rows[scheme], *on_chain


TEXT, READERS = "text(corpus='pydoc')", ("order 5", "bigram", "unigram")
SPANS = {128: (65, 127), 256: (135, 255), 1024: (528, 1023)}
"""Of texts of a size the places whose bits are told: half of the trained ones, the next as many, the last half."""


def of_text(at):
    """Bits in the trained length and far beyond it of schemes and readers, then how much the losses still fell."""
    inside, near, far = ({name: row[k] for name, row in bits_of_text(at).items()} for k in range(3))
    rest = [bits for name, bits in inside.items() if name not in ("alibi", "nope", *READERS)]
    yield from (min(rest), max(rest), *(inside[name] for name in ("alibi", "nope", *READERS)))
    assert all(0.015 < bits["kerple"] - bits["fox"] < 0.03 for bits in (inside, near, far))
    assert all(bits["xpos"] < bits["alibi"] for bits in (inside, near, far))
    assert all(near[name] < near["alibi"] and far[name] > far["alibi"] + 0.3 for name in ("fire", "t5"))
    assert far["bigram"] < far["nope"] and far["unigram"] < min(far["rope"], far["sinusoidal"])
    yield from (far[name] for name in sorted(set(far) - {*READERS}, key=far.get))
    yield far["unigram"]
    (behind,) = (claim for claim in from_file(FOLDER / "text.py").published if min(at.ahead(claim)) < 0)
    assert (behind.first, behind.second, behind.over) == ("fire", "alibi", (512,)) and max(at.ahead(behind)) < 0
    falls = [float(at.half(TEXT, scheme)) for scheme in at.schemes(TEXT) - {"nope"}]
    yield from (f"{min(falls):.0f}", f"{max(falls):.0f}")
    assert (TEXT, "nope") not in at.halves


def text_bits():
    """Bits for a byte of text in the later half of the trained length, from there to twice it, and from four times it
    to eight, of schemes and of the readers that only count."""
    yield "scheme", *(f"places {first} to {last:,}" for first, last in SPANS.values())
    for name, row in sorted(bits_of_text(Recorded("text")).items(), key=lambda item: item[1][-1]):
        yield f"`{name}`" if name not in READERS else name, *(f"{bits:.2f}" for bits in row)


def bits_of_text(at):
    """Scheme, or reader that only counts, to its bits in each span: a scheme has the medians of its seeds."""
    runs, task = defaultdict(list), at.results.tasks()[TEXT]
    for _, label, trial in at_chosen_rates(at.results):
        sums = {size: [nats / PARTS for nats in trial.places[size][NATS]] for size in SPANS}
        runs[label].append(_bits(task, sums))
    bits = {label: [median(column) for column in zip(*rows, strict=True)] for label, rows in runs.items()}
    for name in READERS:
        bits[name] = _bits(task, {n: [*map(mul, task.yardsticks[n][name], task.places[n]["scored"])] for n in SPANS})
    return bits


def _bits(task, sums):
    """The mean loss in bits of a byte in each span, from the nats in each bin of places; a span begins with a bin."""
    means = []
    for size, (first, _) in SPANS.items():
        k, left = divmod(first, task.places[size]["width"])
        assert not left
        means.append(sum(sums[size][k:]) / sum(task.places[size]["scored"][k:]) / log(2))
    return means


EACH = (of_language, of_language_control, of_text)
TABLES = {"sources": sources, "text_bits": text_bits}
