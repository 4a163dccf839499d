"""Addition."""

from collections import Counter
from itertools import product

from posenc.lab.tasks import digits
from tests.tasks.law import best, even

E = "addition(format='{}')".format


def one_digit(least):
    return lambda base: even((13, a, 10, b, 12) for a, b in product(range(least, base), repeat=2))


def hinted(hints):
    """Which marker stands before units: with two digits in an answer, the last of them stands before no units."""
    sep, bos = 11 + 5 + 1, 11 + 5 + 2
    return even((bos, 11 + s, a, 10, 11 + s, b, sep) for s in range(hints - 1) for a, b in product(range(10), repeat=2))


def three(base):
    return even((13, a, 10, b, 10, c, 12) for a, b, c in product(range(base), repeat=3))


def summed(k):
    """Answers of n digits for n = 1 and 2, padded to one more; above that, none is worth a guess."""

    def floors(task, n):
        if n > 2:
            return 0.0, 0.0
        below = {1: Counter(range(10)), 2: Counter(range(10, 100))}
        lengths = [c for c in product(range(1, n + 1), repeat=k) if max(c) == n]
        chance = Counter()
        for counts in lengths:
            sums = Counter({0: 1.0})
            for c in counts:
                longer = Counter()
                for s, p in sums.items():
                    for x in below[c]:
                        longer[s + x] += p / len(below[c])
                sums = longer
            for s, p in sums.items():
                chance[0, f"{s:0{n + 1}}"] += p / len(lengths)
        return best(chance)

    return floors


EXAMPLES = [
    ("addition", [13, 6, 5, 3, 10, 0, 4, 9, 12], [2, 0, 7, 0, 14]),
    (E("abacus"), [13, 3, 5, 6, 10, 9, 4, 12], [2, 0, 7, 14]),
    (E("zhou2024"), [115, 11, 3, 12, 5, 13, 6, 10, 11, 9, 12, 4, 13, 0, 114], [11, 2, 12, 0, 13, 7, 116]),
    (E("plain"), [13, 6, 5, 3, 10, 4, 9, 12], [7, 0, 2, 14]),
    ("addition(format='abacus', result='plain')", [13, 8, 2, 8, 10, 4, 1, 4, 12], [1, 2, 4, 2, 14]),
    ("addition(hints=9)", [22, 15, 7, 14, 5, 10, 15, 4, 14, 6, 21], [14, 1, 15, 2, 16, 1, 23]),
    ("addition_multi", [13, 1, 2, 10, 0, 7, 10, 9, 9, 12], [8, 1, 1, 14]),
]

LAWS = {
    "addition": (1, one_digit(0), 10),
    E("abacus"): (1, one_digit(1), 10),
    "addition(format='zhou2024', hints=5)": (1, hinted, 5),
    "addition_multi": (1, three, 10),
}

FLOORS = {"addition": summed(2), "addition_multi": summed(3)}
FLOOR_SIZES = {"addition": [1, 2, 30], "addition_multi": [1, 2, 40]}
VARIED = ["addition"]


def turned(*given, backwards, **more):
    return digits.spelled(*given, backwards=not backwards, **more)


BROKEN = [
    ("addition", 6, "addition", "carried", lambda columns, most: columns % 10),
    ("addition", 6, "digits", "last_true", lambda flags: 0 * flags),
    (E("plain"), 6, "addition", "spelled", turned),
    (E("abacus"), 6, "addition", "written", lambda x: digits.written(x) - 1),
    ("addition_multi", 6, "addition", "carried", lambda columns, most: digits.carried(columns, 18)),
]
