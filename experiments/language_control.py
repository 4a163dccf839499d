"""A source whose memory ends after 16 tokens: a scheme that is not flat on it beyond training does more than see less.

A hidden Markov chain of 16 states forgets within 16 tokens, so that a window loses nothing. Who loses on copies
(`language`) and not here lacks reach; who loses here too is confused by places that training did not have.

Source: ours, as the control of `experiments/language.py`.
Setting: as in `experiments/language.py`, with three seeds, which decide no order.
Cost: about 2 hours of one core.
Command: posenc sweep experiments/language_control.py
Variation: posenc sweep experiments/language_control.py --only scheme=rope,alibi,nope --seeds 3:6 --name more
Result: medians of three seeds; a gain is the share of what lies between the loss of the law of one token and the least
one. At 64 tokens, the length trained on, attention with positions gains 0.91 to 0.94, no positions 0.87 and the LSTM
0.97. At 1,024 the LSTM has 0.98, FoX and stick-breaking 0.94, ALiBi 0.92, KERPLE 0.91, Sandwich 0.85, xPos 0.74, FIRE
0.64, no positions 0.53, T5 0.52, CoPE 0.50, RoPE 0.14, sinusoids 0.12 and learned positions 0.09.

So the LSTM, FoX, stick-breaking, ALiBi and KERPLE are flat where a window of 16 tokens would do, Sandwich nearly. The
others lose there what they had, though nothing that is far matters: places that training did not have confuse them. Of
those, FIRE, CoPE, T5, learned and no positions are before ALiBi and FoX on copies at 1,024, so that neither source
alone ranks the schemes. Learned positions, which do on copies what no positions do, have lost the chain at 128, 0.01,
where no positions have 0.66.
"""

import dataclasses
from pathlib import Path

from posenc.lab.spec.experiment_file import executed

copies = executed(Path(__file__).with_name("language.py"))
TASK = "hidden_markov"

plan = dataclasses.replace(copies.plan, seeds=(0, 1, 2))
titles = {TASK: "A hidden Markov chain"}
names, counted, figure = copies.names, copies.counted, copies.figure


def runs():
    return [dataclasses.replace(run, task=TASK) for run in copies.runs()]
