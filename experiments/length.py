"""Which schemes carry a string task to lengths never seen, and does drawing random positions help?

The question of Ruoss et al. (2023), in a size that two cores do within an hour: an encoder trained on strings of 1 to
16 characters, evaluated on up to 64. Every seed is shown; the paper shows the best of 30 runs.

Source: Ruoss et al. (2023), Randomized Positional Encodings Boost Length Generalization of Transformers, Table 1.
Cost: half an hour on 2 cores.
Command: posenc sweep experiments/length.py; then posenc plot experiments/length.py draws the committed record again.
Variation: posenc sweep experiments/length.py --set steps=10000 seeds=10 --name long
Result: on bucket_sort random positions keep rope at 0.96 and sinusoids at 0.94 beyond the lengths trained on, where
plain rope has 0.62 and sinusoids 0.15; a function of position alone reaches 0.82 at size 64, so only those two beat it.
On reverse_string only rope solves the lengths trained on in so few steps, alibi goes furthest beyond them, 0.74 on
average, and random positions have not learned the task yet: 0.62 and 0.61, where a guess is 0.50.
"""

from posenc.lab.experiment import grid
from posenc.lab.run import Plan, Run

SCHEMES = [
    "nope",
    "sinusoidal",
    "learned",
    "t5",
    "alibi",
    "rope",
    "sinusoidal @ random_sorted(128)",
    "rope @ random_sorted(128)",
]
TASKS = ["bucket_sort", "reverse_string"]

plan = Plan(steps=1200, seeds=(0, 1, 2, 3), lr=(3e-3,), sizes=(8, 16, 20, 24, 32, 48, 64))


def runs():
    base = Run(length=16, width=64, depth=3, heads=8, hidden=256, norm="pre", batch=32, buckets=2)
    return grid(base, task=TASKS, scheme=SCHEMES)
