"""Flip-flop."""

from itertools import product


def flip_flop(pairs):
    law = {}
    choices = product((2, 3, 4), (0, 1))
    for middle in product(choices, repeat=pairs - 2):
        for first, end in product((0, 1), repeat=2):
            p, memory, text = 0.5, first, [2, first]
            for what, bit in middle:
                p *= {4: 0.6, 2: 0.2, 3: 0.2}[what] * (float(bit == memory) if what == 3 else 0.5)
                memory = bit if what == 2 else memory
                text += [what, bit]
            if end == memory and p > 0:
                law[(*text, 3, end)] = law.get((*text, 3, end), 0) + p
    return law


LAWS = {"flip_flop(p=0.6)": (8, flip_flop, 4)}

PLANTED = [
    ("flip_flop", "flipflop:FlipFlop.make", "last_true(what == WRITE)", "0 * what", "oracle"),
]  # fmt: skip
