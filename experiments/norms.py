"""A norm before each branch trains at rates, and without a warm-up, where a norm after each sum does not.

Encoders of two and of eight layers, without any warm-up, at six learning rates. The figure shows every rate; tables
show those that tie in validation, which hide the failure of norms after each sum.

Source: Xiong et al. (2020), On Layer Normalization in the Transformer Architecture, arXiv 2002.04745, on translation
and BERT pre-training; norms follow each sum in Vaswani et al. (2017), and in the runs of Ruoss et al. (2023).

Setting: a task of ours in place of translation, width 64, norms with a scale and no shift.

Cost: about 35 minutes on one core.

Command: posenc sweep experiments/norms.py

Variation: posenc sweep experiments/norms.py --set warmup=0.1 --name warmed_up
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

titles = {"token_k_back(k=3)": "Token three positions back"}
names = {
    f"rope (depth={n}, norm={k})": f"{n} layers, norm {w}"
    for n in (2, 8)
    for k, w in (("pre", "before"), ("post", "after"))
}
counted = "tokens"
plan = Plan(
    steps=600, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1), sizes=(8, 16, 24, 32), warmup=0.0
)
reading = """
With eight layers, norms before each branch solve the task at rate 0.03
({|rope (depth=8, norm=pre)|16|accuracy|lr=0.03|min} in the worst run). Norms after each sum fail at 0.01:
{|rope (depth=8, norm=post)|16|accuracy|lr=0.01|max} in the best run. At 0.003 both solve it
({|rope (depth=8, norm=post)|16|accuracy|lr=0.003|min} with norms after). With two layers the difference is small, and
the claim stays open. At rate 0.1 no run solves it.
"""


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
