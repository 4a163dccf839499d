"""The numbers that the Results of language experiments quote, read from their records in the order of the text."""

from statistics import median

from posenc.lab.results.effective_memory import effective_memories
from posenc.lab.spec.experiment_file import from_file
from tests.hits import FOLDER

COPIES, LENGTH = "copies", 64
BY_GAIN = "fire kerple cope fox stick_breaking t5 nope alibi learned sandwich xpos rope sinusoidal lstm".split()
BY_MEMORY = "fire kerple cope t5 learned nope stick_breaking fox sandwich alibi xpos rope lstm sinusoidal".split()
STRETCHED = ("yarn", "rerope(window=32)", "ntk", "log_n + rope")


def label(scheme):
    return "nope (model=lstm)" if scheme == "lstm" else f"{scheme} (model=decoder)"


def of_language(at):
    """Gains at the length trained on, at four times it and at 16 times it; schemes of one number are named once."""

    def gain(scheme, size):
        return at.cell(COPIES, label(scheme), size)

    def gains(schemes, size):
        rounded = {scheme: f"{gain(scheme, size):.2f}" for scheme in schemes}
        assert [*rounded.values()] == sorted(rounded.values(), reverse=True)
        return rounded

    assert not at.halves, "no loss still fell"
    attention = [gain(scheme, LENGTH) for scheme in BY_GAIN[:-1]]
    yield from (min(attention), max(attention), gain("lstm", LENGTH))
    near = gains(BY_GAIN, 256)
    assert near["cope"] == near["fox"] == near["stick_breaking"]
    yield from (near[scheme] for scheme in BY_GAIN if scheme not in ("fox", "stick_breaking"))
    far = gains(BY_MEMORY, 1024)
    assert far["cope"] == far["t5"] == far["learned"] and far["xpos"] == far["rope"]
    yield from (far[scheme] for scheme in BY_MEMORY if scheme not in ("t5", "learned", "rope"))
    stretched = [f"{at.cell(COPIES, f'{scheme}, trained with rope (model=decoder)', 256):.2f}" for scheme in STRETCHED]
    assert stretched[0] == stretched[1]
    yield from stretched[1:]
    pair = label("fire"), label("kerple")
    (claim,) = (c for c in from_file(FOLDER / "language.py").published if (c.first, c.second) == pair)
    ahead = at.ahead(claim)
    assert all(0 < value < 0.02 for value in ahead) and median(ahead) < 0.01


def memories(at):
    """What `language` quotes of effective memory: of each scheme, in texts of 256 and of 1,024."""
    near, far = (effective_memories(at.results, size) for size in (256, 1024))
    of = {scheme: (near[COPIES, label(scheme)], far[COPIES, label(scheme)]) for scheme in BY_MEMORY}
    assert all(of[scheme][1] > 1.9 * LENGTH for scheme in BY_MEMORY[:6])
    assert all(LENGTH < of[scheme][1] < 1.5 * LENGTH for scheme in ("alibi", "sandwich"))
    assert of["rope"][1] < LENGTH
    return {scheme: tuple(f"{tokens:.0f}" for tokens in pair) for scheme, pair in of.items()}


EACH = (of_language,)
