"""Six seeds of recall: a quarter of RoPE's runs do not learn it in 4,000 steps, and RoPE stretched recalls farther.

The atlas has two seeds of each row. Here RoPE is compared with two schemes that are to recall better, and with schemes
that stretch it after training.

Source: ours. The task is that of `experiments/atlas_recall.py`. Yang et al. (2025), PaTH, and Movahedi et al. (2025),
Selective RoPE, say in their abstracts that these are ahead.

Setting: as in `experiments/atlas_recall.py`. Decoders of two layers train on 32 tokens in 4,000 steps.

Cost: about 70 minutes of one core.

Command: posenc sweep experiments/atlas_recall_seeds.py --keep, then
python experiments/atlas.py atlas_recall_seeds atlas_recall_seeds, which adds RoPE's models under what changes them

Variation: posenc sweep experiments/atlas_recall_seeds.py --set steps=8000 --name longer
"""

import dataclasses
from pathlib import Path

from posenc.lab.results.published import Order
from posenc.lab.spec import atlas
from posenc.lab.spec.experiment_file import executed

whole = executed(Path(__file__).with_name("atlas_recall.py"))
AHEAD = {
    "path": "Yang et al. (2025), abstract, of synthetic tasks",
    "selective_rope": "Movahedi et al. (2025), abstract, of recall in linear attention with gates",
}

plan = dataclasses.replace(whole.plan, seeds=tuple(range(6)))
titles, counted, metric = whole.titles, whole.counted, whole.metric
published = [Order(whole.PROBE.task, scheme, "rope", source, seen="paper") for scheme, source in AHEAD.items()]
reading = """
PaTH and Selective RoPE recall {|path|128} and {|selective_rope|128} of the values at length 128, and RoPE
{|rope|128}. Three of RoPE's twelve runs do not learn the trained length. Stretching RoPE without training helps: YaRN
reaches {|yarn, trained with rope|128} and NTK {|ntk, trained with rope|128}. Position interpolation hurts:
{|pi, trained with rope|128}.
"""


def runs():
    return atlas.runs(("rope", *AHEAD), "decoder", ["recall"])


def figure(results):
    """The share of values that are right, by size."""
    from posenc.lab.figures.figures import length

    return length(results)
