"""Positions that count what matters follow a program of counters; positions that count tokens lose it.

Programs set, increment and print variables among statements that do nothing, so the distance to the last assignment
matters little, and the number of increments since then decides.

Source: Golovneva et al. (2024), Contextual Position Encoding: Learning to Count What's Important, arXiv 2405.18719,
table 3: CoPE ahead of absolute and of relative (Shaw's) positions; §5.2, from memory: further ahead in longer contexts.
Setting: 2 layers of width 64 for 4 of 256, to 16 statements for 512, every other statement with an effect for one in
seven, 7,200 steps for 15,600.
Cost: about three hours on one core, with other jobs beside.
Command: posenc sweep experiments/counting.py
Variation: posenc sweep experiments/counting.py --only scheme=cope,learned,shaw,nope --set steps=15600 --name longer;
posenc sweep --preset cope --grid scheme=cope,learned,shaw is the published size, on a GPU
Result: medians of six seeds, of programs answered rightly. All six schemes answer 0.99 or more of programs of 4
statements and 0.85 to 0.93 of 16, the longest trained on. CoPE, with 0.86 there, has not learned these, and over the
last half of the steps every loss still fell, by 45 % to 71 %; so the published orders at these lengths stay open,
though CoPE is ahead of learned positions in one seed alone and of Shaw's vectors in none. Beyond, learned positions
fall first, 0.32 at 24 statements where the others have 0.52 to 0.65, and CoPE is ahead of them in every seed, as
published; of Shaw's vectors and of nope it is not. ALiBi lasts longest, 0.46 at 32. At 48 every scheme has a seed below
the best constant, 0.21. The programs are shorter than the paper's, and only every other statement has no effect.
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


def runs():
    base = Run(task=TASK, model="decoder", width=64, depth=2, heads=4, batch=32, length=16, shortest=3, longest=48)
    return grid(base, scheme=SCHEMES)


def figure(results):
    """The sizes at which the schemes differ."""
    from posenc.lab.figures.figures import length

    return length(results, differing=True)
