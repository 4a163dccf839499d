"""Random positions carry string tasks beyond the trained lengths: the informative rows of Table 1, in small.

Nine of the fifteen tasks, on which some scheme is clear of every floor in the paper, by twelve schemes. A small study
can repeat which scheme of a large one is better, and hardly a number. So each row is compared by the rank correlation
of the schemes, and each random scheme with its plain one.

Source: Ruoss et al. (2023), Randomized Positional Encodings Boost Length Generalization of Transformers, Table 1, from
memory, as in experiments/ruoss.py, where the whole table stands and what supports it.

Setting: 3 layers in place of 5, norms before in place of after, lengths to 16 in place of 40 and up to 200 in place of
500. Positions are below 512 in place of 2048, below 1024 in duplicate_string. There are 3,000 steps in place of 1
million, one rate in place of three, and 6 seeds in place of 10. Means over lengths are by the trapezoid rule.

Cost: about 40 minutes on 2 cores for a row of one answer, and three times that for a row of a text.

Command: posenc sweep experiments/ruoss_small.py --only task=missing_duplicate_string

Variation: posenc sweep experiments/ruoss_small.py --only task=missing_duplicate_string --set steps=30000 --name longer
"""

import dataclasses
import re
from pathlib import Path

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.experiment_file import executed
from posenc.lab.spec.run import Plan, Run

LIMIT, DOUBLED = 512, "duplicate_string"
"""The limit of random positions, twice as much for the one task whose rows of size 200 have 600 tokens."""
TASKS = [
    "cycle_navigation",
    "even_pairs",
    "missing_duplicate_string",
    "reverse_string",
    "stack_manipulation",
    DOUBLED,
    "odds_first",
    "binary_addition",
    "bucket_sort",
]


def limit(task):
    return 2 * LIMIT if task == DOUBLED else LIMIT


def small(scheme, task):
    """A scheme of the whole table, with random positions below the limit of a task."""
    with_settings = scheme.replace("random_sorted(", f"random_sorted(limit={limit(task)}, ")
    return re.sub(r"random_sorted$", f"random_sorted(limit={limit(task)})", with_settings)


whole = executed(Path(__file__).with_name("ruoss.py"))
SCHEMES = (*whole.SCHEMES, whole.AS_DESCRIBED)
PAIRS = list(zip(SCHEMES[6:11], SCHEMES[1:6], strict=True))
"""Each scheme with random positions, and the plain one."""
published = [
    *(
        dataclasses.replace(claim, scheme=small(claim.scheme, claim.task), floor=None)
        for claim in whole.published
        if claim.task in TASKS
    ),
    *(
        Order(task, small(drawn, task), plain, whole.RUOSS, weights="trapezoid", seen="memory")
        for task in TASKS
        for drawn, plain in PAIRS
    ),
]

CALLED = ["nope", "sinusoidal", "Transformer-XL", "ALiBi", "rope", "learned"]
DRAWN = [f"{CALLED[n]}, random" for n in (1, 3, 4, 5)]
XL = "Transformer-XL, random"
CALLED += [DRAWN[0], f"{XL} (code)", *DRAWN[1:], f"{XL} (paper)"]
"""The schemes in words: with random positions, those of Transformer-XL as released and as described."""
names = {small(s, task): called for task in TASKS for s, called in zip(SCHEMES, CALLED, strict=True)}
titles, counted = {task: whole.titles[task] for task in TASKS}, whole.counted
plan = Plan(steps=3000, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(8, 16, 18, 24, 32, 48, 64, 100, 150, 200))
reading = """
No scheme learned the trained lengths: at 16 characters the best reaches {|best|16} and a guess has half. So these
runs decide no published claim. ALiBi with random positions reaches
{|alibi(form='half') @ random_sorted(limit=512, resample='layer', over='distances')|24} at 24 characters, and plain
ALiBi {|alibi(form='half')|24}. At 200 characters every scheme guesses ({|best|200}).
"""


def runs():
    base = Run(length=16, width=64, depth=3, heads=8, hidden=256, norm="pre", batch=32, buckets=2)
    return [
        run
        for task in TASKS
        for run in grid(base, task=[task], longest=[limit(task)], scheme=[small(scheme, task) for scheme in SCHEMES])
    ]


def figure(results):
    """Draw the gain of each scheme from random positions, by size: each seed with them minus the same seed without."""
    import math

    from posenc.lab.figures.across import panels
    from posenc.lab.figures.figures import length
    from posenc.lab.figures.panels import Panel
    from posenc.lab.results.statistics import cells, summary

    measured = {(cell.task, cell.scheme): cell for cell in cells(results) if cell.n}
    points, ranges = {}, {}
    for task in TASKS:
        for drawn, plain in (*PAIRS, (whole.AS_DESCRIBED, SCHEMES[2])):
            ours, other = measured.get((task, small(drawn, task))), measured.get((task, plain))
            if ours and other:
                at = {n: (ours.means([n]), other.means([n])) for n in ours.values if n in other.values}
                gains = {n: [value - b[seed] for seed, value in a.items() if seed in b] for n, (a, b) in at.items()}
                points.setdefault(task, {})[ours.scheme] = gains
                ranges[task] = ours.trained
    if not points:  # no scheme was run both ways
        return length(results)
    far = max(abs(summary(gain).median) for of in points.values() for gains in of.values() for gain in gains.values())
    end = math.ceil(10 * far) / 10
    up, about = "random minus plain", "accuracy of each seed with random positions minus that of the same seed without"
    shown = [
        Panel(of, counted, up, titles[task], f"{task}: {about}", trained=ranges[task], ends=(-end, end))
        for task, of in points.items()
    ]
    return panels(results, shown, claimed=True)
