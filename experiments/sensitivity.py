"""The constants of a scheme belong to a length: those of large models are not the best for 16 tokens.

ALiBi's slopes, the reach of T5's buckets and the limit of random positions each go from the published value to one that
fits rows of 16 tokens. T5's buckets for 16 to 128 tokens are never trained. RoPE's base has an experiment of its own,
`base`.

Source: Press et al. (2022), Raffel et al. (2020) and Ruoss et al. (2023) for the constants; the question and its
predictions are ours.

Setting: encoders of two layers and width 64, with 16 buckets in place of 32, half of them for later keys. The papers
use these constants at 512 to 2,048 tokens.

Cost: about 45 minutes on 2 cores, estimated. token_k_back alone, by --only, takes 14.

Command: posenc sweep experiments/sensitivity.py

Variation: posenc sweep experiments/sensitivity.py --set length=32 sizes=16,32,48,64,128 --name doubled
"""

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

BACK, SORT = "token_k_back(k=3)", "bucket_sort"
CONSTANTS = {  # scheme to its constant as a multiple of the published one
    "ALiBi's slopes": {"alibi(form='half')": 1.0}
    | {f"alibi(form='half', factor={factor})": factor for factor in (4.0, 16.0, 64.0)},
    "T5's reach": {f"t5(buckets=16, reach={reach})": reach / 128 for reach in (16, 32, 64)} | {"t5(buckets=16)": 1.0},
    "limit of random positions": {
        f"rope @ random_sorted(limit={limit})": limit / 2048 for limit in (128, 256, 512, 1024)
    }
    | {"rope @ random_sorted": 1.0},
}
SCHEMES = [scheme for multiples in CONSTANTS.values() for scheme in multiples]

FLAT = "ours: a slope of 1/256 is flat here"
EXPECTED = {
    (BACK, "t5(buckets=16, reach=16)", "t5(buckets=16)"): "buckets beyond the trained distances are never trained",
    (SORT, "rope @ random_sorted(limit=128)", "rope @ random_sorted"): "fewer numbers, each drawn more often",
}
published = [Order(*names, f"ours: {why}", metric="beyond", origin="ours") for names, why in EXPECTED.items()]
published += [Order(BACK, "alibi(form='half', factor=16.0)", "alibi(form='half')", FLAT, over="trained", origin="ours")]

titles = {BACK: "Token three positions back", SORT: "Sort a string"}
counted = "tokens"
plan = Plan(steps=1000, seeds=tuple(range(12)), lr=(3e-3,), sizes=(8, 16, 24, 32, 64))
reading = """
ALiBi's published slopes do not learn the token three back ({|alibi(form='half')|16}). Slopes 16 times as steep reach
{|alibi(form='half', factor=16.0)|16}, and {|alibi(form='half', factor=16.0)|64} at length 64. T5 with a reach of the
trained length reaches {|t5(buckets=16, reach=16)|64} at 64, and with the published one {|t5(buckets=16)|64}. Random
positions do not learn the task with any limit; with 128 they reach {|rope @ random_sorted(limit=128)|16}.
"""


def runs():
    base = Run(length=16, shortest=4, width=64, depth=2, heads=4, hidden=128, batch=32, buckets=1)
    return grid(base, task=[BACK, SORT], scheme=SCHEMES)


def figure(results):
    """Accuracy beyond the sizes trained on against each constant, as a multiple of the published one."""
    from posenc.lab.figures.across import panels
    from posenc.lab.figures.panels import Panel
    from posenc.lab.results.floors import mean_floors
    from posenc.lab.results.statistics import cells

    found = {(cell.task, cell.scheme): cell for cell in cells(results) if cell.n}
    parts = []
    for label, task in results.tasks().items():
        points = {
            name: {x: list(cell.means(cell.beyond).values()) for s, x in of.items() if (cell := found.get((label, s)))}
            for name, of in CONSTANTS.items()
        }
        points = {name: of for name, of in points.items() if of}
        sizes = next(cell.beyond for (name, _), cell in found.items() if name == label)
        floors = {x: mean_floors(task, sizes) for of in points.values() for x in of}
        about = "A point is one run's mean over the sizes beyond those trained on."
        along = "constant, as a multiple of the published one"
        parts.append(Panel(points, along, "accuracy beyond", titles[label], about, floors, log=True))
    return panels(results, parts)
