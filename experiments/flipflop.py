"""At four times the trained length an LSTM and ALiBi keep a bit; other encodings of a decoder reach 0.63 at most.

A read asks for the bit last written, with any number of pairs to ignore between. Attention has to look exactly one
write back; positions that count tokens blur its position, positions that count what matters do not.

Source: Liu et al. (2023), Exposing Attention Glitches with Flip-Flop Language Modeling, arXiv 2306.00946, an LSTM makes
no errors and Transformers do; Golovneva et al. (2024), arXiv 2405.18719, table 2: errors of 6.8 % with absolute
positions, 1.8 % with RoPE, none with CoPE at the length trained on.

Setting: 2 layers of width 64 for 6 of 512, 64 tokens for 512, evaluated on longer texts. The papers also evaluate
sparser and denser texts than those trained on: `--keep`, then `posenc evaluate flipflop --task "flip_flop(p=0.98)"`.

Cost: about 50 minutes on one core.

Command: posenc sweep experiments/flipflop.py

Variation: posenc sweep --preset flipflop --grid scheme=learned,rope,cope, the published size, on a GPU
"""

from posenc.lab.results.published import Order, Published
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

SCHEMES = ["nope", "sinusoidal", "learned", "rope", "alibi", "cope"]

LIU, COPE = "Liu et al. (2023), §4", "Golovneva et al. (2024), table 2"
published = [
    Published("flip_flop", "nope (model=lstm)", 0.0, LIU, over="trained", scale="log", seen="copy"),
    *(
        Published("flip_flop", f"{scheme} (model=decoder)", error, COPE, over="trained", scale="log", seen="paper")
        for scheme, error in (("learned", 0.068), ("rope", 0.018), ("cope", 0.0))
    ),
    *(
        Order("flip_flop", "cope (model=decoder)", f"{s} (model=decoder)", COPE, metric="last", seen="paper")
        for s in ("learned", "rope")
    ),
]

titles = {"flip_flop": "The bit last written"}
counted = "tokens"
plan = Plan(steps=2000, seeds=(0, 1, 2, 3, 4, 5), lr=(1e-3,), sizes=(64, 96, 128, 256), rows=1024)
reading = """
The LSTM makes no error at length 256 ({|nope (model=lstm)|256}), four times the trained length. ALiBi keeps the bit
there ({|alibi|256}), RoPE guesses ({|rope|256}). At 128 RoPE reaches {|rope|128} and CoPE {|cope|128}, but CoPE's
seeds range from {|cope|128|min} to {|cope|128|max}. Learned positions guess at 128 ({|learned|128}). Without
positions the task is not learned at 64 ({|nope (model=decoder)|64}), and that loss was still falling.
"""


def runs():
    base = Run(task="flip_flop", model="decoder", width=64, depth=2, batch=32, length=64)
    return [*grid(base, scheme=SCHEMES), *grid(base, scheme=["nope"], model=["lstm"])]


def figure(results):
    """The share of reads that are wrong, on a log axis, since accuracies near 1 coincide."""
    from posenc.lab.figures.figures import error_curve

    return error_curve(results)
