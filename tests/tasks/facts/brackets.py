"""Arithmetic with brackets."""

from itertools import product

PLUS, MINUS, TIMES = 5, 6, 7


def written(n, operators, left_most=None):
    """The law of their grammar: tokens of `modular_arithmetic_brackets` and their chance."""
    if n < 1:
        return {(): 1.0}
    if n < 5:
        before, after = [(), (6,), (8,), (8, 6)][n - 1], [(), (), (9,), (9,)][n - 1]
        return {(*before, d, *after): 0.2 for d in range(5)}
    found = {}
    splits = range(1, (left_most or n - 4) + 1)
    for left in splits:
        sides = written(left, operators).items(), written(n - 3 - left, operators).items()
        for (a, p), (b, q), op in product(*sides, range(operators)):
            found[8, *a, PLUS + op, *b, 9] = p * q / operators / len(splits)
    return found


def worth(text):
    return eval("".join("01234+-*()"[token] for token in text)) % 5


def equations(n):
    """x hides the next digit from one of so many places on, going round."""

    def law(places):
        found = {}
        for text, p in written(n - 2, 2).items():
            digits = [i for i, token in enumerate(text) if token < 5]
            for start in range(places):
                at = min(digits, key=lambda i: (i - start) % (n - 2))
                shown = [9 if i == at else token - (token > 7) for i, token in enumerate(text)]
                shown = (*shown, 10, worth(text))
                found[shown] = found.get(shown, 0) + p / places
        return found

    return law


LAWS = {"modular_arithmetic_brackets": (7, lambda left: written(7, 3, left), 3), "solve_equation": (9, equations(9), 7)}

PLANTED = [
    ("modular_arithmetic_brackets", "brackets:_value", "[a + b, a - b]", "[a + b, a + b]", "oracle"),
    ("modular_arithmetic_brackets", "brackets:_value", "[a + b, a - b]", "[a + b, b - a]", "oracle"),
    ("solve_equation", "brackets:SolveEquation.make", "pick(made.text, x)", "pick(made.text, (x + 1) % 4)", "oracle"),
]  # fmt: skip
