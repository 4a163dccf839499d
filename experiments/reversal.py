"""Random positions reverse strings beyond the trained lengths, after ten times the steps of sorting.

After the 1,200 steps that sorting takes, neither scheme with random positions had learned to reverse the trained
lengths, and after 6,000 neither had. So there are 12,000.

Source: Ruoss et al. (2023), Randomized Positional Encodings Boost Length Generalization of Transformers, Table 1, from
memory, as in experiments/ruoss.py, which says what supports it.

Setting: as in experiments/length.py, with 12,000 steps at rate 0.001. On seed 100, which is not reported, this rate was
better than 0.003.

Cost: about 70 minutes on 2 cores.

Command: posenc sweep experiments/reversal.py

Variation: posenc sweep experiments/reversal.py --set steps=24000 --name longer
"""

from posenc.lab.results.published import Order, Published
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

TASK = "reverse_string"
WAVES, TURNS = (f"{scheme} @ random_sorted(limit=128)" for scheme in ("sinusoidal", "rope"))  # as tables call them
TABLE = {"nope": 52.8, "sinusoidal": 50.6, "learned": 50.7, "rope": 51.9, WAVES: 75.6, TURNS: 69.9}  # percent
RUOSS = "Ruoss et al. (2023), Table 1"
THEIRS = {"weights": "trapezoid", "seen": "memory"}
published = [
    *(
        Published(TASK, scheme, percent / 100, RUOSS, tolerance=0.05, of="best", runs=30, **THEIRS)
        for scheme, percent in TABLE.items()
    ),
    *(Order(TASK, drawn, plain, RUOSS, **THEIRS) for drawn, plain in ((WAVES, "sinusoidal"), (TURNS, "rope"))),
]

titles = {TASK: "Reverse a string"}
names = {WAVES: "sinusoidal + random positions", TURNS: "rope + random positions"}
counted = "characters"
metric = "accuracy"  # of all characters: the last one, the first of the input, is easier
plan = Plan(steps=12000, seeds=(0, 1, 2, 3, 4, 5), lr=(1e-3,), sizes=(8, 16, 20, 24, 32, 48, 64))
reading = """
With random positions {|sinusoidal @ random_sorted(limit=128)|64} of 64 characters are right under sinusoids and
{|rope @ random_sorted(limit=128)|64} under RoPE (baseline {|baseline|64}). Plain sinusoids have {|sinusoidal|64},
plain RoPE {|rope|64} and learned positions {|learned|64}. All but no encoding learned the trained lengths, and at 16
random positions are the lower ones: {|sinusoidal @ random_sorted(limit=128)|16} and
{|rope @ random_sorted(limit=128)|16}. The last character, the first of the input, survives best:
{|sinusoidal @ random_sorted(limit=128)|64|last} and {|rope @ random_sorted(limit=128)|64|last} at 64.
"""


def runs():
    base = Run(length=16, width=64, depth=3, heads=8, hidden=256, norm="pre", batch=32, buckets=2)
    return grid(base, task=[TASK], scheme=list(TABLE))


def figure(results):
    """Accuracy against size; of two symbols a guess gets half, so the axis begins a little below it."""
    from posenc.lab.figures.figures import length

    return length(results, ends={TASK: (0.45, 1)})
