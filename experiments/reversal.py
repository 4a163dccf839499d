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

import dataclasses
from pathlib import Path

from posenc.lab.spec.experiment_file import executed

sorting = executed(Path(__file__).with_name("length.py"))
TASK = "reverse_string"
TABLE = {"nope": 52.8, "sinusoidal": 50.6, "learned": 50.7, "rope": 51.9}  # percent
TABLE |= {sorting.WAVES: 75.6, sorting.TURNS: 69.9}
published = sorting.row(TASK, TABLE)

titles = {TASK: sorting.titles[TASK]}
names, counted, figure = sorting.names, sorting.counted, sorting.figure
metric = "accuracy"  # of all characters: the last one, the first of the input, is easier
plan = dataclasses.replace(sorting.plan, steps=12000, lr=(1e-3,))
reading = """
With random positions {|sinusoidal @ random_sorted(limit=128)|64} of 64 characters are right under sinusoids and
{|rope @ random_sorted(limit=128)|64} under RoPE (baseline {|baseline|64}). Plain sinusoids have {|sinusoidal|64},
plain RoPE {|rope|64} and learned positions {|learned|64}. All but no encoding learned the trained lengths, and at 16
random positions are the lower ones: {|sinusoidal @ random_sorted(limit=128)|16} and
{|rope @ random_sorted(limit=128)|16}. The last character, the first of the input, survives best:
{|sinusoidal @ random_sorted(limit=128)|64|last} and {|rope @ random_sorted(limit=128)|64|last} at 64.
"""


def runs():
    return sorting.runs([TASK], list(TABLE))
