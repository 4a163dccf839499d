"""Positions that count what matters follow a program of counters; positions that count tokens lose it.

Programs set, increment and print variables among statements that do nothing. So the distance to the last assignment
matters little, and the number of increments since then decides.

Source: Golovneva et al. (2024), Contextual Position Encoding: Learning to Count What's Important, arXiv 2405.18719. In
table 3 CoPE is ahead of absolute and of relative (Shaw's) positions. In §5.2, from memory, it is further ahead in
longer contexts.

Setting: 2 layers of width 64 in place of 4 of 256, and 7,200 steps in place of 15,600. Programs have up to 16
statements in place of 512, and every other one has an effect in place of one in seven.

Cost: about three hours on one core, with other jobs beside.

Command: posenc sweep experiments/counting.py

Variation: posenc sweep experiments/counting.py --only scheme=cope,learned,shaw,nope --set steps=15600 --name longer. On
a GPU, posenc sweep --preset cope --grid scheme=cope,learned,shaw is the published size.
"""

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

TASK = "counting_cope(passes=8)"
SCHEMES = ["nope", "learned", "shaw", "alibi", "rope", "cope"]

TRAINED, LONGER = "Golovneva et al. (2024), table 3", "Golovneva et al. (2024), §5.2, in longer contexts"
published = [
    Order(TASK, "cope", other, source, over=over, seen=seen)
    for other in ("learned", "shaw")
    for over, source, seen in (("trained", TRAINED, "paper"), ("beyond", LONGER, "memory"))
]

titles = {TASK: "Value of a counted variable"}
counted = "statements"
plan = Plan(steps=7200, seeds=(0, 1, 2, 3, 4, 5), lr=(1e-3,), sizes=(4, 8, 16, 24, 32, 48))
reading = """
At 24 statements learned positions answer {|learned|24} and every other scheme at least {|worst!learned|24}. CoPE
reaches {|cope|24} there, ahead of learned positions in every seed, but not ahead of Shaw's vectors. ALiBi lasts
longest: {|alibi|32} at 32 statements. At the trained length CoPE reaches {|cope|16}, and every loss was still
falling. So the published orders at trained lengths stay open.
"""


def runs():
    base = Run(task=TASK, model="decoder", width=64, depth=2, heads=4, batch=32, length=16, shortest=3, longest=48)
    return grid(base, scheme=SCHEMES)


def figure(results):
    """The sizes at which the schemes differ."""
    from posenc.lab.figures.figures import length

    return length(results, differing=True)
