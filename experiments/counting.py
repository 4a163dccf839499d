"""Positions that count what matters follow a program of counters; positions that count tokens lose it.

Programs set, increment and print variables among statements that do nothing, so how far back the last assignment
stands says little, and how many increments lie between says all.

Source: Golovneva et al. (2024), Contextual Position Encoding: Learning to Count What's Important, arXiv 2405.18719, §5:
CoPE ahead of absolute and of relative (Shaw's) positions, and further ahead in longer contexts.
Setting: 2 layers of width 64 for 4 of 256, to 16 statements for 512, every other statement with an effect for one in
seven, 2,400 steps for 15,600.
Cost: about 35 minutes on 2 cores, estimated and not measured.
Command: posenc sweep experiments/counting.py
Variation: posenc sweep --preset cope --grid scheme=cope,learned,shaw, the published size, on a GPU
Result: not run.
"""

from posenc.lab.experiment import grid
from posenc.lab.published import Order
from posenc.lab.run import Plan, Run

TASK = "counting_cope(passes=8)"
SCHEMES = ["nope", "learned", "shaw", "alibi", "rope", "cope"]

COPE = "Golovneva et al. (2024), §5.2"
published = [
    Order(TASK, "cope", other, COPE, over=over) for other in ("learned", "shaw") for over in ("trained", "beyond")
]

plan = Plan(steps=2400, seeds=(0, 1, 2), lr=(1e-3,), sizes=(4, 8, 16, 24, 32, 48))


def runs():
    base = Run(task=TASK, model="decoder", width=64, depth=2, heads=4, batch=32, length=16, shortest=3, longest=48)
    return grid(base, scheme=SCHEMES)
