"""Every scheme of the registry on the same tasks in encoders, which see only the order that a scheme shows.

Rows and tasks are those of `experiments/atlas.py`, without those defined for decoders alone. The order of two marks is
added, which a decoder has by its mask. ALiBi has two more rows, with penalties that separate left from right.

Source: ours. Rows and tasks are in `posenc.lab.spec.atlas`, the schemes in docs/schemes.md.

Setting: two layers of width 64, four heads, trained on up to 16 tokens, 2,000 steps of 32 rows at two rates, as in
`experiments/atlas.py`.

Cost: about 7 hours of one core for two seeds, estimated.

Command: posenc sweep experiments/atlas_encoders.py --only scheme=rope --keep, then posenc sweep
experiments/atlas_encoders.py. Then python experiments/atlas.py atlas_encoders atlas_encoders evaluates RoPE's models
under the schemes that change it after training.

Variation: posenc sweep experiments/atlas_encoders.py --only task=before scheme=rope,t5 --set length=32 --name longer
"""

from posenc.lab.spec import atlas

plan = atlas.PLAN
titles = atlas.titles("encoder")
counted = "tokens"
reading = """
Symmetric penalties do not learn the token three back: KERPLE reaches {token_k_back|kerple|16} at L. ALiBi with slopes
that differ by side reaches {token_k_back|alibi(form='split', factor=64.0)|64} at 4 L. Symmetric penalties serve if
the question comes last: KERPLE finds the order of two marks in {before|kerple|64} at 4 L. Only learned vectors and
Fourier features keep an index to 4 L ({index_of_token|learned|64}, {index_of_token|fourier|64}); ConViT reaches
{index_of_token|convit(axes=1)|64} and Canon {index_of_token|canon|64}. No scheme reaches 0.9 on parity at 2 L; the best
reaches {parity_check|best|16}.
"""


def runs():
    return atlas.every_run("encoder")


def figure(results):
    """Every row on every task in one table."""
    from posenc.lab.figures.atlas import atlas_drawing

    return atlas_drawing(results)
