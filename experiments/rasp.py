"""Tasks with a short RASP-L program go on beyond the trained lengths; tasks that need an index or a parity stop.

One decoder has five tasks. Three have a short program without arithmetic on positions: counting up, naming the most
frequent symbol, and copying a string of different symbols. In the last, the symbol written before shows where to go on.
Two have none: copying a string of two symbols, which repeat, and its parity.

Source: Zhou et al. (2023), What Algorithms can Transformers Learn? A Study in Length Generalization, arXiv 2310.16028,
§4, and of parity §5.2 and C.1. The sides of the tasks are theirs; the bounds are ours, since their numbers are in
curves. The two controls are ours too: an LSTM for parity, position coupling for copying.

Setting: decoders of 2 layers and width 64 in place of 6 and 512, lengths to 12 in place of 40, evaluated to 30 in place
of 100. There are 2,500 steps of 32 at one rate in place of 50,000 of 128. Positions have random shifts in place of
packed texts (theirs from memory).

Cost: about 43 minutes on 2 cores, estimated. The two copies alone, by --only, take 23.

Command: posenc sweep experiments/rasp.py

Variation: posenc sweep experiments/rasp.py --set steps=10000 length=20 longest=110 sizes=20,22,24,30,40 --name longer

Result: not run.
"""

from posenc.lab.results.published import Published
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

UP, MODE, UNIQUE = "count_up(symbols=64)", "mode(symbols=8)", "copy(symbols=32, distinct=True)"
REPEATED, PARITY = "copy(symbols=2)", "parity_lm"
SHIFTED = "learned @ offset(limit=40, evaluate='zero')"
SCHEMES = ["nope", "rope", SHIFTED]
COUPLED = "learned @ given(shift=40, each='example')"

NEAR = (14, 16, 18)
"""To one and a half times the longest trained on."""
ZHOU = "Zhou et al. (2023), {}; the bound is ours"

AT_LEAST = {UP: 0.9, MODE: 0.9, UNIQUE: 0.9}
AT_MOST = {REPEATED: 0.1, PARITY: 0.6}
published = [
    Published(
        *(task, f"{SHIFTED} (model=decoder)", share, ZHOU.format("§5.2 and C.1" if task == PARITY else "§4")),
        **{"metric": "exact", "tolerance": 0.05, "relation": relation, "over": NEAR, "seen": "copy"},
    )
    for relation, of in (("at least", AT_LEAST), ("at most", AT_MOST))
    for task, share in of.items()
]

plan = Plan(steps=2500, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(6, 12, 14, 16, 18, 24, 30))


def runs():
    base = Run(model="decoder", depth=2, batch=32, length=12, shortest=2, longest=80, lengths="example", buckets=1)
    return [
        *grid(base, task=[UP, MODE, UNIQUE, REPEATED, PARITY], scheme=SCHEMES),
        *grid(base, task=[REPEATED], scheme=[COUPLED]),
        *grid(base, task=[PARITY], scheme=["nope"], model=["lstm"]),
    ]
