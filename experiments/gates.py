"""A plain recurrent network learns to pass sixteen tokens along; LSTM and GRU, with gates, are not there yet.

Every token from the seventeenth on is answered with the one sixteen positions back, so that a network must hold sixteen
tokens at once. LSTM and GRU are compared with plain networks, whose recurrent matrix starts orthogonal or normal.

Source: Hochreiter and Schmidhuber (1997), Long Short-Term Memory, on why plain recurrence forgets and gates do not. The
task is ours, and so are the claims for GRU.

Setting: as in `memory`, with one distance, ten times the steps, and two rates, chosen by seeds of their own.

Cost: about 50 minutes on one core.

Command: posenc sweep experiments/gates.py

Variation: posenc sweep experiments/gates.py --set 'task=token_k_back(k=8)' --name eight
"""

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

TASK, NORMAL = "token_k_back(k=16)", "rnn(start='normal')"
NETWORKS = ["rnn", NORMAL, "lstm", "gru"]
LONG = "Hochreiter and Schmidhuber (1997), abstract: gates carry what plain recurrence loses"
GATED = "a GRU has gates as an LSTM does"

published = [
    Order(TASK, f"nope (model={gated})", f"nope (model={plain})", source, over="trained", **where)
    for gated, source, where in (("lstm", LONG, {"seen": "paper"}), ("gru", GATED, {"origin": "ours"}))
    for plain in ("rnn", NORMAL)
]

titles = {TASK: "Token 16 back"}
names = {"nope (model=rnn)": "plain RNN", f"nope (model={NORMAL})": "plain RNN, normal start"}
counted = "tokens"
plan = Plan(steps=6000, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3, 1e-2), tuning=(6, 7, 8), sizes=(28, 32, 48, 64))
reading = """
Plain recurrent networks hold sixteen tokens: {|nope (model=rnn)|64|last} at the last of 64, in every seed. LSTM and
GRU answer {|nope (model=lstm)|32|last} and {|nope (model=gru)|32|last} of the last tokens at the trained length. The
published order, gates ahead, is reversed here. It may change with more steps, because the losses of LSTM and GRU were
still falling. The task is a delay line, which favours a plain network.
"""


def runs():
    base = Run(model="decoder", width=64, depth=2, batch=32, length=32, shortest=28, buckets=1)
    return grid(base, task=[TASK], scheme=["nope"], model=NETWORKS)


def figure(results):
    """The loss along training, which tells speed from what a network can hold."""
    from posenc.lab.figures.curves import curves

    return curves(results)
