"""Canon and ConViT hold an offset and an index in single seeds, and not in the median, after four times the training.

Finding 1 says that no encoding of an encoder serves both, and these two come nearest in the atlas. After its 2,000
steps both find every token three back, and their losses on the index still fall.

Source: ours. The claims were written before these schemes were trained for so long.

Setting: as in experiments/atlas.py, with 8,000 steps in place of 2,000 and six seeds in place of two.

Cost: about half an hour of two cores.

Command: posenc sweep experiments/both.py

Variation: posenc sweep experiments/both.py --set scheme="shaw + learned" --name sum
"""

import dataclasses

from posenc.lab.results.published import Published
from posenc.lab.spec import atlas

PROBES = ("offset", "index")
SCHEMES = ("canon", "convit(axes=1)")
BOTH = "ours: no encoding of an encoder holds an offset and an index, as in first_look, and these find the offset"
published = [
    Published(atlas.PROBES["index"].task, scheme, 0.9, BOTH, relation="at most", over=(64,), origin="ours")
    for scheme in SCHEMES
]

titles = {atlas.PROBES[name].task: atlas.PROBES[name].title for name in PROBES}
counted = "tokens"
plan = dataclasses.replace(atlas.PLAN, seeds=tuple(range(6)), steps=8000)
reading = """
At length 64 Canon finds {token_k_back|canon|64} of the tokens three back, and ConViT
{token_k_back|convit(axes=1)|64}. Of the indices Canon finds {index_of_token|canon|64} in the median over seeds, from
{index_of_token|canon|64|min} to {index_of_token|canon|64|max}. ConViT finds {index_of_token|convit(axes=1)|64}, from
{index_of_token|convit(axes=1)|64|min} to {index_of_token|convit(axes=1)|64|max}. So some seeds hold both and others
do not. At the trained length they find {index_of_token|canon|16} and {index_of_token|convit(axes=1)|16}.
"""


def runs():
    return list(atlas.runs(SCHEMES, "encoder", PROBES))


def figure(results):
    """Accuracy against size, every run, since seeds differ more than schemes."""
    from posenc.lab.figures.figures import length

    return length(results, each=True)
