"""In decoders RoPE with base 10 recalls less than with base 10,000, and carries a pointer further.

Pairs that hardly turn leave a part of the score to content alone, at any distance. At base 10 the slowest of eight
turns once in 47 tokens, so no such pair is left. The tasks are recall by key and a pointer of up to four positions in
decoders, with bases from 10 to 10,000. Six seeds left three orders undecided, so every setting was given four more,
and all ten count.

Source: Oka et al. (2026), Frequency Bands in RoPE, ICLR: a base near the training length extrapolates better, a larger
one worse. The tasks and the other predictions are ours.

Setting: two layers of width 64, heads of 16 features, trained on up to 16 tokens. Recall has 32 tokens with four keys
and no convolution before the model. The papers have language models, measured in perplexity.

Cost: about 5 hours on one core, an hour of it for the pointer.

Command: posenc sweep experiments/base_content.py

Variation: posenc sweep experiments/base_content.py --only scheme=rope --set steps=8000 --name longer
"""

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

BASES = (10.0, 16.0, 100.0, 1000.0, 10000.0)
SCHEMES = ["rope" if base == 10000.0 else f"rope(base={base})" for base in BASES]
RECALL, POINTER = "mqar(symbols=64, power=1.0)", "pointer_back(reach=4)"
SMALL, LARGE, NEAR = "rope(base=10.0)", "rope", "rope(base=16.0)"

OKA = "Oka et al. (2026), abstract: a base set to the training length improves extrapolation"
CONTENT = "ours: only pairs that hardly turn compare contents at any distance"
DISTANCE = "ours: a distance is told by pairs that turn, of which a small base has more"
published = [
    Order(POINTER, NEAR, LARGE, OKA, seen="copy"),
    Order(RECALL, LARGE, SMALL, CONTENT, over=(64,), origin="ours"),
    Order(POINTER, SMALL, LARGE, DISTANCE, over=(64,), origin="ours"),
]

titles = {RECALL: "Values by their keys", POINTER: "Up to four positions back"}
counted = "tokens"
metric = {RECALL: "accuracy"}  # of all its keys, none of which is later than another by rule
plan = Plan(steps=4000, seeds=tuple(range(10)), lr=(1e-3, 3e-3), sizes=(16, 32, 64, 128, 256), rows=1024)
reading = """
At length 64 base 10 recalls {mqar|rope(base=10.0)|64} of the values, base 1,000 {mqar|rope(base=1000.0)|64} and base
10,000 {mqar|rope|64}. At the trained length every base recalls at least {mqar|worst|32}. Base 1,000 is ahead of base
10 in every seed, base 10,000 in nine of ten: one run had not learned the trained length. Base 10 finds
{pointer_back|rope(base=10.0)|64} of the pointers at 64, base 10,000 {pointer_back|rope|64}, and is ahead in nine of
ten. At 32 base 100 finds most, {pointer_back|rope(base=100.0)|32}, and base 10
{pointer_back|rope(base=10.0)|32}.
"""


def runs():
    base = Run(width=64, depth=2, heads=4, hidden=128, batch=32, length=16)
    return [
        *grid(base, task=[RECALL], scheme=SCHEMES, model=["decoder"], length=[32], shortest=[32], buckets=[1]),
        *grid(base, task=[POINTER], scheme=SCHEMES, model=["decoder"], shortest=[8]),
    ]
