"""Schemes of distance carry an offset further than schemes of index; only schemes of index carry an index.

Two probes, mirror images of each other: which token stands three places back, and at which of the first eight indices
the marked token stands. Trained on sequences of up to 16 tokens, evaluated on up to 64.

Source: the probes are ours; the question is that of Kazemnejad et al. (2023) and Ruoss et al. (2023).
Cost: about 12 minutes on 2 cores; `posenc quickstart`, which trains 4 seeds for 300 steps, about 2.
Command: posenc sweep experiments/first_look.py
Variation: posenc sweep experiments/first_look.py --set length=32 sizes=8,16,32,40,48,64,96,128 --name doubled
Result: medians of ten seeds, at the last token of a row unless said otherwise. Of the token three places back learned
and sinusoidal name all at 16, the longest trained on, 1.00 and 1.00, and at 20 they guess, 0.12 and 0.07. Of all tokens
in a row of 64 learned has 0.29, because trained places stay right; under rope, 0.60, and t5, 0.48, trained places break
too. t5 falls slowly at the last token, from 0.98 at 20 to 0.44 at 64. rope has 1.00 at 20 and 0.61 at 64, and between
them it falls and rises in steps (docs/rope-aliases.md). nope and symmetric alibi do not learn it, 0.17 and 0.23 at 16:
ALiBi's penalty grows with distance, so that it looks most at the nearest key and not at the third. With the index of
the marked token it is the other way round: at 64 sinusoidal has 0.93 and learned 1.00, and no other has more than 0.14.
There rope has every index that was trained, 1.00 at 16, and 0.09 at 20. Of all these alibi's loss alone still fell, by
31 % over the last half of the steps, on the index, which it has in 0.48 at 16.
"""

from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

SCHEMES = ["nope", "sinusoidal", "learned", "t5", "alibi", "rope"]
PROBES = {"token_k_back(k=3)": 4, "index_of_token(indices=8)": 8}

titles = {
    "token_k_back(k=3)": "Token three places back",
    "index_of_token(indices=8)": "Index of a mark in the first 8",
}
counted = "tokens"
plan = Plan(steps=1000, seeds=tuple(range(10)), lr=(3e-3,), sizes=(8, 16, 20, 24, 32, 48, 64))


def runs():
    base = Run(length=16, width=64, depth=2, heads=4, hidden=128, batch=32)
    return [
        run
        for probe, shortest in PROBES.items()
        for run in grid(base, task=[probe], shortest=[shortest], scheme=SCHEMES)
    ]
