"""Products of permutations: a recurrent layer follows any group, attention of fixed depth only those that commute.

The word problem of two groups of sixty elements: Z60, which commutes, and A5, which is not solvable. At every token the
model names the product so far.

Source: Merrill et al. (2024), The Illusion of State in State-Space Models, arXiv 2404.08819, figure 3: one recurrent
layer is enough for A5 at every length, Transformers need ever more layers; Yang et al. (2025), PaTH Attention, arXiv
2505.16381, figure 2: where positions are products, fewer layers tell whether a word of A5 is the identity.
Setting: width 64 for 512, lengths to 8 for 25, 8,000 steps; one layer against one, two and four.
Cost: about 90 minutes on one core.
Command: posenc sweep experiments/state.py
Variation: posenc sweep experiments/state.py --only model=rnn --set width=256 lr=3e-4,1e-3 seeds=6 --name wider
Result: medians of six seeds, at the last token. Of A5's products one LSTM layer names 0.77 at 4 tokens and 0.21 at 8,
the longest trained on, where its seeds range from 0.07 to 0.84; its loss still fell by 45 % over the last half of the
steps, so it has not learned the group yet. At 32 it has 0.02. Attention guesses at 8: 0.02 with one layer, 0.02 with
two and 0.02 with four. At 4 tokens four layers have 0.13, one seed 0.98, with losses that still fell by 20 %, and two
layers 0.02, after 0.99 at 2 tokens. Of Z60, which commutes, one layer of attention names 0.60 at 8 and two 0.94, so the
number of elements is not the reason; at 16 they have 0.01 and 0.01, where the LSTM has 0.96. The paper's plain
recurrent network learns A5. Ours does not, 0.02 at 4, and neither Z60, 0.03; its losses fell by 5 % and 11 % over the
last half, so slowly that its width or rate is in question and not the group. PaTH is at RoPE's level, 0.02 at 4. The
first two tokens lift a mean over all of them: by that four layers have 0.34 of the products of 8 tokens.
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


def runs():
    base = Run(model="decoder", width=64, batch=64, length=8, shortest=2)
    return [
        *grid(base, task=[A5], depth=[1, 2, 4], scheme=["rope"]),
        *grid(base, task=[Z60], depth=[1, 2], scheme=["rope"]),
        *grid(base, task=[A5], depth=[2], scheme=["path"]),
        *grid(base, task=[A5, Z60], depth=[1], scheme=["nope"], model=["rnn", "lstm"]),
    ]
