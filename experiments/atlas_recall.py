"""Every scheme of the registry on recall, which takes longer to learn than the other probes of the atlas.

Eight tokens are four pairs of key and value; the rest of 32 are keys that ask, and noise. What a key was paired with is
found by content, at any distance, so positions help only to see that a value follows its key.

Source: ours; the task is that of Arora et al. (2023), Zoology, arXiv 2312.04927. The rows are those of
`experiments/atlas.py`.
Setting: decoders as in the atlas, trained on 32 tokens in 4,000 steps; the model has no convolution before attention,
with which any scheme, or none, learns this task.
Cost: about 5 hours of one core for two seeds.
Command: posenc sweep experiments/atlas_recall.py --only scheme=rope --keep, then
posenc sweep experiments/atlas_recall.py, then
python experiments/atlas.py atlas_recall atlas_recall, which adds RoPE's models under what changes them
Variation: posenc sweep experiments/atlas_recall.py --only scheme=rope,alibi --set steps=8000 --name longer
Result: the share of values asked for that is right; medians of two seeds. 39 of 46 rows learn it, 0.9 of texts of 32
tokens, and 30 of these hold it to 128, of them 24 with 0.98 or more: a value is found by its key far beyond training,
with a penalty on distance or without one.

What fades, at 128: RoPE 0.92, xPos 0.88, complex order 0.83, ALiBi with slopes for 16 tokens 0.80, LieRE 0.75, VO-RoPE
0.74, algebraic positions 0.74, sinusoids 0.60, binary vectors 0.55, RoPE with a base of 10 0.39. The rates of ALiBi
differ there by 0.32, those of no other row by 0.2.

Not learned in 4,000 steps: RePo, just below, no positions 0.82, RoPE with scalable softmax 0.77, and LSTM, GRU, TUPE
and TAPA, which guess among the four values of the text, 0.25. Runs of one row differ: of the four without positions one
is at a guess, and of scalable softmax two have 1.00. With six seeds RoPE has runs that do not learn it too
(`atlas_recall_seeds`), so who is not learned here may be so by its seeds. Over the last half of the steps losses fell
by 73 % for RePo, 61 % without positions, 65 % with scalable softmax, 14 % for TAPA.
"""

import dataclasses

from posenc.lab.spec import atlas

PROBE = atlas.PROBES["recall"]

plan = dataclasses.replace(atlas.PLAN, steps=PROBE.steps)
titles = atlas.titles("decoder", PROBE.steps)
counted = "tokens"
metric = {PROBE.task: PROBE.metric}  # of all its keys, none of which is later than another by rule


def runs():
    return atlas.every_run("decoder", PROBE.steps)


def figure(results):
    """Every row in one table."""
    from posenc.lab.figures.atlas import atlas_drawing

    return atlas_drawing(results)
