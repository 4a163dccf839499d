"""Schemes of distance carry an offset further than schemes of index; only schemes of index carry an index.

Two probes, mirror images of each other: which token stands three places back, and at which index the marked token
stands. Trained on sequences of up to 16 tokens, evaluated on up to 64.

Source: the probes are ours; the question is that of Kazemnejad et al. (2023) and Ruoss et al. (2023).
Cost: about 3 minutes on 2 cores.
Command: posenc quickstart, which is posenc sweep experiments/first_look.py and then table and plot.
Variation: posenc sweep experiments/first_look.py --set steps=1000 seeds=6 --name longer
Result: every scheme but nope and symmetric alibi, which without a causal mask cannot tell left from right, names the
token three places back at the lengths trained on. Beyond them rope and t5 keep 0.75 of it on average, learned 0.53 and
sinusoidal 0.48, all falling with length. The index of the marked token is told at four times the length by sinusoidal
and learned, and by no other; rope learns it in part and loses it one length further.
"""

from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

SCHEMES = ["nope", "sinusoidal", "learned", "t5", "alibi", "rope"]
PROBES = {"token_k_back(k=3)": 4, "index_of_token(indices=8)": 8}

plan = Plan(steps=300, seeds=(0, 1, 2, 3), lr=(3e-3,), sizes=(8, 16, 20, 24, 32, 48, 64))


def runs():
    base = Run(length=16, width=64, depth=2, heads=4, hidden=128, batch=32)
    return [
        run
        for probe, shortest in PROBES.items()
        for run in grid(base, task=[probe], shortest=[shortest], scheme=SCHEMES)
    ]
