"""One bit to remember: a recurrent network keeps it without error, attention with positions sometimes slips.

A read asks for the bit last written, with any number of pairs to ignore between. Attention has to look exactly one
write back; positions that count tokens blur its place, positions that count what matters do not.

Source: Liu et al. (2023), Exposing Attention Glitches with Flip-Flop Language Modeling, arXiv 2306.00946, an LSTM makes
no errors and Transformers do; Golovneva et al. (2024), arXiv 2405.18719, table 2: errors of 6.8 % with absolute
positions, 1.8 % with RoPE, none with CoPE at the length trained on.
Setting: 2 layers of width 64 for 6 of 512, 64 tokens for 512, evaluated on longer texts. The papers also evaluate
sparser and denser texts than those trained on: `--keep`, then `posenc evaluate flipflop --task "flip_flop(p=0.98)"`.
Cost: about 50 minutes on one core.
Command: posenc sweep experiments/flipflop.py
Variation: posenc sweep --preset flipflop --grid scheme=learned,rope,cope, the published size, on a GPU
Result: medians of six seeds, at the last read of a text. The LSTM makes no error in 1,024 texts of any length to 256:
1.00. At 64 tokens, the length trained on, every scheme with positions has 1.00; the worst seed of learned positions has
0.98 and that of CoPE 0.88. No positions have 0.77: over the last half of the 2,000 steps of 32 texts their loss still
fell by 18 %, while all others ended near zero. Farther out ALiBi alone of these keeps the bit, 0.99 at 256. RoPE has
0.95 at 128 and 0.52 at 256, which is a guess, where all reads together give it 0.80. CoPE has 0.80 and 0.54, its seeds
from 0.59 to 1.00 at 128, so that six do not tell which of the two is ahead; it is ahead of learned positions, which
guess at 128, 0.51, and so do sinusoids, 0.51. At 64 four of CoPE's six seeds make no error, as published, and one errs
at 12 % of last reads. Learned positions and RoPE make fewer errors there than published. The mean over all reads also
counts those at positions that were trained, and so is higher.
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


def runs():
    base = Run(task="flip_flop", model="decoder", width=64, depth=2, batch=32, length=64)
    return [*grid(base, scheme=SCHEMES), *grid(base, scheme=["nope"], model=["lstm"])]


def figure(results):
    """The share of reads that are wrong, on a log axis, since accuracies near 1 coincide."""
    from posenc.lab.figures.errors import error_curve

    return error_curve(results)
