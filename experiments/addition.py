"""Digits of one weight at one position add far beyond the lengths trained on, in a single layer.

Decimal addition, trained on up to 10 digits (6 with markers) and evaluated on up to 66. The task gives position
coupling and Abacus the weight of each digit; FIRE with random positions has to find it by markers in the text.

Source: Cho et al. (2024), Position Coupling, arXiv 2405.20671, where one layer goes from 30 digits to 200 and no
encoding fails. McLeish et al. (2024), Transformers Can Do Arithmetic with the Right Embeddings, arXiv 2405.17399, from
20 digits to 100 with up to 0.99, by a recurrent model. Zhou et al. (2024), Transformers Can Achieve Length
Generalization But Not Robustly, arXiv 2402.09371, from 40 digits to 100 with more than 0.98 (without released code).

Setting: width 64 in place of 512 to 1024, and 6,000 steps of 32 in place of 50,000 of 128 to 1000. Two layers replace
Zhou's 6 and McLeish's 16, without recurrence. We train on up to 10 digits, they on 20 to 30; on 6 in place of Zhou's
40. Sizes keep the papers' factors: 66 is 6.67 times 10, 50 five times, 15 two and a half times 6. Zhou et al. report
that models trained on up to 10 digits do not go further (§5, figure 13). So 6 digits to 15 are not what they found at
40. Numbers of digits are uniform for the longer operand, where the papers draw both (`--set uniform=numbers --name
both`).

Cost: about 56 minutes on one core, with other jobs beside.

Command: posenc sweep experiments/addition.py

Variation: posenc run --preset coupling, the published size, on a GPU
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
reading = """
Position coupling adds 10 digits without error ({addition|learned @ given(shift=56, each='example')|10}) and still
adds {addition|learned @ given(shift=56, each='example')|12} of the sums of 12 digits. Two of its six seeds add none
of these. Abacus reaches {addition(format='abacus')||10} at 10 digits and {addition(format='abacus')||15} at 15. FIRE
with markers reaches {addition(format='zhou2024')|fire|10} at 10 digits, and with random positions
{addition(format='zhou2024')|fire @ random_sorted(limit=512)|10}. No scheme adds 20 digits: the training is too short
for the published factors.
"""


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
