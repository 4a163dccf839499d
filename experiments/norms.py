"""A norm before each branch trains at rates, and without a warm-up, where a norm after each sum does not.

Encoders of two and of eight layers, without any warm-up, at six learning rates. The figure shows every rate; tables
show those that tie in validation, which hide the failure of norms after each sum.

Source: Xiong et al. (2020), On Layer Normalization in the Transformer Architecture, arXiv 2002.04745, on translation
and BERT pre-training; norms follow each sum in Vaswani et al. (2017), and in the runs of Ruoss et al. (2023).
Setting: a probe of ours in place of translation, width 64, norms with a scale and no shift.
Cost: about 35 minutes on one core.
Command: posenc sweep experiments/norms.py
Variation: posenc sweep experiments/norms.py --set warmup=0.1 --name warmed_up
Result: six seeds at each rate, all tokens of rows of 16, the longest trained on. With eight layers norms before each
branch solve it at every rate up to 0.03, the worst run with 1.00, and norms after each sum up to 0.003; at 0.01 and
more none of these is above 0.07, where a guess has 0.06. With two layers norms before each branch solve it up to 0.03
too, and norms after up to 0.01; at 0.03 two of those six fail, with 0.13 and 0.11. At 0.1 nothing solves it, and the
best run has 0.66. Validation chooses rates at which both are right, so the verdict compares the largest rate at which
each run is clear of its floor: with eight layers that is larger with norms before in all six pairs, as published. With
two it stays open, since at 0.1 one run with norms after is at 0.52.
"""

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

XIONG = "Xiong et al. (2020), §3.2 and §4: without warm-up, pre-norm trains and post-norm fails"
published = [
    Order(
        *("token_k_back(k=3)", f"rope (depth={n}, norm=pre)", f"rope (depth={n}, norm=post)", XIONG),
        **{"over": "trained", "about": "rate", "seen": "paper"},
    )
    for n in (2, 8)
]

titles = {"token_k_back(k=3)": "Token three places back"}
names = {
    f"rope (depth={n}, norm={k})": f"{n} layers, norm {w}"
    for n in (2, 8)
    for k, w in (("pre", "before"), ("post", "after"))
}
counted = "tokens"
plan = Plan(
    steps=600, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1), sizes=(8, 16, 24, 32), warmup=0.0
)


def runs():
    base = Run(task="token_k_back(k=3)", width=64, heads=4, hidden=128, batch=32, length=16, shortest=4)
    return grid(base, depth=[2, 8], norm=["pre", "post"])


def figure(results):
    """Accuracy against the learning rate, at the sizes trained on and at a longer one, which validation cannot see."""
    from posenc.lab.figures.across import panels
    from posenc.lab.figures.panels import Panel
    from posenc.lab.results.floors import mean_floors

    (task,) = results.tasks().values()
    beyond = min((row.size for row in results.rows() if not row.trained), default=0)
    runs: dict[tuple[bool, str, float, str], dict[int, float]] = {}
    for row in results.rows():
        if row.trained or row.size == beyond:
            runs.setdefault((row.trained, row.scheme, row.lr, row.trial), {})[row.size] = row.value
    about = {
        True: ("Sizes trained on", "the mean over the sizes trained on, at each rate"),
        False: (f"{beyond} tokens, not trained", f"the same runs at {beyond} tokens"),
    }
    shown = []
    for trained, (title, said) in about.items():
        points: dict[str, dict[float, list[float]]] = {}
        for (inside, scheme, rate, _), values in runs.items():
            if inside == trained:
                points.setdefault(scheme, {}).setdefault(rate, []).append(sum(values.values()) / len(values))
        sizes = {n for (inside, *_), values in runs.items() if inside == trained for n in values}
        known = mean_floors(task, sorted(sizes))
        floors = {rate: known for of in points.values() for rate in of}
        shown.append(Panel(points, "learning rate", "accuracy (last token)", title, said, floors, log=True))
    return panels(results, [panel for panel in shown if panel.points], every_rate=True)
