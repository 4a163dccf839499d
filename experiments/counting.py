"""Positions that count what matters follow a program of counters; positions that count tokens lose it.

Programs set, increment and print variables among statements that do nothing, so the distance to the last assignment
matters little, and the number of increments since then decides.

Source: Golovneva et al. (2024), Contextual Position Encoding: Learning to Count What's Important, arXiv 2405.18719,
table 3: CoPE ahead of absolute and of relative (Shaw's) positions; §5.2, from memory: further ahead in longer contexts.
Setting: 2 layers of width 64 for 4 of 256, to 16 statements for 512, every other statement with an effect for one in
seven, 2,400 steps for 15,600.
Cost: about two hours on one core, with other jobs beside.
Command: posenc sweep experiments/counting.py
Variation: posenc sweep experiments/counting.py --only scheme=cope,learned,shaw,nope --set steps=12000 --name longer;
posenc sweep --preset cope --grid scheme=cope,learned,shaw is the published size, on a GPU
Result: medians of six seeds, of programs answered rightly. All six schemes answer 0.98 or more of programs of 4
statements and 0.78 to 0.84 of 16, the longest trained on, so these sizes do not separate them. They are not learned
yet: over the last half of the steps every loss fell by 39 % to 48 %. So the published orders stay open. Beyond, learned
positions fall first, 0.24 at 24 statements where the others have 0.40 to 0.47, and CoPE is ahead of them in every seed;
of Shaw's vectors and of nope it is not. ALiBi lasts longest, 0.31 at 32. At 48 no scheme is above the best constant,
0.21. The programs are shorter than the paper's, and only every other statement has no effect.
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
plan = Plan(steps=2400, seeds=(0, 1, 2, 3, 4, 5), lr=(1e-3,), sizes=(4, 8, 16, 24, 32, 48))


def runs():
    base = Run(task=TASK, model="decoder", width=64, depth=2, heads=4, batch=32, length=16, shortest=3, longest=48)
    return grid(base, scheme=SCHEMES)


def figure(results):
    """The sizes at which the schemes differ."""
    from posenc.lab.figures.figures import length

    return length(results, differing=True)
