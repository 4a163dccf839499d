"""Random positions carry string tasks beyond the trained lengths: the informative rows of Table 1, in small.

Nine of the fifteen tasks, those where some scheme is clear of every floor in the paper, by twelve schemes. What carries
over from a large study to a small one is which scheme is better, and hardly a number; so each row is compared by the
rank correlation of the schemes, and each random scheme with its plain one.

Source: Ruoss et al. (2023), Randomized Positional Encodings Boost Length Generalization of Transformers, Table 1 (from
memory, as in experiments/ruoss.py, where the whole table stands).
Setting: 3 layers for 5, norms before for after, lengths to 16 for 40 and up to 200 for 500, positions below 512 for
2048; 3,000 steps for 1 million, one rate for three, 6 seeds for 10. Means over lengths are by the trapezoid rule.
Cost: about 40 minutes on 2 cores for a row of one answer, and three times that for a row of a text.
Command: posenc sweep experiments/ruoss_small.py --only task=missing_duplicate_string --name missing_duplicate_string
Variation: posenc sweep experiments/ruoss_small.py --only task=cycle_navigation --name cycle_navigation
Result: not run.
"""

import dataclasses
import re
from pathlib import Path

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.experiment_file import executed
from posenc.lab.spec.run import Plan, Run

LIMIT = 512
TASKS = [
    "cycle_navigation",
    "even_pairs",
    "missing_duplicate_string",
    "reverse_string",
    "stack_manipulation",
    "duplicate_string",
    "odds_first",
    "binary_addition",
    "bucket_sort",
]


def small(scheme):
    """A scheme of the whole table, with random positions below `LIMIT`."""
    with_settings = scheme.replace("random_sorted(", f"random_sorted(limit={LIMIT}, ")
    return re.sub(r"random_sorted$", f"random_sorted(limit={LIMIT})", with_settings)


whole = executed(Path(__file__).with_name("ruoss.py"))
SCHEMES = [small(scheme) for scheme in (*whole.SCHEMES, whole.AS_DESCRIBED)]
PAIRS = list(zip(SCHEMES[6:11], SCHEMES[1:6], strict=True))
"""Each scheme with random positions, and the plain one."""
published = [
    *(
        dataclasses.replace(claim, scheme=small(claim.scheme), floor=None, bag=None)
        for claim in whole.published
        if claim.task in TASKS
    ),
    *(Order(task, drawn, plain, whole.RUOSS, weights="trapezoid") for task in TASKS for drawn, plain in PAIRS),
]

titles, counted = {task: whole.titles[task] for task in TASKS}, whole.counted
plan = Plan(steps=3000, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(8, 16, 18, 24, 32, 48, 64, 100, 150, 200))


def runs():
    base = Run(length=16, longest=LIMIT, width=64, depth=3, heads=8, hidden=256, norm="pre", batch=32, buckets=2)
    return grid(base, task=TASKS, scheme=SCHEMES)
