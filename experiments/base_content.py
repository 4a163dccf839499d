"""A small base of RoPE carries a distance further, a large one what is looked up by content: they want different bases.

Pairs that hardly turn leave a part of the score to content alone, at any distance; at base 10 the slowest of eight
turns once in 47 tokens, so none is left. Recall by key and a pointer of up to four places in decoders, with bases from
10 to 10,000.

Source: Oka et al. (2026), Frequency Bands in RoPE, ICLR: a base near the training length extrapolates better, a larger
one worse. The probes and the other predictions are ours.
Setting: two layers of width 64, heads of 16 features; trained on up to 16 tokens, for recall on 32 with four keys and
no convolution before the model; theirs are language models, measured in perplexity.
Cost: about 3 hours on one core, of which half an hour for the pointer.
Command: posenc sweep experiments/base_content.py
Variation: posenc sweep experiments/base_content.py --only scheme=rope --set steps=8000 --name longer
Result: medians of six seeds. Recall: of the values asked for in texts of 32 tokens, the length trained on, every base
finds 0.98 or more. In texts of 64 base 10 finds 0.62, base 16 0.64, base 100 0.82, base 1,000 0.97 and base 10,000
0.99; in texts of 256 they find 0.30, 0.27, 0.29, 0.52 and 0.79. Base 1,000 is above base 10 in every seed, and so is
base 10,000 but in one, which had not learned to recall at 32 either, 0.51, so that our prediction, which names the
largest base, stays open. Losses at bases 10 and 16 still fell, by 80 % and 87 % over the last half of the steps: they
learn more slowly too. Pointers: at the last places trained every base has 1.00. At places beyond, in rows of 64, base
10 has 0.53, base 16 0.58, base 100 0.52, base 1,000 0.41 and base 10,000 0.22; but seeds of one base differ as much,
from 0.26 to 0.95 at base 10, so that neither the published order nor ours is decided.
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

titles = {RECALL: "Values by their keys", POINTER: "Up to four places back"}
counted = "tokens"
metric = {RECALL: "accuracy"}  # of all its keys, none of which is later than another by rule
plan = Plan(steps=4000, seeds=(0, 1, 2, 3, 4, 5), lr=(1e-3, 3e-3), sizes=(16, 32, 64, 128, 256), rows=1024)


def runs():
    base = Run(width=64, depth=2, heads=4, hidden=128, batch=32, length=16)
    return [
        *grid(base, task=[RECALL], scheme=SCHEMES, model=["decoder"], length=[32], shortest=[32], buckets=[1]),
        *grid(base, task=[POINTER], scheme=SCHEMES, model=["decoder"], shortest=[8]),
    ]
