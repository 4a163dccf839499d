"""A state learns slowly to hold more tokens, a convolution sees to its edge; attention with positions finds any token.

At every token the model names the one k positions back, so a state has to hold k tokens at once. Each k from 1 to 24 is
trained alone, on about 32 tokens. Two convolutions of four taps see seven tokens, and beyond them nothing.

Source: Hochreiter and Schmidhuber (1997), Long Short-Term Memory, on why plain recurrence forgets. Bai et al. (2018),
An Empirical Evaluation of Generic Convolutional and Recurrent Networks, arXiv 1803.01271. There convolutions that see a
whole text keep it, and LSTM and GRU do not; ours see seven tokens. The orders of GRU and of attention are ours.

Setting: the task is ours, and models are two layers of width 64. The order of those papers applies, their numbers do
not.

Cost: about 30 minutes on one core.

Command: posenc sweep experiments/memory.py

Variation: posenc sweep experiments/memory.py --set steps=3000 --name longer
"""

from posenc.lab.results.published import Order, Published
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

BACK = (1, 2, 4, 8, 16, 24)
NETWORKS, NORMAL = ["rnn", "lstm", "gru", "convolution"], "rnn(start='normal')"
EDGE = "two convolutions of four taps see six tokens back, so the rest is a guess among 16"
SEES = "attention sees every token, and a state of fixed size holds few"

published = [
    *(
        Published(f"token_k_back(k={k})", "nope (model=convolution)", 1 / 16, EDGE, over="trained", origin="ours")
        for k in (8, 16, 24)
    ),
    Order("token_k_back(k=24)", "rope (model=decoder)", "nope (model=lstm)", SEES, over="trained", origin="ours"),
]

titles = {"token_k_back" if k == 1 else f"token_k_back(k={k})": f"Token {k} back" for k in BACK}
names = {"nope": "attention, no positions", "rope": "attention, rope"}
names |= {"nope (model=rnn)": "plain RNN", f"nope (model={NORMAL})": "plain RNN, normal start"}
counted = "tokens"
plan = Plan(steps=600, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(28, 32, 48, 64))
reading = """
Attention with RoPE finds the token at every distance ({token_k_back(k=24)|rope|32} at 24 back). A plain recurrent
network finds {token_k_back(k=16)|nope (model=rnn)|32} at 16 back and {token_k_back(k=24)|nope (model=rnn)|32} at 24.
GRU and LSTM find {token_k_back(k=16)|nope (model=gru)|32} and {token_k_back(k=16)|nope (model=lstm)|32} at 16 back.
Their losses were still falling, so this compares speed of learning and not capacity. Convolutions see six tokens
back: {token_k_back(k=8)|nope (model=convolution)|32} at 8.
"""


def runs():
    tasks = [f"token_k_back(k={k})" for k in BACK]
    base = Run(model="decoder", width=64, depth=2, batch=32, length=32, shortest=28, buckets=1)
    return [
        *grid(base, task=tasks, scheme=["nope"], model=[*NETWORKS, NORMAL]),
        *grid(base, task=tasks, scheme=["nope", "rope"]),
    ]


def figure(results):
    """Accuracy at the last of 32 tokens, the longest trained on, against how far back the token stands."""
    from posenc.lab.figures.across import across
    from posenc.lab.figures.panels import Panel
    from posenc.lab.results.floors import floors as floors_of
    from posenc.lab.results.statistics import cells

    far = {("token_k_back" if k == 1 else f"token_k_back(k={k})"): k for k in BACK}
    tasks = results.tasks()
    points: dict[str, dict[float, list[float]]] = {}
    floors: dict[float, dict[str, float]] = {}
    for cell in cells(results):
        if cell.n:
            last = max(cell.inside)
            points.setdefault(cell.scheme, {})[far[cell.task]] = list(cell.values[last])
            floors[far[cell.task]] = floors_of(tasks[cell.task])[last]
    about = "each number of positions is a task of its own; the last of 32 tokens, the longest trained on"
    up, title = "accuracy (last token)", "Tokens to hold at once"
    return across(results, Panel(points, "positions back", up, title, about, floors))
