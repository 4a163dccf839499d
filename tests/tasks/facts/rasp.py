"""Counting up, and the most frequent symbol."""

from itertools import product

from tests.tasks.law import even, words


def runs(symbols):
    return even((8 + 2, a, a + 3, 8 + 1) for a in range(symbols - 3))


def alone(x):
    return [x.count(s) for s in x].count(max(map(x.count, x))) == max(map(x.count, x))


def led(symbols):
    """Three symbols of so many, and one more anywhere that leaves one alone in front."""
    law = {}
    for x in words(symbols, 3):
        more = [s for s in range(symbols) if alone((*x, s))]
        for s, at in product(more, range(4)):
            prompt = (3 + 2, *x[:at], s, *x[at:], 3 + 1)
            law[prompt] = law.get(prompt, 0) + 1 / (symbols**3 * len(more) * 4)
    return law


LAWS = {"count_up(symbols=8)": (4, runs, 8), "mode(symbols=3)": (4, led, 3)}

PLANTED = [
    ("count_up", "rasp:CountUp.make", "first + n - 1", "first + n", "oracle"),
    ("count_up(symbols=8)", "rasp:CountUp.make", "symbols - n)", "symbols - n - 1)", "law"),
    ("mode", "rasp:_decides", "return (count", "return (count == count) | (count", "oracle"),
    ("mode", "rasp:_largest", "argmax", "argmin", "oracle"),
]  # fmt: skip
