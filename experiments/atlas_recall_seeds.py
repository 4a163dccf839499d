"""Six seeds of recall: a quarter of RoPE's runs do not learn it in 4,000 steps, and RoPE stretched recalls farther.

The atlas has two seeds of each row. Here RoPE stands beside two schemes that are to recall better, and under schemes
that stretch it after training.

Source: ours; the task is that of `experiments/atlas_recall.py`. Yang et al. (2025), PaTH, and Movahedi et al. (2025),
Selective RoPE, say in their abstracts that these are ahead.
Setting: as in `experiments/atlas_recall.py`: decoders of two layers, 32 tokens, 4,000 steps.
Cost: about 70 minutes of one core.
Command: posenc sweep experiments/atlas_recall_seeds.py --keep, then
python experiments/atlas.py atlas_recall_seeds atlas_recall_seeds, which adds RoPE's models under what changes them
Variation: posenc sweep experiments/atlas_recall_seeds.py --set steps=8000 --name longer
Result: the share of values asked for that is right; medians of six seeds. At 32 tokens RoPE, PaTH and Selective RoPE
have 1.00, at 128 RoPE has 0.92, PaTH 1.00, Selective RoPE 1.00; both are ahead of RoPE beyond training in every seed.
The published orders were first written of the size trained on, where all three are at the ceiling, and are asked beyond
since two seeds were seen.

Every run of the two has learned it, of RoPE's twelve three have not: at the smaller rate one is half way, 0.75, at the
larger two are at a guess among the four values of the text, 0.25.

RoPE's models under what stretches them for four times the length, without further training, have at 128: by parts,
Self-Extend and YaRN 1.00, ReRoPE and Llama 3's 0.99, NTK and dynamic NTK 0.98; position interpolation 0.58 and LongRoPE
0.55.
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


def runs():
    return atlas.runs(("rope", *AHEAD), "decoder", ["recall"])


def figure(results):
    """The share of values that are right, by size."""
    from posenc.lab.figures.figures import length

    return length(results)
