"""Without positions, attention that sees both ways cannot tell order at all; under a causal mask it can.

Which of two marks came first is a fair bet for a model that sees a set, and so it is under every scheme whose scores
depend on how far apart tokens are and not on which is to the left: symmetric ALiBi, KERPLE, Sandwich. The token one
place back is found by a decoder without any encoding, since its mask tells how many tokens a token has before it.

Source: Vaswani et al. (2017), §3.5, that attention has no order; Haviv et al. (2022), Transformer Language Models
without Positional Encodings Still Learn Positional Information, arXiv 2203.16634. That a set gives 0.5 is arithmetic.
Setting: the tasks are ours; both models have two layers of width 64.
Cost: about 15 minutes on 2 cores, estimated and not measured.
Command: posenc sweep experiments/permutation.py
Variation: posenc sweep experiments/permutation.py --only model=decoder --set depth=1 --name one_layer
Result: not run.
"""

from posenc.lab.experiment import grid
from posenc.lab.published import Order, Published
from posenc.lab.run import Plan, Run

BLIND = ["nope", "alibi", "kerple", "sandwich"]
SEEING = ["alibi(form='half')", "t5", "rope", "sinusoidal", "learned"]
BACK = "token_k_back(k=1)"

SET = "arithmetic: of a set with both marks, each order is as likely"
HAVIV = "Haviv et al. (2022), §4: a causal mask tells positions"
published = [
    *(Published("before", f"{s} (model=encoder)", 0.5, SET, over="trained") for s in BLIND),
    *(Order("before", f"{s} (model=encoder)", "nope (model=encoder)", SET, over="trained") for s in SEEING),
    Order("token_k_back", "nope (model=decoder)", "nope (model=encoder)", HAVIV, over="trained"),
]

plan = Plan(steps=600, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(8, 12, 16, 24, 32))


def runs():
    base = Run(width=64, depth=2, heads=4, hidden=128, batch=32, length=16, shortest=4)
    both = grid(base, model=["encoder", "decoder"], task=[BACK], scheme=[*BLIND, *SEEING])
    return [*grid(base, task=["before"], scheme=[*BLIND, *SEEING]), *both]
