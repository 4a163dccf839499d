"""In encoders RoPE and T5 keep part of an offset at four times the trained length; absolute encodings keep an index.

Two tasks mirror each other: which token stands three positions back, and at which of the first eight indices the marked
token stands. Models train on up to 16 tokens and are evaluated on up to 64.

Source: the tasks are ours. The question is that of Kazemnejad et al. (2023) and Ruoss et al. (2023).

Cost: about 12 minutes on 2 cores. `posenc quickstart`, which trains 4 seeds for 300 steps, takes about 2.

Command: posenc sweep experiments/first_look.py

Variation: posenc sweep experiments/first_look.py --set length=32 sizes=8,16,32,40,48,64,96,128 --name doubled
"""

from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

SCHEMES = ["nope", "sinusoidal", "learned", "t5", "alibi", "rope"]
PROBES = {"token_k_back(k=3)": 4, "index_of_token(indices=8)": 8}

titles = {
    "token_k_back(k=3)": "Token three positions back",
    "index_of_token(indices=8)": "Index of a mark in the first 8",
}
counted = "tokens"
plan = Plan(steps=1000, seeds=tuple(range(10)), lr=(3e-3,), sizes=(8, 16, 20, 24, 32, 48, 64))
reading = """
At length 64, over untrained positions, RoPE and T5 find {token_k_back|rope|64} and {token_k_back|t5|64} of the tokens
three back: above the baseline of {token_k_back|baseline|64}, and far from 0.9. Learned and sinusoidal encodings guess
at 20 ({token_k_back|learned|20}, {token_k_back|sinusoidal|20}), but only they find the index at 64
({index_of_token|learned|64}, {index_of_token|sinusoidal|64}). The best other scheme finds
{index_of_token|best!learned!sinusoidal|64} of the indices. Symmetric ALiBi does not learn the token three back
({token_k_back|alibi|16}), because its penalty prefers the nearest key. RoPE falls in steps, because its angles repeat
([RoPE's aliases](../docs/rope-aliases.md)).
"""


def runs():
    base = Run(length=16, width=64, depth=2, heads=4, hidden=128, batch=32)
    return [
        run
        for probe, shortest in PROBES.items()
        for run in grid(base, task=[probe], shortest=[shortest], scheme=SCHEMES)
    ]
