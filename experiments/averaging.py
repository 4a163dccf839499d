"""An average of all tokens counts; to look one up takes weights, additive or by products.

One head of 64 features, its scores made in four ways: all alike, by a small layer for each pair, by products, and by
products over the root of the width. Counting needs no more than the average. What stands where a pointer says, or
beside a key, is lost in it.

Source: Bahdanau et al. (2014), Neural Machine Translation by Jointly Learning to Align and Translate, arXiv 1409.0473;
Vaswani et al. (2017), §3.2.1, after Britz et al. (2017): additive scores do better than products without the root where
the head is wide. That averaging cannot look up is arithmetic: it weighs all tokens alike.
Setting: toy tasks of ours in place of translation, two layers, sinusoids at the input of every model.
Cost: about 10 minutes on 2 cores, estimated and not measured.
Command: posenc sweep experiments/averaging.py
Variation: posenc sweep experiments/averaging.py --set width=128 --name wider
Result: not run.
"""

import dataclasses

from posenc.lab.experiment import grid
from posenc.lab.published import Order, Published
from posenc.lab.run import Plan, Run

SCORES = ["average", "additive", "dot", "scaled_dot"]
COUNT, POINT, RECALL = "count_symbol", "pointer_back(reach=8)", "associative_recall"

ARITHMETIC = "arithmetic: an average weighs all tokens alike"
published = [
    Published(
        COUNT, "sinusoidal (attention=average)", 0.95, "ours: counts are averages", relation="at least", over="trained"
    ),
    *(
        Order(task, f"sinusoidal (attention={kind})", "sinusoidal (attention=average)", ARITHMETIC, over="trained")
        for task in (POINT, RECALL)
        for kind in SCORES[1:]
    ),
    *(
        Order(
            task,
            "sinusoidal (attention=additive)",
            "sinusoidal (attention=dot)",
            "Vaswani et al. (2017), §3.2.1",
            over="trained",
        )
        for task in (POINT, RECALL)
    ),
]

plan = Plan(steps=1000, seeds=(0, 1, 2, 3), lr=(3e-3,))


def runs():
    base = Run(scheme="sinusoidal", model="decoder", width=64, depth=2, heads=1, hidden=128, batch=32, length=16)
    pairs = dataclasses.replace(base, length=6)
    counted = grid(base, task=[COUNT, POINT], attention=SCORES)
    return [*counted, *grid(pairs, task=[RECALL], attention=SCORES)]
