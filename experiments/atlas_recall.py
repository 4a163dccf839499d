"""Every scheme of the registry on recall, which takes longer to learn than the other tasks of the atlas.

Eight tokens are four pairs of key and value; the rest of 32 are keys that ask, and noise. A value is found by the
content of its key, at any distance. So positions help only to see that a value follows its key.

Source: ours. The task is that of Arora et al. (2023), Zoology, arXiv 2312.04927. The rows are those of
`experiments/atlas.py`.

Setting: decoders as in the atlas, trained on 32 tokens in 4,000 steps. The model has no convolution before attention.
With one, any scheme learns this task, and so does none.

Cost: about 6 hours of one core for two seeds.

Command: posenc sweep experiments/atlas_recall.py --only scheme=rope --keep, then
posenc sweep experiments/atlas_recall.py, then
python experiments/atlas.py atlas_recall atlas_recall, which adds RoPE's models under what changes them

Variation: posenc sweep experiments/atlas_recall.py --only scheme=rope,alibi --set steps=8000 --name longer
"""

import dataclasses

from posenc.lab.spec import atlas

PROBE = atlas.PROBES["recall"]

plan = dataclasses.replace(atlas.PLAN, steps=PROBE.steps)
titles = atlas.titles("decoder", PROBE.steps)
counted = "tokens"
metric = {PROBE.task: PROBE.metric}  # of all its keys, none of which is later than another by rule
reading = """
Recall is learned by {|count|32} of {|schemes|32} rows, stretched RoPE included, and {|count|128} keep 0.9 up to
length 128. Recall by content extrapolates with a penalty on distance or without one. RoPE reaches {|rope|128} at 128,
and base 10 only {|rope(base=10.0)|128}. Without positions the model reaches {|nope (model=decoder)|32} at the trained
length, but its loss was still falling. Two seeds cannot rank rows here, because some runs of one row learn the task
and others do not.
"""


def runs():
    return atlas.every_run("decoder", PROBE.steps)


def figure(results):
    """Every row in one table."""
    from posenc.lab.figures.atlas import atlas_drawing

    return atlas_drawing(results)
