"""Penalties of distance that the atlas calls not learned, trained twice as long: slow, or unable?

After the 2,000 steps of the atlas KERPLE and ALiBi with the published slopes had not learned the token three back.
Their losses still fell. Here they have 4,000, beside ALiBi with slopes for this length.

Source: ours. Rows and task are those of `experiments/atlas.py`. The finding of Chi et al. is from memory.

Setting: as in `experiments/atlas.py`, with twice the steps. Two layers of width 64 train on up to 16 tokens.

Cost: about 9 minutes of one core.

Command: posenc sweep experiments/atlas_longer.py

Variation: posenc sweep experiments/atlas_longer.py --only scheme=kerple --set steps=8000 --name longest
"""

import dataclasses

from posenc.lab.results.published import Order
from posenc.lab.spec import atlas

plan = dataclasses.replace(atlas.PLAN, steps=4000, seeds=tuple(range(6)))
PROBE = atlas.PROBES["offset"]
titles = {PROBE.task: PROBE.title}
counted = "tokens"
STEEP = "alibi(factor=64.0)"

published = [
    Order(
        PROBE.task,
        "kerple",
        STEEP,
        "Chi et al. (2022), of perplexity beyond the trained length",
        metric=PROBE.metric,
        seen="memory",
    ),
]
reading = """
KERPLE learns the token three back with 4,000 steps: {|kerple|16|last} at the last of 16 tokens and {|kerple|64|last}
at 64. The atlas called it not learned because 2,000 steps were too few. ALiBi with published slopes reaches
{|alibi|16|last} at 16, so these runs do not decide whether it can learn the task. ALiBi with slopes for this length
reaches {|alibi(factor=64.0)|64|last} at 64.
"""


def runs():
    return list(atlas.runs(("kerple", "alibi", STEEP), "decoder", ["offset"]))
