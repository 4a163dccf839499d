"""Every scheme of the registry on the same probes in encoders, which see no order but what a scheme tells them.

Rows and probes are those of `experiments/atlas.py`, without what is defined for decoders alone, and with the order of
two marks, which a decoder has by its mask. ALiBi has two more rows, with penalties that tell left from right.

Source: ours; rows and probes are in `posenc.lab.spec.atlas`, the schemes in docs/schemes.md.
Setting: two layers of width 64, four heads, trained on up to 16 tokens, 2,000 steps of 32 rows at two rates, as in
`experiments/atlas.py`.
Cost: about 6 hours of one core for two seeds, estimated.
Command: posenc sweep experiments/atlas_encoders.py --only scheme=rope --keep, then posenc sweep
experiments/atlas_encoders.py, then python experiments/atlas.py atlas_encoders atlas_encoders, which evaluates RoPE's
models under the schemes that change it after training
Variation: posenc sweep experiments/atlas_encoders.py --only task=before scheme=rope,t5 --set length=32 --name longer
Result: Medians of two seeds; L is the longest size trained on, 16, of parity 8.
Behind the last token of an encoder nothing stands, so that where each token is answered all beyond training count.

The token back is learned by 23 of 34 rows; 13 hold 0.9 to 2 L, and 10 to 4 L. Penalties and kernels that are the same
on both sides do not learn it: ALiBi has 0.23 at a size trained on, with steeper slopes 0.59, KERPLE 0.43, with DAPE
0.64, Sandwich 0.60 and FIRE 0.68. ALiBi with the past half as steep, or with a half of the heads for each side, holds
it to 4 L, 0.99; so do log-CPB, ConViT, Shaw, Music Transformer, DeBERTa, Transformer-XL and RoPE with a base of 10,
1.00. RoPE has 0.82 at 2 L and 0.60 at 4 L. What is added to the input has 0.12 at best at 2 L, below 0.15 for the
token most frequent in a row. PoPE, 0.51, and RoPE at random places, 0.52, are slow: their losses still fell by 22 % and
27 %. No positions and RePo have 0.19, TAPA 0.25.

All other questions stand behind the row, where what is the same on both sides tells how far back a token is.
The order of two marks is learned by 29; 12 hold it to 2 L, and 7 to 4 L. What prefers the nearest serves here: at 4 L
FIRE has 0.99, KERPLE 0.97, Sandwich 0.96, ALiBi with a half of the heads for each side 0.90, and RoPE at random places
1.00. RoPE has 0.56 there, its own models under LongRoPE 0.99. What is added to the input has 0.73 at best at 2 L, where
a guess has 0.50. No positions and RePo guess, 0.50, TAPA has 0.80, FoPE 0.81, HoPE 0.85, and the losses of these three
still fell by 58 %, 44 % and 63 %.

The pointer is learned by 26; 13 hold it to 2 L, and 12 to 4 L: ALiBi with steeper slopes, 1.00, KERPLE, also with DAPE,
0.98, Sandwich 0.96, and those that hold the token back, but LieRE, 0.61, and RoPE with a base of 10, 0.83. RoPE has
0.50 at 2 L, where the token most frequent in a row has 0.16 and what is added to the input 0.09 at best. ALiBi has 0.85
at a size trained on, complex order 0.80, T5 0.69, RoPE at random places 0.55, binary 0.54, TAPA 0.29, no positions 0.19
and RePo 0.18; the losses of all but the last two still fell by 15 % or more.

The distance of two marks is learned by 23; 7 hold it to 2 L, HoPE, 0.93, FoPE, 0.92, and RoPE, 0.91, among them, and 3
to 4 L, ConViT, 1.00, Shaw, 0.98, and Music Transformer, 0.92. What is added to the input has 0.64 at best at 2 L. Of
biases by distance alone log-CPB and KERPLE learn it, 0.57 and 0.35 at 2 L; Sandwich has 0.73 at a size trained on,
ALiBi with the past half as steep 0.72, with steeper slopes 0.64, as published 0.63, with a half of the heads for each
side 0.62, FIRE 0.20, and T5 0.16. RoPE at random places has 0.53, TAPA 0.18, no positions and RePo 0.12. The losses of
all but T5, TAPA and the last two still fell by 27 % or more.

The look-up, of the token at one of the first four places, is learned by 12; learned vectors hold it to 4 L, 1.00, and
so do Fourier features, 0.99, but none else to 2 L, where sinusoids have 0.64, complex order 0.60, Shaw 0.58 and RoPE
0.09, below 0.16 for the token most frequent in a row. Of the others binary has most at a size trained on, 0.82, and
RoPE at random places 0.70. No positions, RePo, FoPE and HoPE have 0.16, and TUPE 0.32; all other losses still fell by
11 % or more.

The index of a mark, which a decoder has from its mask, is learned by 25; 3 hold it to 2 L, learned vectors and Fourier
features, 1.00, and sinusoids, 0.91, and to 4 L the first two, 1.00 and 0.99. The next at 2 L are ConViT, 0.85, complex
order, 0.83, and binary, 0.70; RoPE has 0.15, where a guess has 0.13. Of the others ALiBi with steeper slopes has 0.89
at a size trained on, RoPE at random places 0.83, T5 0.80, FoPE 0.54, Sandwich 0.53, HoPE 0.02, TAPA 0.14, no positions
0.13 and RePo 0.12; the losses of all but the last three still fell by 10 % or more.

Counts are learned by 31; 4 hold them to 2 L, HoPE 0.98, no positions 0.97, RePo 0.95 and FoPE 0.94, and none to 4 L,
0.50 at best. KERPLE has 0.90 at 2 L, RoPE 0.21 and learned vectors 0.23. Sandwich has 0.90 at a size trained on, ConViT
0.71, and ALiBi with a half of the heads for each side 0.70; their losses still fell by 61 % or more.

Parity is learned by 26, and none holds it to 2 L: 0.59 at best, where a guess has 0.50. Of the others T5 has most at a
size trained on, 0.89, and binary least, 0.61; their losses still fell by 53 % or more.

In 20 cells rates that tie differ by 0.2 or more beyond L, most in sinusoids on the look-up, by 0.50.
"""

from posenc.lab.spec import atlas

plan = atlas.PLAN
titles = atlas.titles("encoder")
counted = "tokens"


def runs():
    return atlas.every_run("encoder")


def figure(results):
    """Every row on every probe in one table."""
    from posenc.lab.figures.atlas import atlas_drawing

    return atlas_drawing(results)
