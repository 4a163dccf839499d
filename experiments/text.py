"""Ten schemes predict bytes that every Python holds, beyond the trained length.

Rows have 128 bytes of the topics of Python's help, and models are evaluated at up to 1,024. The figure has bits per
byte at each position, with models that only count one byte, two, or up to six. A scheme that is flat beyond 128 may use
what it sees there, or see no more than before. Text alone cannot separate the two, because its optimal loss is unknown.

Source: Press et al. (2022), ALiBi; Chi et al. (2022), KERPLE; Chi et al. (2023), Sandwich; Li et al. (2024), FIRE; Sun
et al. (2023), xPos; Lin et al. (2025), FoX: all of perplexity, which papers measure on other texts with larger models,
so that their orders are compared and never their numbers. The orders of xPos and FoX were read in the papers, those of
ALiBi in a caption that others quote; the rest is from memory.

Setting: decoders of two layers of width 64 in place of 12 and more, and 128 bytes in place of 512 to 4,096 subwords.
The text has .3 MB in place of 100 MB and more. A seed of its own chooses the rate. Verdicts compare the share of next
bytes that are right, at the positions beyond 128; tables and the figure have bits. The text differs from one version of
Python to another, and with it the names of the trials.

Cost: about 3 hours of one core.

Command: posenc sweep experiments/text.py

Variation: posenc sweep experiments/text.py --set task="text(file='my.txt')" --only scheme=rope,alibi,nope --name mine
"""

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

LENGTH = 128
TOPICS = "text(corpus='pydoc')"
SCHEMES = ["nope", "sinusoidal", "rope", "xpos", "alibi", "kerple", "sandwich", "fire", "t5", "fox"]

CAPTION, CURVES = (f"Press et al. (2022), {where}, of longer inputs" for where in ("caption of figure 1", "figure 2"))
FAR = {"metric": "beyond", "learned": False}  # no model names nine of ten next bytes
OF = FAR | {"seen": "memory"}
published = [
    Order(TOPICS, "alibi", "sinusoidal", CAPTION, **FAR, seen="copy"),
    Order(TOPICS, "alibi", "rope", CAPTION, **FAR, seen="copy"),
    Order(TOPICS, "t5", "rope", CURVES, **OF),
    Order(TOPICS, "rope", "sinusoidal", CURVES, **OF),
    Order(TOPICS, "kerple", "alibi", "Chi et al. (2022), of perplexity beyond the trained length", **OF),
    Order(TOPICS, "sandwich", "sinusoidal", "Chi et al. (2023), of perplexity beyond the trained length", **OF),
    *(
        Order(TOPICS, "fire", "alibi", f"Li et al. (2024), perplexity at {times} the trained length", over=(n,), **OF)
        for times, n in (("twice", 2 * LENGTH), ("four times", 4 * LENGTH))
    ),
    Order(TOPICS, "xpos", "rope", "Sun et al. (2023), table 1, of length extrapolation", **FAR, seen="paper"),
    Order(TOPICS, "fox", "rope", "Lin et al. (2025), abstract, of length extrapolation", **FAR, seen="paper"),
    Order(
        TOPICS,
        "alibi",
        "nope",
        "ours: a penalty keeps a window of its own width, and without one the weights spread",
        origin="ours",
        **FAR,
    ),
]

titles = {TOPICS: "The next byte of Python's help"}
counted = "bytes"
plan = Plan(steps=3000, seeds=(0, 1, 2, 3, 4, 5), lr=(1e-3, 3e-3), tuning=(6,), sizes=(128, 256, 512, 1024), rows=256)
reading = """
FoX and KERPLE stay flat beyond the trained 128 bytes: {|fox|1024} and {|kerple|1024} bits at 1,024. RoPE and
sinusoidal rise to {|rope|1024} and {|sinusoidal|1024}, above a unigram model ({|unigram|1024}). ALiBi is flat too
({|alibi|1024}), but it is behind at the trained length: {|alibi|128} against {|fox|128} for FoX. FIRE and T5 rise to
{|fire|1024} and {|t5|1024}. Without positions the model predicts hardly better than a bigram model: {|nope|128}
against {|bigram|128} bits.
"""


def runs():
    base = Run(model="decoder", width=64, depth=2, heads=4, hidden=256, batch=16, length=LENGTH)
    return grid(base, task=[TOPICS], scheme=SCHEMES)


def figure(results):
    """Bits per byte at each place of the longest rows."""
    from posenc.lab.figures.curves import place_curve

    return place_curve(results)
