"""A source whose memory ends after 16 tokens: a scheme that is not flat on it beyond training does more than see less.

A hidden Markov chain of 16 states forgets within 16 tokens, so that a window loses nothing. Who loses on copies
(`language`) and not here lacks reach; who loses here too is confused by places that training did not have.

Source: ours, as the control of `experiments/language.py`.
Setting: as in `experiments/language.py`, with three seeds, which decide no order.
Cost: about 2 hours of one core, estimated.
Command: posenc sweep experiments/language_control.py
Variation: posenc sweep experiments/language_control.py --only scheme=rope,alibi,nope --seeds 3:6 --name more
Result: not run.
"""

from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

SCHEMES = "nope sinusoidal learned rope alibi kerple sandwich fire t5 xpos fox stick_breaking cope".split()

plan = Plan(steps=2000, seeds=(0, 1, 2), lr=(1e-3, 3e-3), sizes=(64, 128, 256, 512, 1024), rows=256)
titles = {"hidden_markov": "A hidden Markov chain"}
names = {"nope (model=lstm)": "LSTM"}
counted = "tokens"


def runs():
    sizes = {"length": 64, "shortest": 64, "longest": 1024, "buckets": 1}
    base = Run(task="hidden_markov", model="decoder", width=64, depth=2, heads=4, batch=16, stem="conv(k=3)", **sizes)
    return [*grid(base, scheme=SCHEMES), *grid(base, scheme=["nope"], model=["lstm"])]


def figure(results):
    """The excess over the exact loss by place."""
    from posenc.lab.figures.by_place import excess_curve

    return excess_curve(results)
