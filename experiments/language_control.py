"""On a source whose memory ends after 16 tokens, a loss that rises shows a scheme disturbed by unseen positions.

A hidden Markov chain of 16 states forgets within 16 tokens, so that a window loses nothing. A scheme that loses on
copies (`language`) and not here lacks reach. A scheme that loses here too is disturbed by unseen positions.

Source: ours, as the control of `experiments/language.py`.

Setting: as in `experiments/language.py`, with three seeds, which decide no order.

Cost: about 2 hours of one core.

Command: posenc sweep experiments/language_control.py

Variation: posenc sweep experiments/language_control.py --only scheme=rope,alibi,nope --set seeds=3,4,5 --name more
"""

import dataclasses
from pathlib import Path

from posenc.lab.spec.experiment_file import executed

copies = executed(Path(__file__).with_name("language.py"))
TASK = "hidden_markov"

plan = dataclasses.replace(copies.plan, seeds=(0, 1, 2))
titles = {TASK: "A hidden Markov chain"}
names, counted, figure = copies.names, copies.counted, copies.figure
reading = """
A window of 16 tokens is enough here, and FoX ({|fox|1024}) and ALiBi ({|alibi|1024}) stay flat up to 1,024 tokens.
RoPE falls to {|rope|1024} and learned positions to {|learned|1024}. Their loss rises because unseen positions disturb
them, not because they lack context. FIRE ({|fire|1024}) and T5 ({|t5|1024}) extrapolate well on copies, but they lose
here. Three seeds decide no order.
"""


def runs():
    return [dataclasses.replace(run, task=TASK) for run in copies.runs()]
