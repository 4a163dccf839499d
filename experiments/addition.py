"""Digits of one weight at one position add far beyond the lengths trained on, in a single layer.

Decimal addition, trained on up to 10 digits (6 with markers) and evaluated on up to 66. The task gives position
coupling and Abacus the weight of each digit; FIRE with random positions has to find it by markers in the text.

Source: Cho et al. (2024), Position Coupling, arXiv 2405.20671: 30 digits to 200 by one layer, where no encoding fails;
McLeish et al. (2024), Transformers Can Do Arithmetic with the Right Embeddings, arXiv 2405.17399: 20 digits to 100 with
up to 0.99, by a recurrent model; Zhou et al. (2024), Transformers Can Achieve Length Generalization But Not Robustly,
arXiv 2402.09371: 40 digits to 100 with more than 0.98 (without released code).
Setting: width 64 for 512 to 1024, 10 digits for 20 to 30 and 6 for Zhou's 40, 6,000 steps of 32 for 50,000 of 128 to
1000; two layers for Zhou's 6 and McLeish's 16, none of them recurrent. Sizes keep the papers' factors: 66 is 6.67 times
10, 50 five times, 15 two and a half times 6. Of models trained on up to 10 digits Zhou et al. report that none goes
further (§5, figure 13), so that 6 digits to 15 are not what they found at 40. Numbers of digits are uniform for the
longer operand, where the papers draw both (`--set uniform=numbers --name both`).
Cost: about 56 minutes on one core, with other jobs beside.
Command: posenc sweep experiments/addition.py
Variation: posenc run --preset coupling, the published size, on a GPU
Result: medians of six seeds; a sum counts where all of it is right. Position coupling adds 10 digits without error in
one layer, in every seed, where nope and rope learn nothing in these steps; it goes on to 0.93 at 12 digits, where two
seeds have none, and to 0.24 at 15. Abacus learned 10 digits in four seeds of six; it has 0.97 there, 0.75 at 12 and
0.21 at 15. At 20 digits no median is above 0.02: sizes five and more times those trained on, as published, are not
reached by so short a training. With markers FIRE learned 6 digits in four seeds, and with random positions in one; at
10 digits they have 0.10 and 0.18, at 15 nothing, and no order shows. Their losses still fell over the last half of the
steps, by 96 % and 81 %, that of Abacus by 55 % and that of rope by 11 %, so more steps may change all of these; that of
nope hardly fell any more, by 3 %.
"""

import dataclasses

from posenc.lab.results.published import Order, Published
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

COUPLED = "learned @ given(shift=56, each='example')"
DIGITS = "abacus @ given(which='digit', shift=56)"
RANDOM = "fire @ random_sorted(limit=512)"
ONE, ALL_REVERSED, HINTED = "addition", "addition(format='abacus')", "addition(format='zhou2024')"

CHO, ZHOU = "Cho et al. (2024), figure 1", "Zhou et al. (2024), §4"
MCLEISH = "McLeish et al. (2024), abstract: up to 99 %, by a recurrent model"
ABOVE = "Zhou et al. (2024), figure 1: more than 98 %, trained on up to 40 digits"
published = [
    Published(ONE, COUPLED, 0.95, CHO, tolerance=0.05, relation="at least", over=(66,), seen="copy"),
    Published(ONE, "nope", 0.05, CHO, tolerance=0.05, relation="at most", over=(66,), seen="copy"),
    Order(ONE, COUPLED, "nope", CHO, seen="copy"),
    Published(ALL_REVERSED, DIGITS, 0.99, MCLEISH, tolerance=0.05, of="best", over=(50,), seen="copy"),
    Published(HINTED, RANDOM, 0.98, ABOVE, tolerance=0.05, of="best", runs=10, over=(15,), seen="paper"),
    Order(HINTED, RANDOM, "fire", ZHOU, seen="paper"),
    Order(HINTED, RANDOM, "rope", ZHOU, seen="paper"),
]

titles = {ONE: "Sums", ALL_REVERSED: "Sums, all reversed", HINTED: "Sums with markers"}
names = {COUPLED: "position coupling", DIGITS: "Abacus", RANDOM: "fire + random positions"}
counted = "digits"
plan = Plan(steps=6000, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(5, 6, 10, 12, 15, 20, 30, 50, 66), rows=128)


def runs():
    base = Run(
        model="decoder", width=64, depth=1, heads=4, batch=32, length=10, longest=66, lengths="example", buckets=1
    )
    deep = dataclasses.replace(base, depth=2)
    short = dataclasses.replace(deep, length=6)
    return [
        *grid(base, task=[ONE], scheme=[COUPLED, "nope", "rope"]),
        *grid(deep, task=[ALL_REVERSED], scheme=[DIGITS]),
        *grid(short, task=[HINTED], scheme=[RANDOM, "fire", "rope"]),
    ]


def figure(results):
    """Every run, since those that learn and those that do not have no middle; sizes to 20, beyond which all fail."""
    from posenc.lab.figures.figures import length

    return length(results, largest=20, each=True)
