"""Penalties of distance that the atlas calls not learned, trained twice as long: slow, or unable?

After the 2,000 steps of the atlas KERPLE and ALiBi with the published slopes had not learned the token three places
back, and their losses still fell. Here they have 4,000, beside ALiBi with slopes for this length.

Source: ours; rows and probe are those of `experiments/atlas.py`. What Chi et al. found is from memory.
Setting: as in `experiments/atlas.py`: two layers of width 64, trained on up to 16 tokens, with twice the steps.
Cost: about 9 minutes of one core.
Command: posenc sweep experiments/atlas_longer.py
Variation: posenc sweep experiments/atlas_longer.py --only scheme=kerple --set steps=8000 --name longest
Result: The last of 64 tokens, medians of six seeds: KERPLE has learned it with twice the steps, 0.97 at 16, and holds
0.93 at 64, where ALiBi with slopes for this length has 1.00, so the order differs here. KERPLE's loss still fell by 84
% over the last half of training. ALiBi with the published slopes has 0.75 at 16, falling by 68 %. What the atlas calls
not learned is slow in KERPLE, and in published slopes undecided.
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


def runs():
    return list(atlas.runs(("kerple", "alibi", STEEP), "decoder", ["offset"]))
