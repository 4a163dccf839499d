"""Which schemes carry a string task to lengths never seen, and does drawing random positions help?

The question of Ruoss et al. (2023), in a size that two cores do within an hour: an encoder trained on strings of 1 to
20 characters, evaluated on up to 100. Every seed is shown; the paper shows the best of 30 runs.

Source: Ruoss et al. (2023), Randomized Positional Encodings Boost Length Generalization of Transformers, Table 1.
Cost: under an hour on 2 cores.
Command: posenc sweep experiments/length.py; then posenc plot experiments/length.py draws the committed record again.
Variation: posenc sweep experiments/length.py --set steps=10000 seeds=10 --name long
Result: see experiments/figures/length.caption.txt, which the figure's numbers wrote.
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
    "sinusoidal @ random_sorted(256)",
    "rope @ random_sorted(256)",
]
TASKS = ["even_pairs", "missing_duplicate_string", "reverse_string"]

plan = Plan(steps=2000, seeds=(0, 1, 2, 3), lr=(1e-3,), sizes=(10, 20, 24, 30, 40, 60, 80, 100))


def runs():
    base = Run(length=20, longest=100, width=64, depth=3, heads=8, hidden=256, norm="pre", batch=64)
    return grid(base, task=TASKS, scheme=SCHEMES)
