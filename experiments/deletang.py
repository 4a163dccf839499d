"""Recurrent networks carry regular tasks to any length, and a Transformer carries none of them but the easiest.

An automaton with a few states solves the four tasks. They are whether both ends are equal, a parity, a walk on a cycle,
and the value of a sum of products mod 5. A plain recurrent network and an LSTM read the string once. An encoder with
each of five encodings sees all of it at once.

Source: Delétang et al. (2023), Neural Networks and the Chomsky Hierarchy, arXiv 2207.02098, Table 2 and Appendix B (the
Transformer on even pairs from memory). They report the best encoding without its name; here it is the one that is best
in Table 1 of Ruoss et al. (2023), whose setting is the same (from memory).

Setting: encoders of 2 layers and 4 heads in place of 5 and 8, with norms before in place of after, and one recurrent
layer of width 64. Lengths go to 16 in place of 40. Seven sizes from 18 to 200 replace every one from 41 to 500, and
their mean is by the trapezoid rule. There are 3,000 steps of 32 at one rate in place of 1 million of 128 at three.
Theirs is the best of 10 seeds and three rates.

Cost: about 50 minutes on 2 cores, estimated. Cycle navigation and parity alone, by --only, take 27.

Command: posenc sweep experiments/deletang.py

Variation: posenc sweep experiments/deletang.py --only task=parity_check,cycle_navigation --set steps=20000 --name long

Result: not run.
"""

from posenc.lab.results.published import Order, Published
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

SCHEMES = ["nope", "sinusoidal", "rope", "alibi(form='half')", "transformer_xl"]
RNN, LSTM = ("nope (depth=1, model=rnn)", "nope (depth=1, model=lstm)")
BEST = {  # the encoding that carries furthest, and the share right
    "even_pairs": ("transformer_xl", 0.964),
    "parity_check": ("nope", 0.520),
    "cycle_navigation": ("nope", 0.619),
    "modular_arithmetic": ("alibi(form='half')", 0.242),
}
TABLE = "Delétang et al. (2023), Table 2"
UNSEEN = "even_pairs"
"""The task whose number of the Transformer is from memory."""
THEIRS = {"tolerance": 0.05, "of": "best", "runs": 30, "weights": "trapezoid"}

published = [
    *(Published(task, network, 1.0, TABLE, **THEIRS, seen="paper") for task in BEST for network in (RNN, LSTM)),
    *(
        Published(
            *(task, f"{scheme} (depth=2, model=encoder)", share, TABLE),
            **THEIRS,
            seen="memory" if task == UNSEEN else "paper",
        )
        for task, (scheme, share) in BEST.items()
    ),
    *(
        Order(task, network, f"{scheme} (depth=2, model=encoder)", TABLE, weights="trapezoid", seen="paper")
        for task in list(BEST)[1:]
        for network in (RNN, LSTM)
        for scheme in SCHEMES
    ),
]

plan = Plan(steps=3000, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(8, 16, 18, 24, 32, 48, 64, 100, 200), rows=1024)


def runs():
    base = Run(width=64, depth=2, batch=32, length=16, longest=200, buckets=2)
    encoders = grid(base, task=list(BEST), scheme=SCHEMES, model=["encoder"])
    return [*encoders, *grid(base, task=list(BEST), scheme=["nope"], model=["rnn", "lstm"], depth=[1])]
