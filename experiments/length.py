"""Some schemes carry a string task beyond the trained lengths, and random positions help.

The question is that of Ruoss et al. (2023), in a size that two cores train within an hour. An encoder trains on strings
of 1 to 16 characters and is evaluated on up to 64. Every seed is shown; the paper shows the best of 30 runs. The
claims of reversal stand in experiments/reversal.py, which trains ten times as long.

Source: Ruoss et al. (2023), Randomized Positional Encodings Boost Length Generalization of Transformers, Table 1, from
memory, as in experiments/ruoss.py, which says what supports it.

Setting: 3 layers in place of 5, norms before in place of after, and lengths to 16 in place of 40. Five sizes from 20 to
64 replace every one from 41 to 500, and their mean is by the trapezoid rule. There are 1,200 steps at one rate in place
of 1 million at three, and positions below 128 in place of 2048. experiments/ruoss.py is the whole table.

Cost: half an hour on 2 cores.

Command: posenc sweep experiments/length.py. Then posenc plot experiments/length.py draws the committed record again.

Variation: posenc sweep experiments/length.py --set steps=10000 seeds=10 --name long
"""

from posenc.lab.results.published import Order, Published
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

SCHEMES = [
    "nope",
    "sinusoidal",
    "learned",
    "t5",
    "alibi",
    "rope",
    "sinusoidal @ random_sorted(128)",
    "rope @ random_sorted(128)",
]
TASKS = ["bucket_sort", "reverse_string"]
WAVES, TURNS = (f"{scheme} @ random_sorted(limit=128)" for scheme in ("sinusoidal", "rope"))  # as tables call them
TABLE = {"nope": 23.7, "sinusoidal": 30.1, "learned": 25.9, "rope": 30.6, WAVES: 100, TURNS: 99.6}  # percent
RUOSS = "Ruoss et al. (2023), Table 1"
THEIRS = {"weights": "trapezoid", "seen": "memory"}


def row(task, table):
    """A row of Table 1, and the order of random positions above plain ones."""
    return [
        *(
            Published(task, scheme, percent / 100, RUOSS, tolerance=0.05, of="best", runs=30, **THEIRS)
            for scheme, percent in table.items()
        ),
        *(Order(task, drawn, plain, RUOSS, **THEIRS) for drawn, plain in ((WAVES, "sinusoidal"), (TURNS, "rope"))),
    ]


published = row("bucket_sort", TABLE)
titles = {"bucket_sort": "Sort a string", "reverse_string": "Reverse a string"}
names = {WAVES: "sinusoidal + random positions", TURNS: "rope + random positions"}
counted = "characters"
metric = "accuracy"  # of all tokens: the last of a sorted string is nearly always the same
plan = Plan(steps=1200, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(8, 16, 20, 24, 32, 48, 64))
reading = """
At length 64 random positions sort with accuracy {bucket_sort|rope @ random_sorted(limit=128)|64} under RoPE, and
plain RoPE with {bucket_sort|rope|64}. Only random positions are above the best baseline there,
{bucket_sort|baseline|64}. On reversal only RoPE learned the trained lengths, so the other orders compare speed of
learning. ALiBi reverses {reverse_string|alibi|64} of the symbols at 64, and RoPE with random positions
{reverse_string|rope @ random_sorted(limit=128)|64}.
"""


def runs(tasks=TASKS, schemes=SCHEMES):
    base = Run(length=16, width=64, depth=3, heads=8, hidden=256, norm="pre", batch=32, buckets=2)
    return grid(base, task=tasks, scheme=schemes)


def figure(results):
    """Accuracy against size; of two symbols a guess gets half, so that axis begins a little below it."""
    from posenc.lab.figures.figures import length

    return length(results, ends={"reverse_string": (0.45, 1)})
