"""Products of permutations: a recurrent layer follows any group, attention of fixed depth only those that commute.

The word problem of two groups of sixty elements: Z60, which commutes, and A5, which is not solvable. At every token the
model names the product so far.

Source: Merrill et al. (2024), The Illusion of State in State-Space Models, arXiv 2404.08819, figure 3. There one
recurrent layer is enough for A5 at every length, and Transformers need ever more layers. Yang et al. (2025), PaTH
Attention, arXiv 2505.16381, figure 2. If positions are products, fewer layers decide whether a word of A5 is the
identity.

Setting: width 64 in place of 512, lengths to 8 in place of 25, and 8,000 steps. One layer is compared with one, two and
four.

Cost: about 90 minutes on one core.

Command: posenc sweep experiments/state.py

Variation: posenc sweep experiments/state.py --only model=rnn --set width=256 lr=3e-4,1e-3 seeds=6 --name wider
"""

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

A5, Z60 = "word_problem", "word_problem(group='Z60')"

MERRILL = "Merrill et al. (2024), figure 3"
RECURRENT = {"rnn": MERRILL, "lstm": f"{MERRILL}, of a plain recurrent network, for which an LSTM stands"}
PATH = "Yang et al. (2025), figure 2, on whether a product is the identity"
LAST = {"metric": "last", "over": "trained", "seen": "paper"}  # the first products of a row are easy for all
published = [
    *(
        Order(A5, f"nope (depth=1, model={network})", f"rope (depth={n}, model=decoder)", source, **LAST)
        for network, source in RECURRENT.items()
        for n in (1, 2)
    ),
    Order(A5, "rope (depth=4, model=decoder)", "rope (depth=1, model=decoder)", MERRILL, **LAST),
    Order(A5, "path (depth=2, model=decoder)", "rope (depth=2, model=decoder)", PATH, **LAST),
]

titles = {A5: "Products in A5", Z60: "Products in Z60, which commutes"}
counted = "permutations"
plan = Plan(steps=8000, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(2, 4, 8, 12, 16, 24, 32))
reading = """
No model follows A5 at the trained 8 tokens. The LSTM reaches {word_problem|nope (depth=1, model=lstm)|8} with seeds
up to {word_problem|nope (depth=1, model=lstm)|8|max}, and four layers of attention reach
{word_problem|rope (depth=4, model=decoder)|8}. Z60 commutes: two layers of attention reach
{word_problem(group='Z60')|rope (depth=2, model=decoder)|8} at 8 tokens. Only the LSTM extrapolates there
({word_problem(group='Z60')|nope (depth=1, model=lstm)|16} at 16). Our plain recurrent network learns neither group,
so it says little about the published claim.
"""


def runs():
    base = Run(model="decoder", width=64, batch=64, length=8, shortest=2)
    return [
        *grid(base, task=[A5], depth=[1, 2, 4], scheme=["rope"]),
        *grid(base, task=[Z60], depth=[1, 2], scheme=["rope"]),
        *grid(base, task=[A5], depth=[2], scheme=["path"]),
        *grid(base, task=[A5, Z60], depth=[1], scheme=["nope"], model=["rnn", "lstm"]),
    ]
