"""Every scheme of the registry on recall, which takes longer to learn than the other probes of the atlas.

Eight tokens are four pairs of key and value; the rest of 32 are keys that ask, and noise. What a key was paired with is
found by content, at any distance, so positions help only to see that a value follows its key.

Source: ours; the task is that of Arora et al. (2023), Zoology, arXiv 2312.04927. The rows are those of
`experiments/atlas.py`. What Yang et al. and Movahedi et al. found stands in their abstracts.
Setting: decoders as in the atlas, trained on 32 tokens in 4,000 steps; the model has no convolution before attention,
with which any scheme, or none, learns this task.
Cost: about 5 hours of one core for two seeds, estimated.
Command: posenc sweep experiments/atlas_recall.py
Variation: posenc sweep experiments/atlas_recall.py --only scheme=rope,alibi --set steps=8000 --name longer
Result: not run.
"""

import dataclasses

from posenc.lab.results.published import Order
from posenc.lab.spec import atlas

PROBE = atlas.PROBES["recall"]

plan = dataclasses.replace(atlas.PLAN, steps=PROBE.steps)
titles = atlas.titles("decoder", PROBE.steps)
counted = "tokens"
metric = {PROBE.task: PROBE.metric}  # of all its keys, none of which is later than another by rule

RECALLS = {
    "path": "Yang et al. (2025), abstract, of synthetic tasks",
    "selective_rope": "Movahedi et al. (2025), abstract, of recall in linear attention with gates",
}
published = [
    Order(PROBE.task, f"{scheme} (model=decoder)", "rope (model=decoder)", source, seen="paper")
    for scheme, source in RECALLS.items()
]


def runs():
    return atlas.every_run("decoder", PROBE.steps)
